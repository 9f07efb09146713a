"""Kernels with one mistake: its kind, lines and threads. Their twins without it are silent."""

import re

import numpy as np
import pytest

import smemkern

pytestmark = pytest.mark.usefixtures("nvrtc")


def traced(source, *args, grid=1, block=64, **kw):
    kernel = smemkern.Kernel(source, "k", ("-std=c++17",))
    return smemkern.trace(kernel, grid, block, *args, **kw)


def line_of(source, mark):
    """The number of the line that ends in // mark."""
    [line] = [n for n, text in enumerate(source.splitlines(), 1) if text.endswith(f"// {mark}")]
    return line


def pairs(source, trace):
    """(kind, mark of the line, mark of the other line) of each hazard."""
    marks = {}
    for n, text in enumerate(source.splitlines(), 1):
        if found := re.search(r"// (\w+)$", text):
            marks[n] = found[1]
    return {(h.kind, marks.get(h.line), marks.get(h.other_line)) for h in trace.hazards}


def floats(n):
    return np.arange(n, dtype=np.float32)


REVERSE = """
extern "C" __global__ void k(float *x, float *y) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t]; // store
    %s
    y[t] = tile[63 - t]; // load
}"""


def test_missing_barrier():
    source = REVERSE % ""
    t = traced(source, floats(64), np.zeros(64, "f4"))
    [h] = t.hazards
    assert pairs(source, t) == {("RAW", "load", "store")}
    assert h.block == (0, 0, 0)
    assert h.threads == ((0, 0, 0), (63, 0, 0))
    assert h.address == "shared tile[63]"
    assert h.count == 64
    assert "thread (63, 0, 0)" in h.message and "tile[63]" in h.message


def test_barrier_is_enough():
    assert traced(REVERSE % "__syncthreads();", floats(64), np.zeros(64, "f4")).hazards == ()


def test_within_a_warp():
    """Lockstep execution hides it; since Volta nothing promises lockstep."""
    source = REVERSE.replace("63", "31") % ""
    t = traced(source, floats(32), np.zeros(32, "f4"), block=32)
    assert pairs(source, t) == {("RAW", "load", "store")}
    source = REVERSE.replace("63", "31") % "__syncwarp();"
    assert traced(source, floats(32), np.zeros(32, "f4"), block=32).hazards == ()


def test_syncwarp_orders_no_other_warp():
    source = REVERSE % "__syncwarp();"
    t = traced(source, floats(64), np.zeros(64, "f4"))
    assert pairs(source, t) == {("RAW", "load", "store")}


def test_syncwarp_of_half_a_warp():
    source = """
extern "C" __global__ void k(float *x, float *y) {
    __shared__ float tile[32];
    int t = threadIdx.x;
    tile[t] = x[t]; // store
    __syncwarp(t < 16 ? 0xffff : 0xffff0000);
    y[t] = tile[t ^ %d]; // load
}"""
    assert traced(source % 8, floats(32), np.zeros(32, "f4"), block=32).hazards == ()
    t = traced(source % 16, floats(32), np.zeros(32, "f4"), block=32)
    assert pairs(source, t) == {("RAW", "load", "store")}


def test_a_shuffle_orders_no_memory():
    source = REVERSE.replace("63", "31") % "float u = __shfl_xor_sync(~0u, x[t], 1); y[t] = u;"
    t = traced(source, floats(32), np.zeros(32, "f4"), block=32)
    assert ("RAW", "load", "store") in pairs(source, t)


def test_missing_second_barrier():
    source = """
extern "C" __global__ void k(float *x, float *y) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    float sum = 0;
    #pragma unroll 1
    for (int i = 0; i < 4; i++) {
        tile[t] = x[64 * i + t]; // store
        __syncthreads();
        sum += tile[63 - t]; // load
        %s
    }
    y[t] = sum;
}"""
    args = floats(256), np.zeros(64, "f4")
    assert pairs(source, traced(source % "", *args)) == {("WAR", "store", "load")}
    assert traced(source % "__syncthreads();", *args).hazards == ()


def test_two_writers():
    source = """
extern "C" __global__ void k(float *x, float *y) {
    __shared__ float one;
    one = x[threadIdx.x]; // store
    __syncthreads();
    y[threadIdx.x] = one;
}"""
    t = traced(source, floats(64), np.zeros(64, "f4"))
    [h] = t.hazards
    assert (h.kind, h.line, h.other_line) == ("WAW", *[line_of(source, "store")] * 2)
    assert h.threads[0] != h.threads[1]


def test_equal_values_are_no_finding_unless_asked():
    source = """
extern "C" __global__ void k(float *x, float *y) {
    __shared__ int any;
    if (threadIdx.x == 0) any = 0;
    __syncthreads();
    if (x[threadIdx.x] > 3) any = 1; // store
    __syncthreads();
    y[threadIdx.x] = any;
}"""
    args = floats(64), np.zeros(64, "f4")
    assert traced(source, *args).hazards == ()
    t = traced(source, *args, equal_writes=True)
    assert pairs(source, t) == {("WAW", "store", "store")}


def test_bytes_of_a_word_are_apart():
    source = """
extern "C" __global__ void k(unsigned char *x, unsigned char *y) {
    __shared__ unsigned char tile[64];
    int t = threadIdx.x;
    tile[t] = x[t]; // store
    y[t] = tile[%s]; // load
}"""
    args = np.arange(64, dtype="u1"), np.zeros(64, "u1")
    assert traced(source % "t", *args).hazards == ()
    t = traced(source % "t ^ 1", *args)
    assert pairs(source, t) == {("RAW", "load", "store")}
    assert t.hazards[0].address == "shared tile[1]"


def test_a_word_then_its_bytes():
    source = """
extern "C" __global__ void k(unsigned *x, unsigned char *y) {
    __shared__ unsigned tile[64];
    int t = threadIdx.x;
    tile[t] = x[t]; // store
    y[t] = ((unsigned char *)tile)[t]; // load
}"""
    t = traced(source, np.arange(64, dtype="u4"), np.zeros(64, "u1"))
    assert pairs(source, t) == {("RAW", "load", "store")}


def test_wide_accesses():
    source = """
extern "C" __global__ void k(float4 *x, float4 *y) {
    __shared__ float4 tile[64];
    int t = threadIdx.x;
    tile[t] = x[t]; // store
    %s
    y[t] = tile[t ^ 1]; // load
}"""
    args = floats(256), np.zeros(256, "f4")
    assert pairs(source, traced(source % "", *args)) == {("RAW", "load", "store")}
    assert traced(source % "__syncthreads();", *args).hazards == ()


def test_atomics_do_not_race_with_each_other():
    source = """
extern "C" __global__ void k(int *x, int *y) {
    __shared__ int bins[8];
    int t = threadIdx.x;
    if (t < 8) bins[t] = 0; // zero
    %s
    atomicAdd(&bins[x[t] %% 8], 1); // atomic
    %s
    if (t < 8) atomicAdd(&y[t], bins[t]); // load
}"""
    args = np.arange(64, dtype="i4"), np.zeros(8, "i4")
    sync = "__syncthreads();"
    assert traced(source % (sync, sync), *args, grid=3).hazards == ()
    assert pairs(source, traced(source % ("", sync), *args)) == {("WAW", "atomic", "zero")}
    assert pairs(source, traced(source % (sync, ""), *args)) == {("RAW", "load", "atomic")}


def test_uninitialised():
    source = """
extern "C" __global__ void k(float *x, float *y) {
    __shared__ float tile[66];
    int t = threadIdx.x;
    tile[t + 1] = x[t];
    __syncthreads();
    y[t] = tile[t] // first
         + tile[t + 2]; // last
}"""
    t = traced(source, floats(128), np.zeros(128, "f4"), grid=2)
    assert {h.kind for h in t.hazards} == {"uninitialised"}
    assert {h.address for h in t.hazards} == {"shared tile[0]", "shared tile[65]"}
    assert {h.count for h in t.hazards} == {2}


def test_each_block_has_shared_memory_of_its_own():
    source = """
extern "C" __global__ void k(float *x, float *y) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (blockIdx.x == 0) tile[t] = x[t];
    __syncthreads();
    y[64 * blockIdx.x + t] = tile[63 - t]; // load
}"""
    t = traced(source, floats(64), np.zeros(128, "f4"), grid=2)
    assert {(h.kind, h.block) for h in t.hazards} == {("uninitialised", (1, 0, 0))}


def test_blocks_have_three_indexes():
    source = """
extern "C" __global__ void k(float *x, float *y) {
    __shared__ float tile[64];
    int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    if (b != 19) tile[threadIdx.x] = x[threadIdx.x];
    y[64 * b + threadIdx.x] = tile[threadIdx.x]; // load
}"""
    t = traced(source, floats(64), np.zeros(64 * 24, "f4"), grid=(2, 3, 4))
    assert {(h.kind, h.block) for h in t.hazards} == {("uninitialised", (1, 0, 3))}


def test_threads_have_three_indexes():
    source = """
extern "C" __global__ void k(float *x, float *y) {
    __shared__ float tile[64];
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    tile[t] = x[t];
    if (threadIdx.x == 3 && threadIdx.y == 1 && threadIdx.z == 5) y[0] = tile[0]; // load
}"""
    t = traced(source, floats(64), np.zeros(1, "f4"), block=(4, 2, 8))
    assert {(h.kind, max(h.threads)) for h in t.hazards} == {("RAW", (3, 1, 5))}


ONE_PLACE = """
extern "C" __global__ void k(float *x, float *y) {
    %s // store
}"""


def test_two_blocks_write_one_place():
    source = ONE_PLACE % "y[threadIdx.x] = x[64 * blockIdx.x + threadIdx.x];"
    for threads in range(4):  # which blocks share a host thread is up to the host
        t = traced(source, floats(64 * 8), np.zeros(64, "f4"), grid=8)
        [h] = t.hazards
        assert (h.kind, h.line) == ("WAW", line_of(source, "store")), threads
        assert h.block != h.other_block
        assert h.argument == 1 and h.element == (0,)
        assert h.address == "argument 1, element 0"


def test_blocks_that_write_equal_values():
    source = ONE_PLACE % "y[threadIdx.x] = 1;"
    args = floats(64), np.zeros(64, "f4")
    assert traced(source, *args, grid=8).hazards == ()
    assert len(traced(source, *args, grid=8, equal_writes=True).hazards) == 1


def test_a_block_reads_what_another_writes():
    source = ONE_PLACE % "int i = 64 * blockIdx.x + threadIdx.x; y[i] = y[(i + 64) % 512];"
    t = traced(source, floats(64), np.zeros(512, "f4"), grid=8)
    assert {h.kind for h in t.hazards} <= {"RAW", "WAR"} and t.hazards
    assert all(h.block != h.other_block for h in t.hazards)


def test_a_weak_read_beside_a_strong_one_of_another_block():
    """The strong pair is no race, the weak read is; block 0 lasts, so that a host thread of its own
    runs block 1."""
    source = """
extern "C" __global__ void k(float *x, float *y) {
    volatile float *v = y;
    if (blockIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < 20000; i++) sum += x[i % 64];
        if (threadIdx.x == 0) v[0] = sum; // write
    } else if (threadIdx.x == 0) {
        y[1] = v[0]; // strong
    } else if (threadIdx.x == 32) {
        y[2] = y[0]; // weak
    }
}"""
    t = traced(source, floats(64), np.zeros(4, "f4"), grid=2)
    assert {frozenset(pair[1:]) for pair in pairs(source, t)} == {frozenset(("write", "weak"))}


def test_element_of_an_argument():
    source = """
extern "C" __global__ void k(float *x, float *y) {
    y[5 * 7 + 3] = x[threadIdx.x];
}"""
    t = traced(source, floats(64), np.zeros((9, 7), "f4"))
    [h] = t.hazards
    assert (h.argument, h.element) == (1, (5, 3))
    assert h.address == "argument 1, element (5, 3)"


def test_global_memory_within_a_block():
    source = """
extern "C" __global__ void k(float *x, float *y) {
    int t = threadIdx.x;
    x[t] = 2 * t; // store
    %s
    y[t] = x[63 - t]; // load
}"""
    args = floats(64), np.zeros(64, "f4")
    assert pairs(source, traced(source % "", *args)) == {("RAW", "load", "store")}
    assert traced(source % "__syncthreads();", *args).hazards == ()


@pytest.mark.parametrize(
    ("statement", "kind", "words"),
    [
        ("y[t] = x[t + 1];", "out-of-bounds", "argument 0, byte 256"),
        ("y[t - 1] = x[t];", "out-of-bounds", "argument 1, byte -4"),
        ("*(float2 *)(y + 1) = *(float2 *)(x);", "misaligned", "multiple of 8"),
        ("__shared__ volatile float s[8]; s[t] = x[t];", "out-of-bounds", "shared"),
    ],
)
def test_faults(statement, kind, words):
    source = (
        'extern "C" __global__ void k(float *x, float *y) {\n'
        f"    int t = threadIdx.x;\n    {statement} // here\n}}"
    )
    y = np.zeros(64, "f4")
    t = traced(source, floats(64), y)
    [h] = t.hazards
    assert (h.kind, h.line) == (kind, line_of(source, "here"))
    assert words in h.message
    assert f"kernel k, kernel.cu:{h.line}: " in h.message  # the file without its folders
    assert t.incomplete and t.result is None
    assert not y.any()
    with pytest.raises(smemkern.LaunchError, match=re.escape(h.message.split("; block")[0])):
        traced(source, floats(64), y, hazards=False)


def test_shared_memory_over_the_limit():
    source = """
extern "C" __global__ void k(float *y) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = 1;
    y[threadIdx.x] = tile[threadIdx.x];
}"""
    t = traced(source, np.zeros(64, "f4"), shared_bytes=228 * 1024)
    [h] = t.hazards
    assert h.kind == "shared-limit" and "232448" in h.message and t.incomplete
    assert traced(source, np.zeros(64, "f4"), shared_bytes=227 * 1024).hazards == ()


# ---- barriers


BARRIER = """
extern "C" __global__ void k(float *x, float *y, int n) {
    int t = threadIdx.x;
    %s
    y[t] = x[t];
}"""


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("if (t < 16) __syncthreads(); // one", {("barrier", "one", None)}),
        ("if (t >= n) return;\n    __syncthreads(); // one", {("barrier", "one", None)}),
        (
            "if (t < 16) {\n __syncthreads(); // one\n } else {\n __syncthreads(); // two\n }",
            {("barrier", "two", "one"), ("barrier", "one", "two")},
        ),
        (
            "if (t < 32) {\n __syncthreads(); // one\n } else {\n __syncthreads(); // two\n }",
            {("barrier", "two", "one")},
        ),
        ("if (t < 40) __syncthreads(); // one", {("barrier", "one", None)}),
        ("__syncthreads();", set()),
        ("if (t >= 32) return;\n __syncthreads();", set()),
        ("if (n > 3) __syncthreads();", set()),
        ("for (int i = 0; i < n; i++) __syncthreads();", set()),
        ('asm volatile("bar.sync 1, 32;" ::: "memory");', set()),
        ('if (t < 32) asm volatile("bar.sync 1, 32;" ::: "memory");', set()),
    ],
)
def test_barriers(body, wanted):
    source = BARRIER % body
    n = 40 if "return" in body else 5
    t = traced(source, floats(64), np.zeros(64, "f4"), n)
    found = pairs(source, t)
    if len(wanted) > 1:
        assert len(found) == 1 and found <= wanted
    else:
        assert found == wanted


def test_deadlock():
    source = BARRIER % "if (t < 16) __syncthreads(); else __shfl_sync(~0u, t, 0); // one"
    t = traced(source, floats(64), np.zeros(64, "f4"), 5)
    assert "deadlock" in {h.kind for h in t.hazards}
    assert t.incomplete


# ---- cp.async

COPY = """
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ float tile[128];
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&tile[t]);
    asm volatile("cp.async.ca.shared.global [%%0], [%%1], 4;" :: "r"(to), "l"(x + t)); // copy
    %s
    y[t] = tile[%s]; // load
}"""
COMMIT = 'asm volatile("cp.async.commit_group;" ::: "memory");'
WAIT = 'asm volatile("cp.async.wait_group 0;" ::: "memory");'


@pytest.mark.parametrize(
    ("between", "index", "wanted"),
    [
        (COMMIT + WAIT, "t", set()),
        (COMMIT + WAIT + "__syncthreads();", "63 - t", set()),
        (COMMIT, "t", {("async-read", "load", "copy")}),
        (COMMIT + "__syncthreads();", "63 - t", {("async-read", "load", "copy")}),
        (WAIT, "t", {("async-read", "load", "copy")}),
        (COMMIT + "__syncthreads();" + WAIT, "63 - t", {("RAW", "load", "copy")}),
        (COMMIT + 'asm volatile("cp.async.wait_group 1;" ::: "memory");', "t",
         {("async-read", "load", "copy")}),
        (COMMIT + "tile[t] = 1; // store\n" + WAIT, "t", {("async-write", "store", "copy")}),
    ],
)  # fmt: skip
def test_copies(between, index, wanted):
    source = COPY % (between, index)
    t = traced(source, floats(64), np.zeros(64, "f4"))
    found = pairs(source, t)
    assert wanted <= found if wanted else not found
    assert {h[0] for h in found} <= {"async-read", "async-write", "RAW", "WAR"}


# ---- Kernel(check=True)


def test_checked_call_raises_and_writes_nothing():
    kernel = smemkern.Kernel(REVERSE % "", "k", check=True)
    assert kernel.check
    y = np.full(64, 7, "f4")
    with pytest.raises(smemkern.HazardError, match="RAW race") as caught:
        kernel(1, 64, floats(64), y)
    assert np.all(y == 7)
    [h] = caught.value.hazards
    assert h.kind == "RAW"
    assert caught.value.trace.hazards == (h,)


def test_checked_call_of_a_clean_kernel():
    kernel = smemkern.Kernel(REVERSE % "__syncthreads();", "k", check=True)
    y = np.zeros(64, "f4")
    assert kernel(1, 64, floats(64), y) is None
    assert np.array_equal(y, floats(64)[::-1])


def test_checked_call_out_of_bounds():
    kernel = smemkern.Kernel(REVERSE % "__syncthreads();", "k", check=True)
    y = np.zeros(8, "f4")
    with pytest.raises(smemkern.HazardError, match="out of bounds.*argument 1"):
        kernel(1, 64, floats(64), y)
    assert not y.any()


def test_checked_call_on_a_gpu_that_is_not_there():
    kernel = smemkern.Kernel(REVERSE % "", "k", check=True)
    with pytest.raises(smemkern.HazardError, match="RAW race"):  # before any GPU is asked for
        kernel(1, 64, floats(64), np.zeros(64, "f4"), device="cuda")


def test_unchecked_traces_do_not_look():
    t = traced(REVERSE % "", floats(64), np.zeros(64, "f4"), hazards=False)
    assert t.hazards == () and not t.checked
