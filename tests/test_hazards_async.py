"""Hazards of what runs beside the threads: mbarriers, bulk stores, wgmma and their proxy.

Kernels in CUDA C with one step of the protocol left out each; as they should be they are clean.
"""

import ast
import re
import subprocess
import sys

import numpy as np
import pytest

import smemkern
from checks import random_matrix

PARTS = r"""
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void make(unsigned bar, unsigned n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(n) : "memory");
}
__device__ void arrive(unsigned bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ void wait(unsigned bar, unsigned parity) {
    unsigned done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    } while (!done);
}
"""

OBJECT = (
    PARTS
    + r"""
extern "C" __global__ void k(float *y) {
    __shared__ float tile[64];
    __shared__ unsigned long long bar;
    const unsigned t = threadIdx.x;
    if (t == 0) make(at(&bar), 64);
    /*made*/__syncthreads();
    tile[t] = t;
    arrive(at(&bar));
    wait(at(&bar), 0);
    y[t] = tile[t ^ 33];
}
"""
)

STORE = (
    PARTS
    + r"""
extern "C" __global__ void k(float *y) {
    __shared__ __align__(128) float tile[64];
    const unsigned t = threadIdx.x;
    for (int round = 0; round < 2; round++) {
        if (t == 0) /*read*/asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        /*free*/__syncthreads();
        tile[t] = t + 64 * round;
        /*fence*/asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        /*full*/__syncthreads();
        if (t == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
                         ::"l"(y + 64 * round), "r"(at(tile)) : "memory");
            /*commit*/asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }
    if (t == 0) /*end*/asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
"""
)

LOAD = (
    PARTS
    + r"""
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ __align__(128) float tile[64];
    __shared__ unsigned long long bar;
    const unsigned t = threadIdx.x;
    if (t == 0) {
        make(at(&bar), 1);
        /*made*/asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(at(&bar))
                     : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1], 256, [%2];" ::"r"(at(tile)), "l"(x), "r"(at(&bar)) : "memory");
    }
    wait(at(&bar), 0);
    y[t] = tile[63 - t];
}
"""
)

# 64 x 8 x 8 of tf32, twice into one tile of shared memory.
PRODUCT = (
    PARTS
    + r"""
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ __align__(1024) float a[64 * 8], b[8 * 8];
    const unsigned t = threadIdx.x;
    float d[4] = {};
    for (int round = 0; round < 2; round++) {
        for (int i = t; i < 512; i += 128) a[i] = x[i];
        if (t < 64) b[t] = x[t];
        /*fence*/asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        const unsigned long long near = 128 >> 4, far = 256 >> 4;
        const unsigned long long of_a = at(a) >> 4 | near << 16 | far << 32;
        const unsigned long long of_b = at(b) >> 4 | near << 16 | far << 32;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0, %1, %2, %3}, %4, %5,"
                     " 1, 1, 1;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "l"(of_a), "l"(of_b));
        /*commit*/asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        /*wait*/asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        /*free*/__syncthreads();
    }
    for (int i = 0; i < 4; i++) y[4 * t + i] = d[i];
}
"""
)


def found(source, threads, *arrays):
    kernel = smemkern.Kernel(source, "k", ("-arch=compute_90a",))
    trace = smemkern.trace(kernel, 1, threads, *arrays)
    return {hazard.kind for hazard in trace.hazards}, trace


def without(source, step):
    """Less the rest of the line behind /*step*/."""
    less, count = re.subn(rf"/\*{step}\*/.*", ";", source)
    assert count == 1
    return less


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(
    ("step", "kinds"), [(None, set()), ("made", {"RAW"})], ids=["right", "made"]
)
def test_an_mbarrier_is_made_before_it_is_used(step, kinds):
    source = without(OBJECT, step) if step else OBJECT
    y = np.zeros(64, "f4")
    assert found(source, 64, y)[0] == kinds


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(
    ("step", "kinds"),
    [
        (None, set()),
        ("read", {"async-write"}),
        ("free", {"WAR"}),
        ("fence", {"proxy"}),
        ("full", {"RAW", "proxy"}),
        ("commit", {"async-write", "async-read"}),
        ("end", {"async-read"}),
    ],
)
def test_what_a_bulk_store_reads(step, kinds):
    source = without(STORE, step) if step else STORE
    y = np.zeros(128, "f4")
    got, _ = found(source, 64, y)
    assert got <= kinds if step == "full" else got == kinds
    assert bool(got) == bool(kinds)


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("step", [None, "made"])
def test_the_proxy_finds_the_mbarrier(step):
    x, y = np.arange(64, dtype="f4"), np.zeros(64, "f4")
    source = without(LOAD, step) if step else LOAD
    kinds, trace = found(source, 64, x, y)
    assert kinds == set()
    assert [row.kind for row in trace.benign] == (["proxy-init"] if step else [])


SOURCE = r"""
extern "C" __global__ void k(float *x, float *y, int size) {
    __shared__ __align__(16) float tile[128];
    const unsigned t = threadIdx.x;
    const unsigned to = (unsigned)__cvta_generic_to_shared(tile + 4 * (t % 32));
    if (t < 32)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2; cp.async.wait_all;" ::"r"(to),
                     "l"(x + 4 * t), "r"(size) : "memory");
    else
        x[4 * (t - 32) + 3] = 5;
    __syncthreads();
    y[t] = tile[t];
}
"""


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("size", range(0, 17, 2))
def test_a_copy_that_fills_up_with_zeros_reads_no_more_than_its_size(size):
    """Another warp writes the last 4 of the 16 bytes."""
    x, y = np.ones(128, "f4"), np.zeros(64, "f4")
    trace = smemkern.trace(smemkern.Kernel(SOURCE, "k"), 1, 64, x, y, np.int32(size))
    assert [row.kind for row in trace.hazards] == (["RAW"] if size > 12 else [])
    if size % 4 == 0:
        assert np.array_equal(y.reshape(-1, 4)[:, :3] == 1, [np.arange(3) < size // 4] * 16)


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("step", [None, "made"])
def test_the_fence_releases_the_mbarrier_to_the_cluster(step):
    """CUTLASS's way: another thread makes it, and the cluster's blocks arrive without a release."""
    barrier = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;"
    source = without(LOAD, step) if step else LOAD
    source = source.replace("t == 0) {\n        make", "t == 32) {\n        make")
    source = source.replace("__syncthreads();", f'asm volatile("{barrier}" ::: "memory");')
    x, y = np.arange(64, dtype="f4"), np.zeros(64, "f4")
    kinds, trace = found(source, 64, x, y)
    assert kinds == ({"RAW"} if step else set())
    assert [row.kind for row in trace.benign] == (["proxy-init"] if step else [])


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(
    ("step", "kinds"),
    [
        (None, set()),
        ("fence", {"proxy"}),
        ("wait", {"async-write"}),
        ("commit", {"async-write"}),
        ("free", {"async-write", "WAR"}),
    ],
)
def test_what_wgmma_reads(step, kinds):
    x, y = np.ones(512, "f4"), np.zeros(512, "f4")
    got, _ = found(without(PRODUCT, step) if step else PRODUCT, 128, x, y)
    assert got <= kinds
    assert bool(got) == bool(kinds)


AGAIN = (
    PARTS
    + r"""
extern "C" __global__ void k(float *y) {
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {
        make(at(&bar), 32);
        BETWEEN
        make(at(&bar), 32);
    }
    __syncthreads();
    arrive(at(&bar));
    wait(at(&bar), 0);
}
"""
)
INVAL = 'asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(at(&bar)) : "memory");'
DATA = "*(volatile unsigned long long *)&bar = 0x8000000000000001ull;"


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(
    ("between", "notes"), [("", ["init-again"]), (INVAL, []), (DATA, [])], ids=["", "inval", "data"]
)
def test_an_mbarrier_is_made_twice(between, notes):
    kinds, trace = found(AGAIN.replace("BETWEEN", between), 32, np.zeros(1, "f4"))
    assert kinds == set()
    assert [row.kind for row in trace.benign] == notes
    assert all("without mbarrier.inval" in row.message for row in trace.benign)


# Two operations read one place; the wait is for the first one only.
TWO_STORES = (
    PARTS
    + r"""
extern "C" __global__ void k(float *y, int lanes) {
    __shared__ __align__(128) float tile[64];
    const unsigned t = threadIdx.x;
    tile[t] = t;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < 2; i++)
        if (t == i * (lanes - 1)) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
                         ::"l"(y + 64 * i), "r"(at(tile)) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    if (t == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
    if (t == 1 && BOTH) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    __syncthreads();
    tile[t] = 0;
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
"""
)


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(
    ("pending", "lanes", "both", "races"),
    [(0, 1, 0, False), (1, 1, 0, True), (0, 2, 1, False), (0, 2, 0, True)],
    ids=["all", "all but one", "two lanes", "one lane of two"],
)
def test_each_bulk_store_of_one_place_is_waited_for(pending, lanes, both, races):
    source = TWO_STORES.replace("PENDING", str(pending)).replace("BOTH", str(both))
    y = np.zeros(128, "f4")
    got, _ = found(source, 64, y, np.int32(lanes))
    assert bool(got) == races
    assert got <= {"async-write", "WAR"}


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(("pending", "kinds"), [(0, set()), (1, {"async-write"})])
def test_each_wgmma_of_one_place_is_waited_for(pending, kinds):
    again = re.search(r' *asm volatile\("wgmma.mma_async.*?"memory"\);', PRODUCT, re.S)
    twice = PRODUCT.replace(again[0], again[0].replace("/*commit*/", "") + "\n" + again[0])
    source = twice.replace("wait_group.sync.aligned 0", f"wait_group.sync.aligned {pending}")
    assert source.count("wgmma.commit_group") == 2
    got, _ = found(source, 128, np.ones(512, "f4"), np.zeros(512, "f4"))
    assert got == kinds


# A producer's write, and a fence by it or by the consumer; round after round.
HANDOVER = (
    PARTS
    + r"""
#define FENCE(where) \
    if (FENCES & where) asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
extern "C" __global__ void k(float *y) {
    __shared__ __align__(128) float tile[32];
    __shared__ unsigned long long full, empty;
    const unsigned t = threadIdx.x;
    if (t == 0) make(at(&full), 32), make(at(&empty), 1);
    __syncthreads();
    for (int i = 0; i < ROUNDS; i++) {
        if (t < 32) {
            FENCE(1);
            tile[t] = t + i;
            FENCE(2);
            arrive(at(&full));
            FENCE(4);
            wait(at(&empty), i & 1);
        } else if (t == 32) {
            FENCE(8);
            wait(at(&full), i & 1);
            FENCE(16);
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;"
                         ::"l"(y), "r"(at(tile)) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
            arrive(at(&empty));
        }
    }
}
"""
)


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("rounds", [1, 20])
@pytest.mark.parametrize("fences", range(32))
def test_where_the_proxy_fence_is(fences, rounds):
    """Only one between the write and the arrival, or between the wait and the copy, counts."""
    source = HANDOVER.replace("FENCES", str(fences)).replace("ROUNDS", str(rounds))
    y = np.zeros(32, "f4")
    got, _ = found(source, 64, y)
    assert got == (set() if fences & (2 | 16) else {"proxy"})


# Two groups of warps wait at barrier 1 in different places.
PLACES = r"""
extern "C" __global__ void k(float *y) {
    __shared__ float tile[64];
    const unsigned t = threadIdx.x;
    if (t < 32) {
        tile[t] = t;
        asm volatile("BARRIER 1;" ::: "memory");
    } else {
        tile[t] = 2 * t;
        asm volatile("BARRIER 1;" ::: "memory");
    }
    y[t] = tile[63 - t];
}
"""


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(("barrier", "kinds"), [("barrier.sync", set()), ("bar.sync", {"barrier"})])
def test_warps_may_wait_at_one_unaligned_barrier_in_different_places(barrier, kinds):
    y = np.zeros(64, "f4")
    assert found(PLACES.replace("BARRIER", barrier), 64, y)[0] == kinds


@pytest.mark.usefixtures("nvrtc")
def test_messages():
    _, trace = found(without(STORE, "fence"), 64, np.zeros(128, "f4"))
    assert "no fence.proxy.async" in trace.hazards[0].message
    _, trace = found(without(STORE, "end"), 64, np.zeros(128, "f4"))
    assert "block ends without waiting" in trace.hazards[0].message


UNWRITTEN = """
import re, sys, tempfile
from pathlib import Path
import numpy as np
import smemkern
name = "gemm_naive-float32.ptx"
config = smemkern._core.config()
text = Path(config["images"], name).read_text()
with tempfile.TemporaryDirectory() as folder:
    Path(folder, name).write_text(re.sub(r"%ctaid\\.x", "0", text))
    smemkern._core.configure(images=folder, kernels=config["kernels"])
    a = np.ones((64, 64), "f4")
    for more in ({}, {"beta": 1.0, "out": a.copy()}):
        trace = smemkern.trace("gemm", a, a, variant="naive", **more)
        print([(h.kind, h.count, h.message) for h in trace.hazards])
"""


def test_a_result_that_is_not_all_written():
    """Every block makes the first tile: the rest of C is left as it was."""
    done = subprocess.run([sys.executable, "-c", UNWRITTEN], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    fresh, old = map(ast.literal_eval, done.stdout.splitlines())
    [(kind, count, message)] = fresh
    assert (kind, count) == ("unwritten", 64 * 64 - 32 * 32)
    assert message == (
        "3072 words of the result were never written, the first at the result, element (0, 32)"
    )
    assert "unwritten" not in {kind for kind, *_ in old}


@pytest.mark.parametrize("row", smemkern.variants("gemm"), ids=lambda row: row.name)
def test_one_row_that_is_no_whole_number_of_chunks(row, rng):
    """A store by TMA ends within 16 bytes: what it writes there counts as written."""
    for dtype in row.dtypes:
        for n in (121, 122, 127):
            a, b = random_matrix(rng, (1, 40), dtype), random_matrix(rng, (40, n), dtype)
            assert smemkern.trace("gemm", a, b, variant=row.name).hazards == ()
