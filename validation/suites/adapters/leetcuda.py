"""LeetCUDA: the launches of its Python bindings, with references in float64.

The names say what a kernel works on: f32x4 is float32, four elements per thread; `_f16_f32` is
float16 in, sums in float32.
"""

from __future__ import annotations

import math
import re
from typing import Any

import ml_dtypes
import numpy as np

from suites.reference import Array, Launch, Name, case

SUITE = "LeetCUDA"
Rng = np.random.Generator
HALF_ERROR = 1e-2  # of sums and functions in float16, relative to the largest result


def _floats(rng: Rng, *shape: int) -> Array:
    """Values that bfloat16 has too, so that they are the same in each type."""
    return rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)


def _is_half(name: Name) -> bool:
    return bool(re.search(r"f16|fp8", name.kernel))


def _loose(name: Name, expected: Array) -> float:
    return HALF_ERROR * float(np.abs(expected).max()) if _is_half(name) else 1e-5


def _per_thread(name: Name) -> int:
    found = re.search(r"_b?[fi]p?\d+(?:_e\dm\d)?x(\d+)", name.kernel)
    return int(found[1]) if found else 1


def _up(n: int, by: int) -> int:
    return -(-n // by)


# ---- one element at a time

FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardshrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
}


@case(SUITE, "", f"({'|'.join(FUNCTIONS)})_f\\d+(x\\d)?(_pack)?_kernel")
def function(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 2048)
    expected = FUNCTIONS[name.kernel.partition("_")[0]](x.astype(float))
    args = [x, np.zeros_like(x), x.size]
    atol = _loose(name, expected)
    return Launch(x.size // 256, 256 // _per_thread(name), args, {1: expected}, 1e-4, atol)


@case(SUITE, "", "elementwise_add_f\\d+(x\\d)?(_pack)?_kernel")
def add(name: Name, rng: Rng) -> Launch:
    x, y = _floats(rng, 2048), _floats(rng, 2048)
    args = [x, y, np.zeros_like(x), x.size]
    return Launch(x.size // 256, 256 // _per_thread(name), args, {2: x + y}, 1e-5)


@case(SUITE, "", "embedding_f\\d+(x\\d)?(_pack)?_kernel")
def embedding(name: Name, rng: Rng) -> Launch:
    n, size = 40, 256
    at, weight = rng.integers(0, 30, n).astype(np.int32), _floats(rng, 30, size)
    args = [at, weight, np.zeros((n, size), np.float32), n, size]
    return Launch(n, size // _per_thread(name), args, {2: weight[at]}, 0, 0)


@case(SUITE, "", "histogram_i32(x4)?_kernel")
def histogram(name: Name, rng: Rng) -> Launch:
    values = rng.integers(0, 20, 1024).astype(np.int32)
    args = [values, np.zeros(20, np.int32), values.size]
    expected = np.bincount(values, minlength=20)
    return Launch(4, 256 // _per_thread(name), args, {1: expected}, 0, 0)


@case(SUITE, "", "rope_f32(_v2|x4_pack)?_kernel")
def rope(name: Name, rng: Rng) -> Launch:
    """The frequency of pair j of a row is 10000^(-j / pairs)."""
    rows, pairs = 32, 64
    x = _floats(rng, rows, pairs, 2)
    angle = np.arange(rows)[:, None] * 10000.0 ** (-np.arange(pairs) / pairs)
    expected = np.empty(x.shape)
    expected[..., 0] = x[..., 0] * np.cos(angle) - x[..., 1] * np.sin(angle)
    expected[..., 1] = x[..., 0] * np.sin(angle) + x[..., 1] * np.cos(angle)
    n = pairs // 2 if "x4" in name.kernel else pairs
    grid, block = (rows, n) if "v2" in name.kernel else (rows * n // 256, 256)
    return Launch(grid, block, [x, np.zeros_like(x), rows, n], {1: expected}, 1e-4, 1e-4)


# ---- sums, norms, softmax: a block per row, whose size is the template argument


@case(SUITE, "", "block_all_reduce_sum_\\w+_kernel")
def total(name: Name, rng: Rng) -> Launch:
    threads = name.numbers()[0]
    grid = 3
    count = grid * threads * _per_thread(name)
    x: Array
    if "_i8" in name.kernel:
        x = rng.integers(-100, 100, count).astype(np.int8)
        y: Array = np.zeros(1, np.int32)
    else:
        x, y = _floats(rng, count), np.zeros(1, np.float32)
    if "fp8" in name.kernel:
        narrow = ml_dtypes.float8_e4m3fn if "e4m3" in name.kernel else ml_dtypes.float8_e5m2
        x = x.astype(narrow)
    expected = x.astype(float).sum(keepdims=True)
    exact = "f32_f32" in name.kernel or "i8" in name.kernel
    size = float(np.abs(x.astype(float)).sum())
    atol = (1e-6 if exact else 5e-3) * size
    args = [x.view(np.uint8) if "fp8" in name.kernel else x, y, count]
    return Launch(grid, threads, args, {1: expected}, 0, atol)


@case(SUITE, "", "dot_prod_\\w+_kernel")
def dot(name: Name, rng: Rng) -> Launch:
    threads = name.numbers()[0]
    count = 3 * threads * _per_thread(name)
    x, y = _floats(rng, count), _floats(rng, count)
    expected = np.array([x.astype(float) @ y.astype(float)])
    atol = (5e-3 if _is_half(name) else 1e-5) * float(np.abs(x * y).sum())
    args = [x, y, np.zeros(1, np.float32), count]
    return Launch(3, threads, args, {2: expected}, 0, atol)


@case(SUITE, "", "(layer|rms)_norm_\\w+_kernel")
def norm(name: Name, rng: Rng) -> Launch:
    threads = name.numbers()[0]
    rows, columns = 6, threads * _per_thread(name)
    x = _floats(rng, rows, columns)
    centred = x.astype(float)
    if name.kernel.startswith("layer"):
        centred = centred - centred.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    bias = [0.25] if name.kernel.startswith("layer") else []
    expected = 1.5 * scaled + sum(bias)
    args = [x, np.zeros_like(x), 1.5, *bias, rows, columns]
    return Launch(rows, threads, args, {1: expected}, 1e-4, 2 * _loose(name, expected))


@case(SUITE, "", "(safe_|online_safe_)?softmax_\\w+_per_token_kernel")
def softmax(name: Name, rng: Rng) -> Launch:
    threads = name.numbers()[0]
    rows, columns = 6, threads * _per_thread(name)
    columns = threads * 4 if "f32x4" in name.kernel else columns
    x = 2 * _floats(rng, rows, columns)
    powers = np.exp(x.astype(float) - x.max(-1, keepdims=True))
    expected = powers / powers.sum(-1, keepdims=True)
    args = [x, np.zeros_like(x), x.size]
    return Launch(rows, threads, args, {1: expected}, 1e-4, _loose(name, expected))


# ---- transposes


@case(SUITE, "mat_transpose.cu", "mat_transpose_f32\\w*_kernel")
def transpose(name: Name, rng: Rng) -> Launch:
    """The grids of the two macros TORCH_BINDING_MAT_TRANSPOSE."""
    square = "diagonal" in name.kernel
    rows, columns = (64, 64) if square else (64, 128)
    x = _floats(rng, rows, columns)
    args = [x, np.zeros((columns, rows), np.float32), rows, columns]
    n = _per_thread(name)
    if not name.kernel.endswith("2d_kernel"):
        return Launch(x.size // n // 32, 32, args, {1: x.T}, 0, 0)
    by_column = n if "col2row" in name.kernel else 1
    by_row = n if "row2col" in name.kernel else 1
    grid = (columns // (16 * by_column), rows // (16 * by_row))
    return Launch(grid, (16, 16), args, {1: x.T}, 0, 0)


@case(SUITE, "mat_trans_swizzle", "mat_trans_smem_\\w+_kernel")
def transpose_integers(name: Name, rng: Rng) -> Launch:
    rows, columns = 64, 96
    x = rng.integers(-1000, 1000, (rows, columns)).astype(np.int32)
    args = [x, rows, columns, np.zeros((columns, rows), np.int32)]
    return Launch((columns // 32, rows // 32), (32, 32), args, {3: x.T}, 0, 0)


# ---- products


@case(SUITE, "", "[sh]gemv_k(16|32|128)_\\w+_kernel")
def matrix_vector(name: Name, rng: Rng) -> Launch:
    rows, k = 64, int(re.findall(r"_k(\d+)", name.kernel)[0])
    a, x = _floats(rng, rows, k), _floats(rng, k)
    expected = a.astype(float) @ x
    rows_per_block = 4 * (name.numbers()[0] if name.numbers() else 1)
    args = [a, x, np.zeros(rows, np.float32), rows, k]
    grid = rows // rows_per_block
    return Launch(grid, (32, 4), args, {2: expected}, 1e-4, _loose(name, expected))


def _product(
    name: Name, rng: Rng, grid: Any, block: Any, shared: int = 0, size: int = 256
) -> Launch:
    """Where the name has _tn, B is stored by columns."""
    m = n = k = size
    a, b = _floats(rng, m, k), _floats(rng, k, n)
    expected = a.astype(float) @ b
    atol = 1e-3 if "tf32" in name.text else 1e-4
    if _is_half(name) or name.kernel.startswith(("hgemm", "mma")):
        atol = HALF_ERROR * float(np.abs(expected).max())
    stored = np.ascontiguousarray(b.T) if "_tn" in name.kernel else b
    args = [a, stored, np.zeros((m, n), np.float32), m, n, k]
    return Launch(grid(m, n), block, args, {2: expected}, 1e-4, atol, shared)


@case(SUITE, "", "[sh]gemm_naive_f\\d+_kernel", "[sh]gemm_sliced_k_f\\d+_kernel")
def product_per_thread(name: Name, rng: Rng) -> Launch:
    return _product(name, rng, lambda m, n: (n // 32, m // 32), (32, 32))


@case(SUITE, "", "[sh]gemm_t_\\d+x\\d+_\\w+_kernel")
def product_tiled(name: Name, rng: Rng) -> Launch:
    bm, bn, _, tm, tn, *_ = name.numbers()
    return _product(name, rng, lambda m, n: (n // bn, m // bm), (bn // tn, bm // tm))


@case(SUITE, "", "hgemm_mma_m16n8k16_naive\\w*_kernel", "mma_simple_swizzle_kernel")
def product_mma(name: Name, rng: Rng) -> Launch:
    size = 16 if "simple" in name.kernel else 256  # the simple one prints its tiles
    return _product(name, rng, lambda m, n: (n // 8, m // 16), 32, size=size)


@case(SUITE, "", "hgemm_wmma_m16n16k16_naive_kernel")
def product_wmma(name: Name, rng: Rng) -> Launch:
    return _product(name, rng, lambda m, n: (n // 16, m // 16), 32)


@case(SUITE, "", "[hs]gemm_w?mma_m\\d+n\\d+k\\d+_mma\\dx\\d\\w*_kernel")
def product_warps(name: Name, rng: Rng) -> Launch:
    """The template arguments begin with the tile of an MMA, and the tiles of a block and a warp."""
    mma_m, mma_n, _, tiles_m, tiles_n, warp_m, warp_n = [*name.numbers()[:7], 1, 1][:7]
    bm, bn = mma_m * tiles_m * warp_m, mma_n * tiles_n * warp_n
    shared = 160 << 10 if "dsmem" in name.kernel else 0
    return _product(name, rng, lambda m, n: (n // bn, m // bm), 32 * tiles_m * tiles_n, shared)


@case(SUITE, "sgemm_wmma_tf32_stage", "f32x4_tf32x4_kernel")
def round_to_tf32(name: Name, rng: Rng) -> Launch:
    x = rng.standard_normal(2048, np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    expected = ((bits + 0x1000) & 0xFFFFE000).astype(np.uint32).view(np.float32)
    return Launch(2, 256, [x, np.zeros_like(x), x.size], {1: expected}, 0, 0)


# ---- attention


@case(SUITE, "flash-attn/mma", "flash_attn_mma_stages_\\w+_kernel")
def attention(name: Name, rng: Rng) -> Launch:
    """Not causal. A block computes Br rows, with the warps that the template arguments say."""
    size, m, _, _, tiles_q, tiles_k, _, _, warp_q, *_ = name.numbers()
    heads, rows = 2, max(128, m * tiles_q * warp_q)
    q, k, v = (_floats(rng, 1, heads, rows, size) for _ in range(3))
    scores = q.astype(float) @ k.swapaxes(-1, -2) / math.sqrt(size)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    expected = powers / powers.sum(-1, keepdims=True) @ v
    grid = (rows // (m * tiles_q * warp_q), heads)
    if re.search("shared_q?kv_swizzle_qkv|tiling_qk_swizzle_qkv", name.kernel):
        v = np.ascontiguousarray(v.swapaxes(-1, -2))  # these take V by columns
    args = [q, k, v, np.zeros_like(q), rows, heads]
    return Launch(grid, 32 * tiles_q * tiles_k, args, {3: expected}, 1e-2, 2e-2, 200 << 10)
