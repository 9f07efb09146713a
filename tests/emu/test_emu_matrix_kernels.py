"""Tensor-core kernels as people write them: CUDA C++ with inline PTX or nvcuda::wmma."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import smemkern

MMA_GEMM = r"""
#include <cuda_fp16.h>

constexpr int TILE = 64, DEPTH = 32;

// Rows of 4 (A) and 8 (B) chunks of 16 bytes; chunks are exchanged so that eight rows' chunks of
// one column lie in different banks.
__device__ unsigned a_chunk(int row, int chunk) {
    return row * 64 + (SWIZZLE ? chunk ^ row / 2 % 4 : chunk) * 16;
}
__device__ unsigned b_chunk(int row, int chunk) {
    return row * 128 + (SWIZZLE ? chunk ^ row % 8 : chunk) * 16;
}

__device__ void ldmatrix(unsigned (&r)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}
__device__ void ldmatrix_trans(unsigned (&r)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

extern "C" __global__ void gemm(const half *a, const half *b, float *c, int n, int k) {
    __shared__ __align__(128) unsigned char as[TILE * DEPTH * 2], bs[DEPTH * TILE * 2];
    const unsigned a_base = __cvta_generic_to_shared(as), b_base = __cvta_generic_to_shared(bs);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    float d[2][4][4] = {};
    for (int k0 = 0; k0 < k; k0 += DEPTH) {
        for (int i = threadIdx.x; i < 256; i += 128) {
            *(uint4 *)(as + a_chunk(i / 4, i % 4)) =
                *(const uint4 *)(a + (row0 + i / 4) * k + k0 + i % 4 * 8);
            *(uint4 *)(bs + b_chunk(i / 8, i % 8)) =
                *(const uint4 *)(b + (k0 + i / 8) * n + column0 + i % 8 * 8);
        }
        __syncthreads();
        for (int step = 0; step < DEPTH / 16; step++) {
            unsigned af[2][4], bf[2][4];
            for (int i = 0; i < 2; i++)
                ldmatrix(af[i],
                         a_base + a_chunk(warp_row + 16 * i + lane % 16, 2 * step + lane / 16));
            for (int j = 0; j < 2; j++)
                ldmatrix_trans(bf[j], b_base + b_chunk(16 * step + lane % 16,
                                                       warp_column / 8 + 2 * j + lane / 16));
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(d[i][j][0]), "+f"(d[i][j][1]), "+f"(d[i][j][2]),
                                   "+f"(d[i][j][3])
                                 : "r"(af[i][0]), "r"(af[i][1]), "r"(af[i][2]), "r"(af[i][3]),
                                   "r"(bf[j / 2][j % 2 * 2]), "r"(bf[j / 2][j % 2 * 2 + 1]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++)
                c[(row0 + warp_row + 16 * i + lane / 4 + e / 2 * 8) * n + column0 + warp_column +
                  8 * j + lane % 4 * 2 + e % 2] = d[i][j][e];
}
"""


def halves(rng, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def assert_near(c: np.ndarray, a: np.ndarray, b: np.ndarray, k: int) -> None:
    a, b = a.astype(np.float64), b.astype(np.float64)
    assert np.all(abs(c - a @ b) <= (k + 2) * 2.0**-22 * (abs(a) @ abs(b)))


@pytest.fixture(scope="module")
def mma_gemm(nvrtc):
    include = toolkit_include()
    options = [f"-I{include}"] if include else []
    try:
        return [smemkern.Kernel(MMA_GEMM, "gemm", [f"-DSWIZZLE={s}", *options]) for s in (0, 1)]
    except smemkern.CompileError as error:
        if "cuda_fp16.h" not in str(error):
            raise
        pytest.skip("no CUDA headers here")


def toolkit_include() -> Path | None:
    """Of the toolkit whose nvcc is on PATH: NVRTC alone does not bring mma.h."""
    nvcc = shutil.which("nvcc")
    include = Path(nvcc).resolve().parents[1] / "include" if nvcc else None
    return include if include and (include / "mma.h").exists() else None


@pytest.mark.parametrize("swizzle", [0, 1])
def test_mma_gemm(mma_gemm, swizzle, device, rng) -> None:
    m, n, k = 128, 192, 96
    a, b, c = halves(rng, m, k), halves(rng, k, n), np.full((m, n), np.nan, np.float32)
    mma_gemm[swizzle]((n // 64, m // 64), 128, a, b, c, n, k, device=device)
    assert_near(c, a, b, k)


def test_ldmatrix_is_counted(mma_gemm, rng) -> None:
    """Four wavefronts a request with the swizzle; plain rows of 64 bytes cost 16, of 128, 32."""
    a, b, c = halves(rng, 64, 32), halves(rng, 32, 64), np.zeros((64, 64), np.float32)
    worst = []
    for kernel in mma_gemm:
        t = smemkern.trace(kernel, 1, 128, a, b, c, 64, 32)
        rows = [row for row in t.shared if row.op == "ldmatrix"]
        assert [row.requests for row in rows] == [16, 16]  # 4 warps, 2 steps, 2 requests
        assert all(row.width == 16 and row.ideal == 4 * row.requests for row in rows)
        worst.append(sorted(row.worst for row in rows))
    assert worst == [[16, 32], [4, 4]]


# ---- nvcuda::wmma ----

WMMA_GEMM = r"""
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void gemm(const TYPE *a, const TYPE *b, float *c, int n, int k) {
    wmma::fragment<wmma::matrix_a, M, N, 16, TYPE, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, M, N, 16, TYPE, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, M, N, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    const int row = blockIdx.y * M, column = blockIdx.x * N;
    for (int k0 = 0; k0 < k; k0 += 16) {
        wmma::load_matrix_sync(fa, a + row * k + k0, k);
        wmma::load_matrix_sync(fb, b + column * k + k0, k);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    for (int e = 0; e < fc.num_elements; e++) fc.x[e] *= 2;
    wmma::store_matrix_sync(c + row * n + column, fc, n, wmma::mem_row_major);
}
"""


@pytest.mark.parametrize("shape", [(16, 16), (32, 8), (8, 32)])
def test_wmma_gemm(nvrtc, shape, device, rng) -> None:
    include = toolkit_include()
    if include is None:
        pytest.skip("no CUDA toolkit's mma.h here")
    tile_m, tile_n = shape
    options = [f"-DM={tile_m}", f"-DN={tile_n}", "-DTYPE=half", f"-I{include}"]
    kernel = smemkern.Kernel(WMMA_GEMM, "gemm", options)
    m, n, k = 64, 96, 80
    a, b, c = halves(rng, m, k), halves(rng, n, k), np.full((m, n), np.nan, np.float32)
    kernel((n // tile_n, m // tile_m), 32, a, b, c, n, k, device=device)
    assert_near(c / 2, a, b.T, k)


# ---- wgmma, shared memory filled by plain stores ----

ACCUMULATORS = ", ".join(f"%{k}" for k in range(32))
OUTPUTS = ", ".join(f'"+f"(d[{k}])' for k in range(32))

WGMMA_GEMM = rf"""
constexpr int TILE = 64, CHUNKS = ROW_BYTES == 16 ? 2 : ROW_BYTES / 16, DEPTH = CHUNKS * 8;

// Where chunk `chunk` (of 16 bytes, along k) of row `row` lies: k-major, canonical.
__device__ unsigned place(int row, int chunk) {{
    if (ROW_BYTES == 16) return chunk * TILE * 16 + row * 16;
    const unsigned at = row * ROW_BYTES + chunk * 16;
    return at ^ (at / 128 % (ROW_BYTES / 16)) * 16;
}}

__device__ unsigned long long descriptor(unsigned at) {{
    const int swizzle = ROW_BYTES == 128 ? 1 : ROW_BYTES == 64 ? 2 : ROW_BYTES == 32 ? 3 : 0;
    const unsigned long long mode = swizzle;
    const unsigned long long leading = TILE * 16, stride = 8 * ROW_BYTES;
    return (at & 0x3ffff) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62;
}}

extern "C" __global__ void gemm(const unsigned short *a, const unsigned short *b, float *c, int n,
                                int k) {{
    __shared__ __align__(1024) unsigned char as[TILE * DEPTH * 2], bs[TILE * DEPTH * 2];
    const unsigned a_base = __cvta_generic_to_shared(as), b_base = __cvta_generic_to_shared(bs);
    const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    float d[32];
    for (int i = 0; i < 32; i++) d[i] = 0;
    for (int k0 = 0; k0 < k; k0 += DEPTH) {{
        for (int i = threadIdx.x; i < TILE * CHUNKS; i += 128) {{
            const int row = i / CHUNKS, chunk = i % CHUNKS;
            *(uint4 *)(as + place(row, chunk)) =
                *(const uint4 *)(a + (row0 + row) * k + k0 + chunk * 8);
            *(uint4 *)(bs + place(row, chunk)) =
                *(const uint4 *)(b + (column0 + row) * k + k0 + chunk * 8);
        }}
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int step = 0; step < DEPTH / 16; step++)
            asm volatile("{{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                         "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{ACCUMULATORS}}}, "
                         "%32, %33, p, 1, 1, 0, 0;\n}}"
                         : {OUTPUTS}
                         : "l"(descriptor(a_base + 32 * step)), "l"(descriptor(b_base + 32 * step)),
                           "r"((int)(k0 + step > 0)));
        asm volatile("wgmma.commit_group.sync.aligned;\n"
                     "wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }}
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int i = 0; i < 32; i++)
        c[(row0 + 16 * warp + lane / 4 + i / 2 % 2 * 8) * n + column0 + i / 4 * 8 + lane % 4 * 2 +
          i % 2] = d[i];
}}
"""


@pytest.mark.parametrize("row_bytes", [16, 32, 64, 128])
def test_wgmma_gemm(nvrtc, row_bytes, device, rng) -> None:
    kernel = smemkern.Kernel(WGMMA_GEMM, "gemm", ["-arch=sm_90a", f"-DROW_BYTES={row_bytes}"])
    m, n, k = 128, 64, 192
    a, b, c = halves(rng, m, k), halves(rng, n, k), np.full((m, n), np.nan, np.float32)
    kernel((n // 64, m // 64), 128, a, b, c, n, k, device=device)
    assert_near(c, a, b.T, k)


def test_wgmma_operands_are_counted(nvrtc, rng) -> None:
    """A and B, 64 rows of 32 bytes each, once for the warpgroup: 2 x 128 chunks, 8 a wavefront."""
    kernel = smemkern.Kernel(WGMMA_GEMM, "gemm", ["-arch=sm_90a", "-DROW_BYTES=128"])
    a, b, c = halves(rng, 64, 64), halves(rng, 64, 64), np.zeros((64, 64), np.float32)
    t = smemkern.trace(kernel, 1, 128, a, b, c, 64, 64)
    rows = [row for row in t.shared if row.op == "matrix"]
    steps = 4
    assert sum(row.requests for row in rows) == steps * (4 + 4)  # A: one a warp; B: four
    assert sum(row.wavefronts for row in rows) == steps * (128 + 128) // 8
