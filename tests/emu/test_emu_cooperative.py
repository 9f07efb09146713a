"""Cooperative launches: blocks that are resident together and wait for each other."""

from __future__ import annotations

import numpy as np
import pytest
from test_emu_mbarrier import HELPERS

import smemkern

# What grid.sync() of cooperative groups does: the workspace's address is in %envreg1 and 2.
GRID_SYNC = r"""
__device__ void grid_sync() {
    unsigned high, low;
    asm volatile("mov.u32 %0, %%envreg1; mov.u32 %1, %%envreg2;" : "=r"(high), "=r"(low));
    const unsigned long long word = ((unsigned long long)high << 32 | low) + 4;
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned add = blockIdx.x ? 1u : 0x80000001u - gridDim.x;
        unsigned before, now;
        asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                     : "=r"(before) : "l"(word), "r"(add) : "memory");
        do
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
        while ((int)(now ^ before) >= 0);
    }
    __syncthreads();
}
"""

STEPS = (
    GRID_SYNC
    + r"""
extern "C" __global__ void k(int *x, int *out, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int r = 0; r < rounds; r++) {
        const int sum = x[(i + 77) % n] + x[(i * 5 + 3) % n];
        grid_sync();
        x[i] = sum & 0xffff;
        grid_sync();
    }
    out[i] = x[i];
}"""
)


def kernel(source: str) -> smemkern.Kernel:
    return smemkern.Kernel(HELPERS + source, "k", options=("-arch=compute_90",))


def steps(x: np.ndarray, rounds: int) -> np.ndarray:
    i = np.arange(x.size)
    for _ in range(rounds):
        x = x[(i + 77) % x.size] + x[(i * 5 + 3) % x.size] & 0xFFFF
    return x


@pytest.mark.parametrize(
    ("blocks", "threads", "rounds", "cooperative"),
    [(1, 32, 3, True), (7, 33, 4, False), (132, 64, 2, True), (400, 1, 2, False)],
)
def test_grid_sync(nvrtc, device, blocks, threads, rounds, cooperative):
    seed = int(np.random.SeedSequence().entropy % 2**32)
    print(f"seed {seed}")
    x = np.random.default_rng(seed).integers(0, 2**16, blocks * threads, dtype="i4")
    want, out = steps(x, rounds), np.zeros_like(x)
    options = {"cooperative": True} if cooperative else {}  # else as the kernel needs it
    kernel(STEPS)(blocks, threads, x, out, rounds, device=device, **options)
    assert (out == want).all()


WAITS_FOR_THE_NEXT = r"""
extern "C" __global__ void k(volatile int *sum) {
    if (threadIdx.x) return;
    int next = 0;
    if (blockIdx.x + 1 < gridDim.x) while (!(next = sum[blockIdx.x + 1]));
    __threadfence();
    sum[blockIdx.x] = next + blockIdx.x + 1;
}"""


def test_blocks_that_wait_for_later_ones(nvrtc, device):
    sums = np.zeros(50, "i4")
    kernel(WAITS_FOR_THE_NEXT)(50, 32, sums, cooperative=True, device=device)
    assert (sums == np.cumsum(np.arange(50, 0, -1))[::-1]).all()


def test_a_cooperative_launch_with_clusters(nvrtc, device):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2**16, 12 * 32, dtype="i4")
    want, out = steps(x, 3), np.zeros_like(x)
    kernel(STEPS)(12, 32, x, out, 3, cluster=4, device=device)
    assert (out == want).all()


@pytest.mark.parametrize(
    ("blocks", "threads", "shared"), [(132 * 32, 1, 0), (132 * 2, 1024, 0), (132, 32, 116_000)]
)
def test_as_many_blocks_as_fit(nvrtc, blocks, threads, shared):
    k = kernel('extern "C" __global__ void k() {}')
    k(blocks, threads, cooperative=True, shared_bytes=shared, device="emu")
    with pytest.raises(smemkern.LaunchError, match=f"{blocks + 1} blocks; an H200 .* {blocks} at"):
        k(blocks + 1, threads, cooperative=True, shared_bytes=shared, device="emu")


def test_all_blocks_must_run(nvrtc):
    k, x = kernel(STEPS), np.zeros(64, "i4")
    with pytest.raises(ValueError, match="cooperative launch runs all its blocks"):
        smemkern.trace(k, 2, 32, x, x.copy(), 1, blocks=1, hazards=False)


def test_a_grid_barrier_that_one_block_leaves_out(nvrtc):
    source = STEPS.replace("for (int r", "if (blockIdx.x == 1) return; for (int r")
    k, x = kernel(source), np.zeros(64, "i4")
    with pytest.raises(smemkern.LaunchError, match="max_instructions"):
        k(2, 32, x, x.copy(), 1, max_instructions=20_000, device="emu")


def test_without_a_cooperative_launch_there_is_no_workspace(nvrtc):
    ptx = """.version 8.3
    .target sm_90
    .address_size 64
    .visible .entry other() { ret; }
    .visible .entry k(.param .u64 out) {
        .reg .b32 %r<2>; .reg .b64 %d;
        ld.param.u64 %d, [out];
        mov.u32 %r0, %envreg1;
        mov.u32 %r1, %envreg2;
        st.global.u32 [%d], %r0;
        st.global.u32 [%d+4], %r1;
        ret;
    }"""
    out = np.ones(2, "u4")
    smemkern.Kernel(ptx, "k")(1, 1, out, device="emu")
    assert out.any()  # a kernel that reads it is launched cooperatively
    smemkern.Kernel(ptx, "other")(10_000, 1, device="emu")  # one that does not, is not
