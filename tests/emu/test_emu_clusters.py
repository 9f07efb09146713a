"""Clusters of several blocks: distributed shared memory, cluster barriers, multicast."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_emu_bulk import BULK
from test_emu_mbarrier import HELPERS

import smemkern

CLUSTER = r"""
__device__ unsigned rank() {
    unsigned r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
__device__ unsigned blocks() {
    unsigned n;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
    return n;
}
__device__ void sync_cluster() {
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
                 ::: "memory");
}
/* The address in the shared memory of another block: generic, and of .shared::cluster. */
template <typename T> __device__ T *there(T *p, unsigned r) {
    T *q;
    asm("mapa.u64 %0, %1, %2;" : "=l"(q) : "l"(p), "r"(r));
    return q;
}
__device__ unsigned at(const void *p, unsigned r) {
    unsigned q;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(q) : "r"(at(p)), "r"(r));
    return q;
}
__device__ void store_async(unsigned to, int value, unsigned barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];"
                 :: "r"(to), "r"(value), "r"(barrier) : "memory");
}
__device__ void add_async(unsigned to, int value, unsigned barrier) {
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s32"
                 " [%0], %1, [%2];" :: "r"(to), "r"(value), "r"(barrier) : "memory");
}
__device__ void arrive_there(unsigned barrier) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                 :: "r"(barrier) : "memory");
}
__device__ void wait_cluster(u64 *b, unsigned parity) {
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"
                 " p, [%0], %1; @!p bra L; }" :: "r"(at(b)), "r"(parity) : "memory");
}
"""

SIZES = [2, 3, 4, 8, 16]


def kernel(source: str, name: str = "k") -> smemkern.Kernel:
    return smemkern.Kernel(HELPERS + BULK + CLUSTER + source, name, options=("-arch=compute_90",))


def seeded() -> tuple[np.random.Generator, int]:
    seed = int(np.random.SeedSequence().entropy % 2**32)
    print(f"seed {seed}")  # pytest shows it if the test fails
    return np.random.default_rng(seed), seed


# ---- special registers and addresses ----

REGISTERS = r"""
#define READ(i, name) asm("mov.u32 %0, %%" name ";" : "=r"(v)); o[i] = v;
extern "C" __global__ void k(unsigned *out) {
    unsigned v, *o = out + 15 * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    READ(0, "clusterid.x") READ(1, "clusterid.y") READ(2, "clusterid.z")
    READ(3, "nclusterid.x") READ(4, "nclusterid.y") READ(5, "nclusterid.z")
    READ(6, "cluster_ctaid.x") READ(7, "cluster_ctaid.y") READ(8, "cluster_ctaid.z")
    READ(9, "cluster_nctaid.x") READ(10, "cluster_nctaid.y") READ(11, "cluster_nctaid.z")
    READ(12, "cluster_ctarank") READ(13, "cluster_nctarank")
    asm("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(v));
    o[14] = v;
}"""


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [
        ((6, 4, 2), (3, 2, 1)),
        ((4, 2, 6), (1, 2, 3)),
        ((16, 3, 1), (16, 1, 1)),
        ((5, 7, 3), (5, 1, 1)),
        ((4, 4, 4), (2, 2, 2)),
        ((3, 2, 1), None),
        ((3, 2, 1), (1, 1, 1)),
    ],
)
def test_special_registers(nvrtc, device, grid, cluster):
    out = np.zeros((*grid[::-1], 15), "u4")
    kernel(REGISTERS)(grid, 1, out, cluster=cluster, device=device)
    size = np.array(cluster or (1, 1, 1))
    for z, y, x in np.ndindex(*grid[::-1]):
        block = np.array([x, y, z])
        inside = block % size
        rank = inside[0] + size[0] * (inside[1] + size[1] * inside[2])
        want = [*block // size, *np.array(grid) // size, *inside, *size, rank, math.prod(size)]
        assert out[z, y, x].tolist() == [*want, cluster is not None]


ADDRESSES = r"""
extern "C" __global__ void k(unsigned *out, u64 *generic) {
    __shared__ int a[8], b[8];
    const unsigned r = rank(), n = blocks(), other = (r + 1) % n;
    unsigned *o = out + 10 * blockIdx.x;
    o[0] = at(b, r) == at(b) && there(b, r) == b;
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(o[1]) : "r"(at(b)));
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(o[2]) : "r"(at(b, other)));
    asm("getctarank.u64 %0, %1;" : "=r"(o[3]) : "l"(there(b, other)));
    o[4] = at(b, other) - at(a, other) == at(b) - at(a);
    #define IS(i, space, p) \
        asm("{ .reg .pred p; isspacep." space " p, %1; selp.u32 %0, 1, 0, p; }" \
            : "=r"(o[i]) : "l"(p));
    IS(5, "shared", b) IS(6, "shared", there(b, other)) IS(7, "shared::cluster", there(b, other))
    IS(8, "global", there(b, other)) IS(9, "shared::cluster", out)
    /* A generic address of its own shared memory is good in the whole cluster. */
    b[3] = 100 + blockIdx.x;
    generic[blockIdx.x] = (u64)&b[3];
    sync_cluster();
    const volatile int *p = (const int *)((volatile u64 *)generic)[blockIdx.x / n * n + other];
    const int got = *p;
    sync_cluster();
    generic[blockIdx.x] = got;
}"""


@pytest.mark.parametrize("n", SIZES)
def test_addresses(nvrtc, device, n):
    out, generic = np.zeros((2 * n, 10), "u4"), np.zeros(2 * n, "u8")
    kernel(ADDRESSES)(2 * n, 1, out, generic, cluster=n, device=device)
    r = np.tile(np.arange(n), 2)
    other = (r + 1) % n
    want = np.stack([r * 0 + 1, r, other, other, r * 0 + 1, *np.outer([1, 0, 1, 0, 0], r * 0 + 1)])
    assert out.tolist() == want.T.tolist()
    assert generic.tolist() == (100 + np.repeat([0, n], n) + other).tolist()


# ---- distributed shared memory ----

RING = r"""
extern "C" __global__ void CLUSTER k(const int *in, int *out, int rounds) {
    __shared__ int tile[2][96];
    const unsigned t = threadIdx.x, next = (rank() + 1) % blocks();
    tile[0][t] = in[blockIdx.x * 96 + t];
    for (int i = 0; i < rounds; i++) {
        sync_cluster();
        there(tile[(i + 1) % 2], next)[t] = 3 * tile[i % 2][95 - t] + rank();
    }
    sync_cluster();
    out[blockIdx.x * 96 + t] = tile[rounds % 2][t];
}"""


def ring(x: np.ndarray, n: int, rounds: int) -> np.ndarray:
    x = x.reshape(-1, n, 96).astype("i4")
    for _ in range(rounds):
        x = np.roll(3 * x[:, :, ::-1] + np.arange(n, dtype="i4")[:, None], 1, axis=1)
    return x.reshape(-1, 96)


@pytest.mark.parametrize("n", SIZES)
def test_ring(nvrtc, device, n):
    rng, _ = seeded()
    x = rng.integers(-1000, 1000, (3 * n, 96), dtype="i4")
    out = np.zeros_like(x)
    kernel(RING.replace("CLUSTER", ""))(3 * n, 96, x, out, 5, cluster=n, device=device)
    assert (out == ring(x, n, 5)).all()


def test_ring_with_the_size_in_the_kernel(nvrtc, device):
    rng, _ = seeded()
    x = rng.integers(-1000, 1000, (8, 96), dtype="i4")
    k = kernel(RING.replace("CLUSTER", "__cluster_dims__(4, 1, 1)"))
    for cluster in (None, 4):
        out = np.zeros_like(x)
        k(8, 96, x, out, 2, cluster=cluster, device=device)
        assert (out == ring(x, 4, 2)).all()


HISTOGRAM = r"""
extern "C" __global__ void k(const unsigned *in, unsigned *bins, int n, int per_block) {
    extern __shared__ unsigned part[];
    for (int i = threadIdx.x; i < per_block; i += blockDim.x) part[i] = 0;
    sync_cluster();
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = at; i < n; i += gridDim.x * blockDim.x) {
        const unsigned bin = in[i];
        atomicAdd(there(part, bin / per_block) + bin % per_block, 1);
    }
    sync_cluster();
    for (int i = threadIdx.x; i < per_block; i += blockDim.x)
        atomicAdd(bins + rank() * per_block + i, part[i]);
}"""


@pytest.mark.parametrize("n", SIZES)
def test_histogram(nvrtc, device, n):
    rng, _ = seeded()
    per_block = 37
    values = rng.integers(0, n * per_block, 5001, dtype="u4")
    bins = np.zeros(n * per_block, "u4")
    k = kernel(HISTOGRAM)
    k(2 * n, 64, values, bins, values.size, per_block, cluster=n, shared_bytes=4 * per_block,
      device=device)  # fmt: skip
    assert (bins == np.bincount(values, minlength=bins.size)).all()


WIDTHS = r"""
extern "C" __global__ void k(int *out) {
    __shared__ alignas(16) int tile[128];
    __shared__ alignas(8) unsigned char bytes[32];
    const unsigned t = threadIdx.x, other = rank() ^ 1;
    tile[4 * t] = 1, tile[4 * t + 1] = 2, tile[4 * t + 2] = 3, tile[4 * t + 3] = 4 + rank();
    bytes[t] = t + 10 * rank();
    sync_cluster();
    int a, b, c, d, e, f;
    asm volatile("ld.shared::cluster.v4.s32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at(&tile[4 * t], other)));
    asm volatile("ld.shared::cluster.u8 %0, [%1];" : "=r"(e) : "r"(at(&bytes[t], other)));
    sync_cluster();
    asm volatile("st.shared::cluster.u8 [%0], %1;"
                 :: "r"(at(&bytes[t], other)), "r"(e + 1) : "memory");
    asm volatile("atom.shared::cluster.exch.b32 %0, [%1], %2;"
                 : "=r"(f) : "r"(at(&tile[4 * t + 3], other)), "r"(77 + rank()) : "memory");
    asm volatile("red.shared::cluster.max.s32 [%0], %1;"
                 :: "r"(at(&tile[4 * t], other)), "r"(t) : "memory");
    sync_cluster();
    int *o = out + 9 * (blockIdx.x * 32 + t);
    o[0] = a, o[1] = b, o[2] = c, o[3] = d, o[4] = e, o[5] = f;
    o[6] = bytes[t], o[7] = tile[4 * t + 3], o[8] = tile[4 * t];
}"""


def test_widths_and_atomics(nvrtc, device):
    out = np.zeros((2, 32, 9), "i4")
    kernel(WIDTHS)(2, 32, out, cluster=2, device=device)
    t = np.arange(32)
    for r in range(2):
        other = 1 - r
        want = [1, 2, 3, 4 + other, t + 10 * other]
        want += [4 + other, t + 10 * r + 1, 77 + other, np.maximum(t, 1)]
        assert out[r].T.tolist() == [np.broadcast_to(column, 32).tolist() for column in want]


# ---- mbarriers of other blocks ----

ASYNC = r"""
extern "C" __global__ void k(const int *in, int *out) {
    __shared__ int got[64], sum[64];
    __shared__ u64 full, empty;
    const unsigned t = threadIdx.x, n = blocks(), next = (rank() + 1) % n;
    sum[t] = 1000 * rank();
    if (t == 0) { init(&full, 1); init(&empty, 64); fence_init(); }
    sync_cluster();
    int *mine = out + blockIdx.x * 128;
    for (int i = 0; i < 3; i++) {
        if (t == 0) arrive_expect(&full, 64 * 4 * 2);
        store_async(at(&got[t], next), in[blockIdx.x * 64 + t] + i, at(&full, next));
        add_async(at(&sum[63 - t], next), in[blockIdx.x * 64 + t], at(&full, next));
        wait_cluster(&full, i & 1);
        mine[t] = 10 * mine[t] + got[t];
        mine[64 + t] = sum[t];
        arrive_there(at(&empty, (rank() + n - 1) % n)); /* the block that writes here may go on */
        wait_cluster(&empty, i & 1);
    }
    sync_cluster();
}"""


@pytest.mark.parametrize("n", SIZES)
def test_async_stores_and_remote_arrivals(nvrtc, device, n):
    rng, _ = seeded()
    x = rng.integers(-100, 100, (2 * n, 64), dtype="i4")
    out = np.zeros((2 * n, 128), "i4")
    kernel(ASYNC)(2 * n, 64, x, out, cluster=n, device=device)
    before = np.roll(x.reshape(2, n, 64), 1, axis=1).reshape(2 * n, 64)
    r = np.tile(np.arange(n), 2)[:, None]
    assert (out[:, :64] == 100 * before + 10 * (before + 1) + before + 2).all()
    assert (out[:, 64:] == 1000 * r + 3 * before[:, ::-1]).all()


SHARED_TO_SHARED = r"""
extern "C" __global__ void k(const int *in, int *out) {
    __shared__ alignas(16) int from[64], to[64];
    __shared__ u64 b;
    const unsigned t = threadIdx.x, next = (rank() + 1) % blocks();
    from[t] = in[blockIdx.x * 64 + t];
    to[t] = 5;
    if (t == 0) { init(&b, 1); fence_init(); arrive_expect(&b, 256); }
    fence();
    sync_cluster();
    if (t == 0)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                     " [%0], [%1], 128, [%2];"
                     "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                     ".add.s32 [%3], [%4], 128, [%2];"
                     :: "r"(at(to, next)), "r"(at(from)), "r"(at(&b, next)), "r"(at(to + 32, next)),
                        "r"(at(from + 32)) : "memory");
    wait_cluster(&b, 0);
    out[blockIdx.x * 64 + t] = to[t];
    sync_cluster();
}"""


@pytest.mark.parametrize("n", SIZES)
def test_bulk_copy_to_another_block(nvrtc, device, n):
    rng, _ = seeded()
    x = rng.integers(-(2**20), 2**20, (n, 64), dtype="i4")
    out = np.zeros_like(x)
    kernel(SHARED_TO_SHARED)(n, 64, x, out, cluster=n, device=device)
    assert (out == np.roll(x, 1, axis=0) + np.repeat([0, 5], 32)).all()


# ---- multicast ----

# Each block computes a 32 x 32 tile of C. The blocks of a cluster have the same rows of A, of which
# each loads a part for all of them, by one multicast.
GEMM = r"""
struct alignas(64) Map { unsigned long long opaque[16]; };
extern "C" __global__ void k(const __grid_constant__ Map a, const __grid_constant__ Map b, float *c,
                             int depth) {
    __shared__ alignas(128) float ta[32][32], tb[32][32];
    __shared__ u64 full;
    const unsigned t = threadIdx.x, x = t % 32, n = blocks(), rows = 32 / n;
    float sum[8] = {};
    if (t == 0) { init(&full, 1); fence_init(); }
    sync_cluster();
    for (int k = 0; k < depth; k += 32) {
        if (t == 0) {
            arrive_expect(&full, sizeof ta + sizeof tb);
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global"
                         ".mbarrier::complete_tx::bytes"
                         ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                         :: "r"(at(ta[rank() * rows])), "l"(&a), "r"(k),
                            "r"(blockIdx.y * 32 + rank() * rows), "r"(at(&full)),
                            "h"((unsigned short)((1 << n) - 1)) : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global"
                         ".mbarrier::complete_tx::bytes"
                         " [%0], [%1, {%2, %3}], [%4];"
                         :: "r"(at(tb)), "l"(&b), "r"(blockIdx.x * 32), "r"(k), "r"(at(&full))
                         : "memory");
        }
        wait_cluster(&full, k / 32 & 1);
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 32; j++) sum[i] += ta[t / 32 * 8 + i][j] * tb[j][x];
        sync_cluster();
    }
    for (int i = 0; i < 8; i++)
        c[(blockIdx.y * 32 + t / 32 * 8 + i) * 32 * gridDim.x + blockIdx.x * 32 + x] = sum[i];
}"""


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_gemm_with_multicast(nvrtc, device, n):
    rng, _ = seeded()
    m, depth = 64, 96
    a = rng.integers(-8, 8, (m, depth)).astype("f4")
    b = rng.integers(-8, 8, (depth, 32 * n)).astype("f4")
    c = np.full((m, 32 * n), np.nan, "f4")
    maps = smemkern.TensorMap(a, (32 // n, 32)), smemkern.TensorMap(b, (32, 32))
    kernel(GEMM)((n, m // 32), 128, *maps, c, depth, cluster=n, device=device)
    assert (c == a @ b).all()


MULTICAST = r"""
extern "C" __global__ void k(const int *in, int *out, int mask) {
    __shared__ alignas(16) int tile[64];
    __shared__ u64 b;
    const unsigned t = threadIdx.x;
    tile[t] = -1;
    if (t == 0) { init(&b, 1); fence_init(); }
    fence();
    sync_cluster();
    if (t == 0 && mask >> rank() & 1) arrive_expect(&b, 128);
    if (t == 0 && rank() == blocks() - 1)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1], 128, [%2], %3;"
                     :: "r"(at(tile + 16)), "l"(in), "r"(at(&b)), "h"((unsigned short)mask)
                     : "memory");
    if (mask >> rank() & 1) wait_cluster(&b, 0);
    out[blockIdx.x * 64 + t] = tile[t];
    sync_cluster();
}"""


@pytest.mark.parametrize(
    ("n", "mask"), [(2, 0), (2, 1), (3, 0b101), (4, 0b0110), (8, 0xA5), (16, 0xBEEF)]
)
def test_multicast_to_some_blocks(nvrtc, device, n, mask):
    rng, _ = seeded()
    x = rng.integers(0, 2**30, 32, dtype="i4")
    out = np.zeros((n, 64), "i4")
    kernel(MULTICAST)(n, 64, x, out, mask, cluster=n, device=device)
    for r in range(n):
        want = np.full(64, -1)
        if mask >> r & 1:
            want[16:48] = x
        assert (out[r] == want).all()


# ---- blocks of a trace ----


def test_a_trace_of_some_blocks_runs_their_clusters(nvrtc):
    rng, _ = seeded()
    x = rng.integers(-1000, 1000, (12, 96), dtype="i4")
    out = np.zeros_like(x)
    k = kernel(RING.replace("CLUSTER", ""))
    found = smemkern.trace(k, 12, 96, x, out, 3, cluster=3, blocks=[4, 5, 11], hazards=False)
    want = ring(x, 3, 3)
    want[[0, 1, 2, 6, 7, 8]] = 0
    assert (out == want).all()
    assert (found.blocks, found.grid_blocks) == (6, 12)


COUNTED = r"""
extern "C" __global__ void k(int *out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = tile[threadIdx.x + 32] = threadIdx.x;
    sync_cluster();
    const int *from = there(tile, (rank() + threadIdx.x / 16) % blocks());
    out[blockIdx.x * 32 + threadIdx.x] = from[2 * threadIdx.x];
    sync_cluster();
}"""


def test_counts_of_distributed_shared_memory(nvrtc):
    k = kernel(COUNTED)
    found = smemkern.trace(k, 4, 32, np.zeros(128, "i4"), cluster=2)
    line = 1 + next(n for n, text in enumerate(k.source.splitlines()) if "from[2" in text)
    rows = {row.op: row for row in found.shared if row.line == line}
    assert rows.keys() == {"load", "remote_load"}
    # Lanes 0 to 15 read one block's even words, lanes 16 to 31 the other's: two requests, of which
    # each has one wavefront.
    for row in rows.values():
        assert (row.requests, row.wavefronts, row.bytes) == (4, 4, 4 * 64)


# ---- barriers ----

EXIT = r"""
extern "C" __global__ void k(int *out) {
    __shared__ int tile[64];
    if (threadIdx.x >= 32 && rank() == 1) return; /* exited threads are not waited for */
    if (rank() == 2) {
        asm volatile("barrier.cluster.arrive.release;" ::: "memory");
        return;
    }
    tile[threadIdx.x] = 7 + rank();
    sync_cluster();
    if (rank() == 0 && threadIdx.x < 32)
        out[threadIdx.x] = there(tile, 1)[threadIdx.x] + there(tile, 3)[threadIdx.x + 32];
    if (rank() != 2) sync_cluster();
}"""


def test_exited_threads_are_not_waited_for(nvrtc):
    out = np.zeros(32, "i4")
    kernel(EXIT.replace(".aligned", ""))(4, 64, out, cluster=4, device="emu")
    assert (out == 18).all()


# ---- errors ----


@pytest.mark.parametrize(
    ("grid", "cluster", "expected"),
    [
        (4, 3, "must divide the grid"),
        ((4, 4), (2, 3), "dimension y"),
        (32, (8, 1, 4), "must divide the grid"),
        ((8, 4), (8, 4), "32 blocks; at most 16"),
    ],
)
def test_impossible_clusters(nvrtc, grid, cluster, expected):
    k = kernel(REGISTERS)
    with pytest.raises(smemkern.LaunchError, match=expected):
        k(grid, 1, np.zeros(15 * 64, "u4"), cluster=cluster, device="emu")


@pytest.mark.parametrize(
    ("directives", "cluster", "error", "expected"),
    [
        (".reqnctapercluster 2, 1, 1", 4, smemkern.LaunchError, "compiled for clusters of"),
        (".explicitcluster", None, smemkern.LaunchError, "pass cluster="),
        (".maxclusterrank 2", 4, smemkern.LaunchError, r"at most 2 .*\.maxclusterrank"),
        (".reqntid 1 .reqnctapercluster 2 .blocksareclusters", None,
         smemkern.UnsupportedInstructionError, "blocksareclusters"),
    ],
)  # fmt: skip
def test_directives(directives, cluster, error, expected):
    head = ".version 9.0\n.target sm_90\n.address_size 64\n"
    k = smemkern.Kernel(head + f".visible .entry k() {directives} {{ ret; }}", "k")
    with pytest.raises(error, match=expected):
        k(4, 1, cluster=cluster, device="emu")


def test_maxclusterrank_allows_what_is_below():
    head = ".version 9.0\n.target sm_90\n.address_size 64\n"
    k = smemkern.Kernel(head + ".visible .entry k() .maxclusterrank 4 { ret; }", "k")
    k(4, 1, cluster=4, device="emu")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("there(tile, 3)[0] = 1;", "ranks are 0 to 1"),
        ("there(tile, other)[64] = 1;", "of block [01] of the cluster, which has 248 bytes"),
        ("*(int *)((char *)there(tile, other) + 2) = 1;", "misaligned.*block [01] of the cluster"),
        ("asm volatile(\"st.shared::cta.u32 [%0], 1;\" :: \"r\"(at(tile, other)));",
         "shared::cta access of block"),
        ("asm volatile(\"st.shared::cluster.u32 [%0], 1;\" :: \"r\"(at(tile) + (9 << 24)));",
         "none of the cluster's 2 blocks"),
        ("if (rank()) return; for (int i = 0; i < 20000; i++) there(tile, 1)[0] = i;",
         "block 1 of the cluster, which has exited"),
        ("if (rank()) return; for (int i = 0; i < 9999; i++) __syncthreads();"
         "arrive_there(at(&b, 1));", "block 1 of the cluster, which has exited"),
        ("store_async(at(tile, other), 1, at(&b, other)); if (rank()) sync_cluster();",
         "has exited before this copy"),
        ("store_async(at(tile, other), 1, at(&b));", "both must be in the same block"),
        ("asm volatile(\"mbarrier.init.b64 [%0], 1;\" :: \"l\"(there(&b, other)));",
         "shared::cta access of block"),
    ],
)  # fmt: skip
def test_faults(nvrtc, body, expected):
    source = """extern "C" __global__ void k(int *out) {
        __shared__ int tile[60]; __shared__ u64 b; const unsigned other = rank() ^ 1;
        if (threadIdx.x == 0) init(&b, 1);
        tile[threadIdx.x] = 0;
        sync_cluster();
        BODY
        out[0] = tile[0];
    }"""
    k = kernel(source.replace("BODY", body))
    with pytest.raises(smemkern.LaunchError, match=expected):
        k(2, 1, np.zeros(1, "i4"), cluster=2, device="emu")


def test_a_mask_that_names_no_block(nvrtc):
    k = kernel(MULTICAST)
    with pytest.raises(smemkern.LaunchError, match="mask 0x4; the cluster has 2 blocks"):
        k(2, 64, np.zeros(32, "i4"), np.zeros(128, "i4"), 4, cluster=2, device="emu")


# ---- deadlocks ----


def test_a_block_that_does_not_arrive(nvrtc):
    source = """extern "C" __global__ void k() {
        __shared__ u64 b;
        if (threadIdx.x == 0) init(&b, 1);
        __syncthreads();
        if (rank() == 2) wait(&b, 0);
        sync_cluster();
    }"""
    k = kernel(source)
    with pytest.raises(smemkern.LaunchError, match="deadlock") as caught:
        k(3, 32, cluster=3, device="emu")
    text = str(caught.value)
    assert "the cluster of block (" in text
    assert "wait at the cluster's barrier for threads of block (2, 0, 0)" in text
    assert "block (2, 0, 0), warp 0" in text
    assert "waits for the mbarrier" in text
