"""mbarrier: phases, states, transaction counts, and rings of producers and consumers."""

from __future__ import annotations

import numpy as np
import pytest

import smemkern

HELPERS = r"""
typedef unsigned long long u64;
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64 *b, unsigned n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
}
__device__ u64 arrive(u64 *b) {
    u64 s;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(s) : "r"(at(b)) : "memory");
    return s;
}
__device__ u64 arrive_n(u64 *b, unsigned n) {
    u64 s;
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1], %2;"
                 : "=l"(s) : "r"(at(b)), "r"(n) : "memory");
    return s;
}
__device__ void arrive_expect(u64 *b, unsigned n) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(at(b)), "r"(n) : "memory");
}
__device__ bool test(u64 *b, u64 state) {
    unsigned p;
    asm volatile("{.reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2;"
                 " selp.u32 %0, 1, 0, p;}" : "=r"(p) : "r"(at(b)), "l"(state) : "memory");
    return p;
}
__device__ bool test_parity(u64 *b, unsigned parity) {
    unsigned p;
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;"
                 " selp.u32 %0, 1, 0, p;}" : "=r"(p) : "r"(at(b)), "r"(parity) : "memory");
    return p;
}
// Gives up, and fails the kernel, after a second or so.
__device__ void wait(u64 *b, unsigned parity) {
    for (unsigned k = 0; k < (1u << 22); k++) {
        unsigned p;
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3;"
                     " selp.u32 %0, 1, 0, p;}"
                     : "=r"(p) : "r"(at(b)), "r"(parity), "r"(1000) : "memory");
        if (p) return;
    }
    asm volatile("trap;");
}
"""


def kernel(source: str, name: str = "k", arch: str = "compute_90") -> smemkern.Kernel:
    return smemkern.Kernel(HELPERS + source, name, options=(f"-arch={arch}",))


def test_states_and_counts(nvrtc, device):
    k = kernel(r"""
    extern "C" __global__ void k(unsigned *out) {
        __shared__ u64 b;
        init(&b, 3);
        u64 first = arrive(&b);
        unsigned pending;
        asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(first));
        out[0] = pending;
        out[1] = test(&b, first);
        out[2] = test_parity(&b, 0);
        out[3] = test_parity(&b, 1);
        u64 second = arrive_n(&b, 2);
        asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(second));
        out[4] = pending;
        out[5] = test(&b, first);
        out[6] = test_parity(&b, 0);
        out[7] = test_parity(&b, 1);
        u64 third;
        asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 2;"
                     : "=l"(third) : "r"(at(&b)) : "memory");
        asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" :: "r"(at(&b)) : "memory");
        out[8] = test(&b, third);
        u64 fourth = arrive(&b);  // two are expected now
        asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(fourth));
        out[9] = pending;
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 48;" :: "r"(at(&b)));
        u64 fifth = arrive(&b);
        out[10] = test(&b, fifth);
        asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 48;"
                     :: "r"(at(&b)));
        out[11] = test(&b, fifth);
        asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at(&b)) : "memory");
    }""")
    out = np.full(12, 99, "u4")
    k(1, 1, out, device=device)
    assert out.tolist() == [3, 0, 0, 1, 2, 1, 1, 0, 1, 2, 0, 1]


RING = r"""
extern "C" __global__ void k(const int *in, int *out, int n) {
    __shared__ u64 full[STAGES], empty[STAGES];
    __shared__ int slot[STAGES][32];
    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES; s++) init(&full[s], 32), init(&empty[s], 32);
    __syncthreads();
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (int i = 0; i < n; i++) {
            const int s = i % STAGES, phase = i / STAGES & 1;
            wait(&empty[s], phase ^ 1);
            slot[s][lane] = in[i * 32 + lane];
            arrive(&full[s]);
        }
    } else {
        for (int i = 0; i < n; i++) {
            const int s = i % STAGES, phase = i / STAGES & 1;
            wait(&full[s], phase);
            out[i * 32 + lane] = slot[s][31 - lane] + i;
            arrive(&empty[s]);
        }
    }
}"""


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_ring_of_two_warps(nvrtc, device, rng, stages):
    n = 101
    given = rng.integers(0, 1 << 20, (n, 32)).astype("i4")
    out = np.zeros_like(given)
    k = smemkern.Kernel(HELPERS + RING, "k", options=("-arch=compute_90", f"-DSTAGES={stages}"))
    k(1, 64, given, out, n, device=device)
    assert (out == given[:, ::-1] + np.arange(n, dtype="i4")[:, None]).all()


def test_a_lane_may_wait_for_the_others_of_its_warp(nvrtc, device):
    k = kernel(r"""
    extern "C" __global__ void k(int *out) {
        __shared__ u64 b;
        __shared__ int value[32];
        if (threadIdx.x == 0) init(&b, 31);
        __syncthreads();
        if (threadIdx.x == 0) {
            wait(&b, 0);
            int sum = 0;
            for (int l = 1; l < 32; l++) sum += value[l];
            out[0] = sum;
        } else {
            value[threadIdx.x] = threadIdx.x;
            arrive(&b);
        }
    }""")
    out = np.zeros(1, "i4")
    k(1, 32, out, device=device)
    assert out[0] == sum(range(32))


@pytest.mark.parametrize("noinc", [False, True])
def test_cp_async_arrives(nvrtc, device, rng, noinc):
    count, suffix = (64, ".noinc") if noinc else (65, "")
    extra = "" if noinc else "if (threadIdx.x == 0) arrive(&b); arrive(&b);"
    k = kernel(
        r"""
    extern "C" __global__ void k(const int4 *in, int *out) {
        __shared__ u64 b;
        __shared__ int4 tile[64];
        const int t = threadIdx.x;
        if (t == 0) init(&b, COUNT);
        __syncthreads();
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     :: "r"(at(&tile[t])), "l"(in + t) : "memory");
        asm volatile("cp.async.mbarrier.arriveSUFFIX.shared::cta.b64 [%0];"
                     :: "r"(at(&b)) : "memory");
        EXTRA
        wait(&b, 0);
        out[t] = tile[63 - t].y;
    }""".replace("COUNT", str(count))
        .replace("SUFFIX", suffix)
        .replace("EXTRA", extra)
    )
    given = rng.integers(0, 1 << 30, (64, 4)).astype("i4")
    out = np.zeros(64, "i4")
    k(1, 64, given, out, device=device)
    assert (out == given[::-1, 1]).all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("arrive(&b);", "was not initialised"),
        ("init(&b, 0);", "count of 0"),
        ("init(&b, 1 << 20);", "must be 1 to 1048575"),
        ("init(&b, 1); arrive_n(&b, 2);", "2 arrivals at an mbarrier that expects 1"),
        (
            'init(&b, 1); asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at(&b)));'
            " arrive(&b);",
            "was not initialised",
        ),
        ("init((u64 *)((char *)&b + 4), 1);", "misaligned"),
        (
            'init(&b, 1); asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 _, [%0], 1;"'
            ' :: "r"(at(&b)));',
            "would end the phase",
        ),
        (
            "init(&b, 2); for (int k = 0; k < 3; k++)"
            ' asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 1048575;"'
            ' :: "r"(at(&b)));',
            "transaction count",
        ),
    ],
)
def test_misuse_is_named(nvrtc, body, message):
    k = kernel(
        'extern "C" __global__ void k() { __shared__ u64 two[2]; u64 &b = two[0]; ' + body + "}"
    )
    with pytest.raises(smemkern.LaunchError, match=message):
        k(1, 1, device="emu")


def test_a_phase_that_never_ends(nvrtc):
    k = kernel(r"""
    extern "C" __global__ void k() {
        __shared__ u64 b;
        if (threadIdx.x == 0) init(&b, 65);
        __syncthreads();
        arrive(&b);
        while (!test_parity(&b, 0)) {}
    }""")
    with pytest.raises(smemkern.LaunchError, match=r"deadlock.*\n.*1 of 65 arrivals are missing"):
        k(1, 64, device="emu")


@pytest.mark.parametrize("modifier", ["mbarrier.arrive.weak.shared.b64 _, [b];"])
def test_unknown_forms_are_refused(modifier):
    ptx = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k() { .shared .align 8 .b64 b; MODIFIER ret; }
""".replace("MODIFIER", modifier)
    k = smemkern.Kernel(ptx, "k")
    with pytest.raises(smemkern.UnsupportedInstructionError, match=r"mbarrier\.arrive\.weak"):
        k(1, 1, device="emu")
