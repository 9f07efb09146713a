"""Blocks of ordinary launches that wait for blocks which begin later: on a GPU all of them are
resident, and programs rely on it for barriers of their own."""

from __future__ import annotations

import numpy as np
import pytest

import smemkern

# A barrier of the grid, as programs write it, without cooperative launches.
BARRIER = r"""
__device__ void grid_barrier(unsigned *arrived, unsigned expected) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        %s
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void k(int *x, unsigned *arrived, int *out, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int r = 0; r < rounds; r++) {
        const int sum = x[(i + 77) %% n] + x[(i * 5 + 3) %% n];
        grid_barrier(arrived, (2 * r + 1) * gridDim.x);
        x[i] = sum & 0xffff;
        grid_barrier(arrived, (2 * r + 2) * gridDim.x);
    }
    out[i] = x[i];
}"""
WAYS = {
    "volatile": "while (*(volatile unsigned *)arrived < expected);",
    "atomic": "while (atomicAdd(arrived, 0u) < expected);",
    "compare": "while (atomicCAS(arrived, 0u, 0u) < expected);",
    "acquire": r"""unsigned now;
        do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
        while (now < expected);""",
    "sleep": "while (*(volatile unsigned *)arrived < expected) __nanosleep(100);",
}


def kernel(source: str) -> smemkern.Kernel:
    return smemkern.Kernel(source, "k", options=("-arch=compute_90",))


def steps(x: np.ndarray, rounds: int) -> np.ndarray:
    i = np.arange(x.size)
    for _ in range(rounds):
        x = (x[(i + 77) % x.size] + x[(i * 5 + 3) % x.size]) & 0xFFFF
    return x


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("blocks", [2, 7, 132])
def test_a_barrier_of_ones_own(nvrtc, device, rng, way, blocks):
    run = kernel(BARRIER.replace("%s", WAYS[way]).replace("%%", "%"))
    x = rng.integers(0, 1 << 16, 64 * blocks).astype("i4")
    out = np.zeros_like(x)
    run(blocks, 64, x.copy(), np.zeros(1, "u4"), out, 3, device=device)
    assert (out == steps(x, 3)).all()


@pytest.mark.parametrize("way", WAYS)
def test_it_orders_accesses(nvrtc, rng, way):
    """The barrier with its fences is no race; without them it is one."""
    source = BARRIER.replace("%s", WAYS[way]).replace("%%", "%")
    x = rng.integers(0, 1 << 16, 64 * 5).astype("i4")

    def hazards(text: str) -> int:
        arguments = (x.copy(), np.zeros(1, "u4"), np.zeros_like(x), 2)
        return len(smemkern.trace(kernel(text), 5, 64, *arguments).hazards)

    assert hazards(source) == 0
    assert hazards(source.replace("__threadfence();", "").replace(".acquire", ".relaxed")) > 0


def test_a_block_waits_for_the_next(nvrtc, device):
    """Backwards: the first block is the last to end."""
    run = kernel(r"""
        extern "C" __global__ void k(int *flags, int *order, int *n) {
            if (threadIdx.x) return;
            const int next = blockIdx.x + 1;
            if (next < gridDim.x) while (!*(volatile int *)&flags[next]);
            __threadfence();
            order[atomicAdd(n, 1)] = blockIdx.x;
            __threadfence();
            *(volatile int *)&flags[blockIdx.x] = 1;
        }""")
    order = np.full(40, -1, "i4")
    run(40, 32, np.zeros(40, "i4"), order, np.zeros(1, "i4"), device=device)
    assert order.tolist() == list(range(39, -1, -1))


LOCK = r"""
extern "C" __global__ void k(int *lock, int *sum, int times) {
    for (int n = 0; n < times; n++)
        if (threadIdx.x == 0) {
            while (atomicCAS(lock, 0, 1)) ;
            __threadfence();
            *(volatile int *)sum += blockIdx.x + 1;
            __threadfence();
            atomicExch(lock, 0);
        }
}"""


def test_a_lock(nvrtc, device):
    total = np.zeros(1, "i4")
    kernel(LOCK)(9, 32, np.zeros(1, "i4"), total, 50, device=device)
    assert total[0] == 50 * 45


def test_nodes_of_a_list_wait_for_the_next(nvrtc, device, rng):
    """Each thread has several, and looks at all of them again while one of them waits."""
    run = kernel(r"""
        extern "C" __global__ void k(const int *next, volatile int *rank, int nodes) {
            bool again;
            do {
                again = false;
                for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < nodes;
                     v += gridDim.x * blockDim.x) {
                    if (rank[v]) continue;
                    const int after = next[v] < 0 ? 1 : rank[next[v]];
                    if (after) rank[v] = after + 1;
                    else again = true;
                }
            } while (again);
        }""")
    order = rng.permutation(400).astype("i4")
    following, rank = np.full(order.size, -1, "i4"), np.zeros(order.size, "i4")
    following[order[:-1]] = order[1:]
    limit = {"max_instructions": 10**8} if device == "emu" else {}
    run(4, 32, following, rank, order.size, device=device, **limit)
    assert (rank[order] == np.arange(order.size, 0, -1) + 1).all()


def test_lanes_that_wait_at_the_end_of_two_polling_loops(nvrtc, device):
    """They go on without the lanes that poll, for which one of them writes."""
    run = kernel(r"""
        extern "C" __global__ void k(volatile int *flags, int *out) {
            if (threadIdx.x < 2) {
                if (threadIdx.x) while (!flags[1]) __nanosleep(20);
                else while (flags[0] != 1);
                __threadfence();
            }
            out[threadIdx.x] = threadIdx.x;
            flags[threadIdx.x & 1] = 1;
        }""")
    out = np.full(32, -1, "i4")
    run(1, 32, np.zeros(2, "i4"), out, device=device)
    assert (out == np.arange(32)).all()


LOOK_BACK = r"""
extern "C" __global__ void k(const int *x, int *sums, int *flags, int *out) {
    const int sum = x[blockIdx.x];
    int before = 0;
    if (blockIdx.x) {
        while (!*(volatile int *)&flags[blockIdx.x - 1]);
        __threadfence();
        before = sums[blockIdx.x - 1];
    }
    sums[blockIdx.x] = out[blockIdx.x] = before + sum;
    __threadfence();
    *(volatile int *)&flags[blockIdx.x] = 1;
}"""


@pytest.mark.parametrize("blocks", [50, 9000])
def test_blocks_that_wait_for_earlier_ones_never_wait(nvrtc, rng, blocks):
    """Each ends before the next begins, also where more are launched than a GPU holds."""
    x = rng.integers(0, 100, blocks).astype("i4")
    out, flags = np.zeros_like(x), np.zeros_like(x)
    trace = smemkern.trace(kernel(LOOK_BACK), blocks, 1, x, np.zeros_like(x), flags, out)
    assert (out == np.cumsum(x)).all()
    [polls] = [row for row in trace.global_ if row.line == 6]
    assert polls.requests == blocks - 1


def test_what_waits_for_nobody_is_stopped(nvrtc):
    run = kernel(r"""
        extern "C" __global__ void k(int *flag) { while (!*(volatile int *)flag); }""")
    with pytest.raises(smemkern.LaunchError, match="may never end"):
        run(3, 32, np.zeros(1, "i4"), device="emu", max_instructions=10**7)
