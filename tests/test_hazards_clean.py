"""Correct idioms, in which nothing must be found; and what is left of each without its order."""

from pathlib import Path

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU  # noqa: F401  (the suite's path)

pytestmark = pytest.mark.usefixtures("nvrtc")

N = 256


def hazards(source, *args, grid=1, block=N, options=("-std=c++17",), **kw):
    kernel = smemkern.Kernel(source, "k", options)
    return smemkern.trace(kernel, grid, block, *args, **kw).hazards


def kinds(*args, **kw):
    return {h.kind for h in hazards(*args, **kw)}


def fill(source, order):
    """Each @ of the source is a part of the order."""
    for text in order:
        source = source.replace("@", text, 1)
    return source


def floats(n, seed=1):
    return np.random.default_rng(seed).standard_normal(n).astype("f4")


# Sources in which each @ is a part of the order.
TREE = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[256 * blockIdx.x + t];
    for (int d = 128; d > 0; d >>= 1) {
        @
        if (t < d) s[t] += s[t + d];
    }
    if (t == 0) y[blockIdx.x] = s[0];
}"""
WARP_TREE = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ float s[256];
    int t = threadIdx.x, lane = t % 32;
    s[t] = x[256 * blockIdx.x + t];
    #pragma unroll 1
    for (int d = 16; d > 0; d >>= 1) {
        __syncwarp();
        float other = lane < d ? s[t + d] : 0;
        @
        s[t] += other;
    }
    if (lane == 0) atomicAdd(&y[blockIdx.x], s[t]);
}"""
DOUBLE_BUFFER = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ float s[2][256];
    int t = threadIdx.x;
    float sum = 0;
    s[0][t] = x[t];
    @
    #pragma unroll 1
    for (int i = 1; i < 5; i++) {
        s[i % 2][t] = x[t] + i;
        sum += s[(i + 1) % 2][255 - t];
        @
    }
    y[256 * blockIdx.x + t] = sum;
}"""
NAMED = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ float s[128];
    int t = threadIdx.x;
    if (t < 128) {                      // produces
        for (int i = 0; i < 3; i++) {
            @
            s[t] = x[128 * i + t];
            @
        }
    } else {                            // consumes
        float sum = 0;
        for (int i = 0; i < 3; i++) {
            if (i == 0) asm volatile("bar.arrive 2, 256;" ::: "memory");
            asm volatile("bar.sync 1, 256;" ::: "memory");
            sum += s[255 - t];
            if (i < 2) asm volatile("bar.arrive 2, 256;" ::: "memory");
        }
        y[128 * blockIdx.x + t - 128] = sum;
    }
}"""
HALVES = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t < 128) { @ } else { asm volatile("bar.sync 2, 128;" ::: "memory"); }
    y[256 * blockIdx.x + t] = s[t ^ 127];
}"""
LAST_BLOCK = """
__device__ unsigned done;
extern "C" __global__ void k(const float *x, float *y, float *partial) {
    __shared__ bool last;
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[256 * blockIdx.x + t];
    for (int d = 128; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) s[t] += s[t + d];
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
        @
        last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
        @
    }
    __syncthreads();
    if (last && t == 0) {
        float sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += partial[i];
        *y = sum;
    }
}"""
ALL_THREADS_FENCE = """
__device__ unsigned done;
extern "C" __global__ void k(const float *x, float *y, float *partial) {
    __shared__ bool last;
    int t = threadIdx.x;
    partial[256 * blockIdx.x + t] = x[256 * blockIdx.x + t];
    @
    __syncthreads();
    if (t == 0) {
        last = atomicAdd(&done, 1) % gridDim.x == gridDim.x - 1;
        @
    }
    __syncthreads();
    if (last) {
        float sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += partial[256 * i + t];
        y[t] = sum;
    }
}"""
LOOK_BACK = """
__device__ volatile int flag[64];
extern "C" __global__ void k(const float *x, float *y, float *sums) {
    __shared__ float before;
    int t = threadIdx.x, b = blockIdx.x;
    if (t == 0) {
        float sum = 0;
        if (b > 0) {
            while (flag[b - 1] != 1) { }
            @
            sum = sums[b - 1];
        }
        sums[b] = sum + x[b];
        @
        flag[b] = 1;
        before = sum;
    }
    __syncthreads();
    y[256 * b + t] = before;
    if (t == 0 && b == gridDim.x - 1)
        for (int i = 0; i < 64; i++) flag[i] = 0;
}"""
SHARED_FLAG = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ volatile int ready;
    __shared__ float value;
    int t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t == 0) {
        value = x[0];
        @
        ready = 1;
    } else if (t == 32) {
        while (!ready) { }
        @
        y[blockIdx.x] = value;
    }
}"""
HISTOGRAM = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ unsigned bins[16];
    int t = threadIdx.x;
    if (t < 16) bins[t] = 0;
    @
    atomicAdd(&bins[(int)(x[256 * blockIdx.x + t] * x[t] * 100) & 15], 1u);
    @
    if (t < 16) atomicAdd(&y[t], (float)bins[t]);
}"""
EARLY = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t >= 64) return;
    s[t] = s[t + 64];
    @
    y[64 * blockIdx.x + t] = s[63 - t];
}"""
SYNC, WARP, FENCE = "__syncthreads();", "__syncwarp();", "__threadfence();"
FULL, FREE = (
    'asm volatile("bar.arrive 1, 256;" ::: "memory");',
    'asm volatile("bar.sync 2, 256;" ::: "memory");',
)
CASES = {
    "tree": (TREE, [SYNC], 3),
    "warp tree": (WARP_TREE, [WARP], 3),
    "double buffer": (DOUBLE_BUFFER, [SYNC, SYNC], 1),
    "named barriers": (NAMED, [FREE, FULL], 2),
    "halves of a block": (HALVES, ['asm volatile("bar.sync 1, 128;" ::: "memory");'], 2),
    "last block": (LAST_BLOCK, [FENCE, FENCE], 5),
    "all threads fence": (ALL_THREADS_FENCE, [FENCE, FENCE], 5),
    "look back": (LOOK_BACK, [FENCE, FENCE], 9),
    "flag in shared memory": (SHARED_FLAG, ["__threadfence_block();"] * 2, 2),
    "histogram": (HISTOGRAM, [SYNC, SYNC], 3),
    "early return of warps": (EARLY, [SYNC], 2),
}


@pytest.mark.parametrize("name", CASES)
def test_clean(name):
    source, order, grid = CASES[name]
    partial = (
        [np.zeros(256 * grid, "f4")] if "float *partial" in source or "*sums" in source else []
    )
    found = hazards(
        fill(source, order), floats(256 * 16), np.zeros(256 * 16, "f4"), *partial, grid=grid
    )
    assert found == (), [h.message for h in found]


REMOVALS = [(name, k) for name, (_, order, _) in CASES.items() for k in range(len(order))]


@pytest.mark.parametrize(("name", "removed"), REMOVALS)
def test_each_part_is_needed(name, removed):
    """Nothing of the order can go: each removal is found, or hangs and is found."""
    source, order, grid = CASES[name]
    left = [text if k != removed else "" for k, text in enumerate(order)]
    partial = (
        [np.zeros(256 * grid, "f4")] if "float *partial" in source or "*sums" in source else []
    )
    found = kinds(
        fill(source, left), floats(256 * 16), np.zeros(256 * 16, "f4"), *partial, grid=grid
    )
    assert found
    assert found <= {"RAW", "WAR", "WAW", "deadlock", "barrier"}


CHAINS = """
extern "C" __global__ void k(const int *waits, int reader, int q, int *flags, int *x, int *y) {
    int b = blockIdx.x;
    x[b] = b + 1;
    for (int p = 0; p < b; p++)
        if (waits[gridDim.x * b + p]) {
            while (*(volatile int *)&flags[p] == 0) {}
            __threadfence();
        }
    __threadfence();
    x[gridDim.x + b] = b + 2; // behind the fence, as what comes behind the flag
    atomicExch(&flags[b], 1);
    x[2 * gridDim.x + b] = b + 3;
    if (b == reader) y[0] = x[q];
}"""


def test_what_blocks_learn_from_each_other_goes_on(rng):
    """Each block waits for some before it. What it reads must be in one of those, or of those that
    these have waited for, and so on, and from before their fence. What other blocks have learned
    helps it nothing."""
    kernel, n, clean = smemkern.Kernel(CHAINS, "k", ("-std=c++17",)), 7, 0
    for case in range(80):
        waits = np.tril(rng.random((n, n)) < 0.25, -1)
        reader, q = int(rng.integers(n)), int(rng.integers(3 * n if case % 2 else n))
        knows = np.eye(n, dtype=bool)
        for b in range(n):
            for p in np.flatnonzero(waits[b]):
                knows[b] |= knows[p]
        args = (
            waits.astype("i4"),
            reader,
            q,
            np.zeros(n, "i4"),
            np.zeros(3 * n, "i4"),
            np.zeros(1, "i4"),
        )
        found = smemkern.trace(kernel, n, 1, *args, hazards=True).hazards
        ordered = knows[reader, q] if q < n else reader == q % n
        assert bool(found) == (not ordered), (case, reader, q, waits)
        clean += not found
    assert 10 < clean < 70


def test_cooperative_groups():
    include = Path("/usr/local/cuda/include")
    if not (include / "cooperative_groups.h").exists():
        pytest.skip("no CUDA headers here")
    head = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
"""
    source = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ float s[256];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int t = threadIdx.x;
    s[t] = x[t];
    @
    s[t] += s[t ^ 1] * 0;
    @
    y[t] = s[255 - t];
}"""
    options = ("-std=c++17", f"-I{include}", f"-I{include}/cccl")
    args = floats(256), np.zeros(256, "f4")
    source = source.replace("s[t] += s[t ^ 1] * 0;", "float u = s[t ^ 7]; tile.sync(); s[t] = u;")
    orders = (["tile.sync();", "block.sync();"], ["", "block.sync();"], ["tile.sync();", ""])
    kernels = [fill(source, order).replace(" k(", f" k{n}(") for n, order in enumerate(orders)]
    whole = head + "".join(kernels)  # compiled once: the headers take a second
    first = smemkern.Kernel(whole, "k0", options)
    clean, *racy = (first, *(smemkern.Kernel(first.ptx, name) for name in ("k1", "k2")))
    assert smemkern.trace(clean, 1, N, *args).hazards == ()
    for kernel in racy:
        assert "RAW" in {h.kind for h in smemkern.trace(kernel, 1, N, *args).hazards}


def test_shuffles_need_no_memory():
    source = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ float part[8];
    float v = x[threadIdx.x];
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < 8 ? part[threadIdx.x] : 0;
        for (int d = 4; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
        if (threadIdx.x == 0) *y = v;
    }
}"""
    assert hazards(source, floats(256), np.zeros(1, "f4")) == ()


def test_divergent_lanes_of_one_warp():
    """Lanes of two branches hand data over with __syncwarp in each."""
    source = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ float s[32];
    int t = threadIdx.x;
    if (t < 16) {
        s[t] = x[t];
        @
        y[t] = s[t + 16];
    } else {
        s[t] = x[t] + 1;
        @
        y[t] = s[t - 16];
    }
}"""
    args = floats(32), np.zeros(32, "f4")
    assert hazards(fill(source, [WARP, WARP]), *args, block=32) == ()
    assert kinds(fill(source, ["", ""]), *args, block=32)
