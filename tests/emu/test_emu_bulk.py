"""cp.async.bulk, cp.reduce.async.bulk: loads that end phases, stores in groups, their mistakes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_emu_mbarrier import HELPERS

import smemkern

BULK = r"""
__device__ void load(void *to, const void *from, unsigned bytes, u64 *b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];"
                 :: "r"(at(to)), "l"(from), "r"(bytes), "r"(at(b)) : "memory");
}
__device__ void store(void *to, const void *from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(to), "r"(at(from)), "r"(bytes) : "memory");
}
__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int n> __device__ void wait_group() {
    asm volatile("cp.async.bulk.wait_group %0;" :: "n"(n) : "memory");
}
template <int n> __device__ void wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(n) : "memory");
}
__device__ void fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void fence_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
"""


def kernel(source: str) -> smemkern.Kernel:
    return smemkern.Kernel(HELPERS + BULK + source, "k", options=("-arch=compute_90",))


RING = r"""
extern "C" __global__ void k(const int *in, int *out, int n) {
    __shared__ alignas(128) int slot[3][256];
    __shared__ alignas(128) int result[2][256];
    __shared__ u64 full[3], empty[3];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 3; s++) init(&full[s], 1), init(&empty[s], 128);
        fence_init();
    }
    __syncthreads();
    const int t = threadIdx.x - 32;
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            for (int i = 0; i < n; i++) {
                const int s = i % 3;
                wait(&empty[s], i / 3 & 1 ^ 1);
                arrive_expect(&full[s], 1024);
                load(slot[s], in + i * 256, 512, &full[s]);
                load(slot[s] + 128, in + i * 256 + 128, 512, &full[s]);
            }
        return;
    }
    for (int i = 0; i < n; i++) {
        const int s = i % 3;
        wait(&full[s], i / 3 & 1);
        if (t == 0) wait_read<1>();
        asm volatile("bar.sync 1, 128;" ::: "memory");
        for (int k = t; k < 256; k += 128) result[i & 1][k] = 3 * slot[s][255 - k] + i;
        arrive(&empty[s]);
        fence();
        asm volatile("bar.sync 1, 128;" ::: "memory");
        if (t == 0) store(out + i * 256, result[i & 1], 1024), commit();
    }
    if (t == 0) wait_group<0>();
}"""


def test_ring_of_bulk_loads_and_stores(nvrtc, device, rng):
    n = 43
    given = rng.integers(0, 1 << 20, (n, 256)).astype("i4")
    out = np.zeros_like(given)
    kernel(RING)(1, 160, given, out, n, device=device)
    assert (out == 3 * given[:, ::-1] + np.arange(n, dtype="i4")[:, None]).all()


def test_data_is_not_there_before_the_wait(nvrtc):
    k = kernel(r"""
    extern "C" __global__ void k(const float *in, float *out) {
        __shared__ alignas(16) float tile[8];
        __shared__ u64 b;
        init(&b, 1);
        arrive_expect(&b, 32);
        load(tile, in, 32, &b);
        out[0] = tile[3];
        wait(&b, 0);
        out[1] = tile[3];
        tile[4] = 5;
        store(out + 4, tile + 4, 16);
        commit();
        tile[4] = 6;      // the store has not read it yet
        wait_read<0>();
        tile[4] = 7;      // now it has
        out[2] = out[4];  // but not written it
        wait_group<0>();
        out[3] = out[4];
    }""")
    given = np.arange(8, dtype="f4")
    out = np.full(8, -1, "f4")
    k(1, 1, given, out, device="emu")
    assert np.isnan(out[0])
    assert out[1:5].tolist() == [3, -1, 6, 6]


def test_stores_are_done_when_the_block_ends(nvrtc, device):
    k = kernel(r"""
    extern "C" __global__ void k(int *out) {
        __shared__ alignas(16) int tile[32];
        tile[threadIdx.x] = threadIdx.x + 7;
        fence();
        __syncthreads();
        if (threadIdx.x == 0) { store(out, tile, 128); commit(); wait_read<0>(); }
    }""")
    out = np.zeros(32, "i4")
    k(1, 32, out, device=device)
    assert (out == np.arange(32) + 7).all()


WITHIN = r"""
    extern "C" __global__ void CLUSTER k(int *out) {
        __shared__ alignas(16) int from[32], to[32];
        __shared__ u64 b;
        const int t = threadIdx.x;
        if (t == 0) init(&b, 1);
        from[t] = 100 - t;
        fence();
        __syncthreads();
        if (t == 0) {
            arrive_expect(&b, 128);
            asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                         " [%0], [%1], %2, [%3];"
                         :: "r"(at(to)), "r"(at(from)), "r"(128), "r"(at(&b)) : "memory");
        }
        wait(&b, 0);
        out[t] = to[t];
    }"""


def test_within_shared_memory(nvrtc, device):
    k = kernel(WITHIN.replace("CLUSTER", "__cluster_dims__(1, 1, 1)"))
    out = np.zeros(32, "i4")
    k(1, 32, out, device=device)
    assert (out == 100 - np.arange(32)).all()


def test_within_shared_memory_needs_a_cluster(nvrtc):
    k = kernel(WITHIN.replace("CLUSTER", ""))
    with pytest.raises(smemkern.LaunchError, match="without clusters"):
        k(1, 32, np.zeros(32, "i4"), device="emu")


REDUCTIONS = [
    ("add", "u32", "u4", np.add),
    ("add", "s32", "i4", np.add),
    ("add", "u64", "u8", np.add),
    ("add", "f32", "f4", np.add),
    ("add", "f64", "f8", np.add),
    ("add.noftz", "f16", "f2", np.add),
    ("min", "s32", "i4", np.minimum),
    ("max", "u32", "u4", np.maximum),
    ("min", "s64", "i8", np.minimum),
    ("max", "u64", "u8", np.maximum),
    ("min", "f16", "f2", np.minimum),
    ("and", "b32", "u4", np.bitwise_and),
    ("or", "b64", "u8", np.bitwise_or),
    ("xor", "b32", "u4", np.bitwise_xor),
    ("inc", "u32", "u4", lambda old, b: np.where(old >= b, 0, old + 1)),
    ("dec", "u32", "u4", lambda old, b: np.where((old == 0) | (old > b), b, old - 1)),
]


@pytest.mark.parametrize(("op", "type_", "dtype", "model"), REDUCTIONS)
def test_reductions(nvrtc, device, rng, op, type_, dtype, model):
    source = r"""
    extern "C" __global__ void k(const char *in, char *out) {
        __shared__ alignas(16) char tile[512];
        for (int k = threadIdx.x; k < 512; k += 32) tile[k] = in[k];
        fence();
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.OP.TYPE"
                         " [%0], [%1], %2;"
                         :: "l"(out), "r"(at(tile)), "r"(512) : "memory");
            commit();
            wait_group<0>();
        }
    }""".replace("OP", op).replace("TYPE", type_)
    n = 512 // np.dtype(dtype).itemsize
    if dtype[0] == "f":
        old, b = rng.standard_normal((2, n)).astype(dtype)
    else:
        old, b = rng.integers(0, 100, (2, n)).astype(dtype)
    out = old.copy()
    kernel(source)(1, 32, b, out, device=device)
    expected = model(old, b).astype(dtype)
    assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("load(tile, in, 20, &b);", "must be multiples of 16"),
        ("load(tile, in + 1, 32, &b);", "must be multiples of 16"),
        ("load(tile + 1, in, 32, &b);", "misaligned"),
        ("load(tile, in + 4, 64, &b);", "out of bounds: the kernel reads"),
        ("load(tile + 8, in, 64, &b);", "out of bounds: the kernel writes"),
        ("load(tile, in, 32, &b + 1);", "no mbarrier"),
        ("store((void *)in, tile, 32); commit(); wait_group<0>();", "read-only"),
        ("store((void *)(in + 4), tile, 64);", "out of bounds"),
        (
            "load(tile, in, 32, &b);"
            ' asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at(&b)));',
            "in flight",
        ),
    ],
)
def test_misuse_is_named(nvrtc, body, message):
    k = kernel(
        r"""
    extern "C" __global__ void k(const float *in) {
        __shared__ alignas(16) float tile[16];
        __shared__ u64 two[2];
        u64 &b = two[0];
        two[1] = 0;
        init(&b, 1);
        BODY
    }""".replace("BODY", body)
    )
    given = np.zeros(16, "f4")
    given.flags.writeable = message != "read-only"
    with pytest.raises(smemkern.LaunchError, match=message):
        k(1, 1, given, device="emu")


@pytest.mark.parametrize(
    "text",
    [
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [t], [%d0], 16, [b], %h0;",
        "cp.async.bulk.shared::cluster.shared::cta.bulk_group [t], [t], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.cas.b32 [%d0], [t], 16;",
        "cp.async.bulk.wait_group.write 0;",
    ],
)
def test_unknown_forms_are_refused(text):
    ptx = (
        ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry k() {"
        " .reg .b64 %d<2>; .reg .b16 %h<2>; .shared .align 16 .b32 t[8];"
        " .shared .align 8 .b64 b; " + text + " ret; }\n"
    )
    k = smemkern.Kernel(ptx, "k")
    with pytest.raises(smemkern.UnsupportedInstructionError, match=re.escape(text.rstrip(";"))):
        k(1, 1, device="emu")


@pytest.mark.parametrize(
    ("left_out", "kind"),
    [
        ("", None),
        ("wait(&empty[s], i / 3 & 1 ^ 1);", "deadlock"),
        ("wait(&full[s], i / 3 & 1);", "async-read"),
    ],
)
def test_hazards_of_a_ring(nvrtc, rng, left_out, kind):
    assert left_out in RING
    k = kernel(RING.replace(left_out, "") if left_out else RING)
    given = rng.integers(0, 1 << 20, (9, 256)).astype("i4")
    trace = smemkern.trace(k, 1, 160, given, np.zeros_like(given), 9, hazards=True)
    assert {kind} - {None} <= {h.kind for h in trace.hazards}
    assert bool(trace.hazards) == bool(kind)
