"""Races that do no harm, and neighbours of them that do.

A read whose value a compare-and-swap checks is listed in `benign`. Threads that write one value and
read it again do not race at all.
"""

import random

import numpy as np
import pytest

import smemkern

pytestmark = pytest.mark.usefixtures("nvrtc")

CAS_LOOP = """
extern "C" __global__ void k(unsigned long long *p, unsigned long long *out) {
    unsigned long long old = *p, assumed;
    %s
    do {
        assumed = old;
        old = atomicCAS(p, assumed, assumed + 3);
    } while (assumed != old);
    %s
}"""


def traced(source, *args, grid=2, block=64, options=(), **kw):
    kernel = smemkern.Kernel(source, "k", ("-std=c++17", *options))
    return smemkern.trace(kernel, grid, block, *args, **kw)


def cas_loop(first="", last="", options=()):
    p, out = np.zeros(1, "u8"), np.zeros(128, "u8")
    return traced(CAS_LOOP % (first, last), p, out, options=options), p


@pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
def test_a_cas_checks_the_plain_read_before_it(options):
    t, p = cas_loop(options=options)
    assert p[0] == 3 * 128
    assert t.hazards == ()
    [row] = t.benign
    assert (row.kind, row.line, row.address) == ("cas-read", 3, "argument 0, element 0")
    assert "reads argument 0, element 0" in row.message
    assert f"note: {row.message}" in str(t) and "hazard:" not in str(t)


@pytest.mark.parametrize("mine", ["block", "warp"])
def test_a_cas_loop_in_shared_memory(mine):
    source = """
extern "C" __global__ void k(int *out) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    int old = sum, assumed;
    do {
        assumed = old;
        old = atomicCAS(&sum, assumed, assumed + 3);
    } while (assumed != old);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}"""
    out = np.zeros(2, "i4")
    block = {"block": 64, "warp": 32}[mine]
    t = traced(source, out, block=block)
    assert t.hazards == ()
    assert [row.kind for row in t.benign] == ["cas-read"]
    assert (out == 3 * block).all()


def test_a_plain_write_still_races():
    t, _ = cas_loop(last="if (threadIdx.x == 5) *p = 7;")
    assert {("WAR", 3), ("WAW", 7)} <= {(row.kind, row.other_line) for row in t.hazards}


def test_a_read_that_no_cas_follows_still_races():
    t, _ = cas_loop(first="if (old > 30) return;")
    assert "WAR" in {row.kind for row in t.hazards}
    assert t.benign == ()


def test_a_second_plain_read_still_races():
    """The second read is confirmed by the CAS, the first one is not."""
    t, _ = cas_loop(
        first="out[blockIdx.x * 64 + threadIdx.x] = old; old = *(volatile unsigned long long *)p;"
    )
    assert {(row.kind, row.other_line) for row in t.hazards} == {("WAR", 3)}


def test_a_cas_of_another_word_does_not_confirm():
    source = """
extern "C" __global__ void k(int *p) {
    int old = *p;
    atomicCAS(p + 1, old, old + 1);
    atomicCAS(p + threadIdx.x % 2, 0, 1);
}"""
    t = traced(source, np.zeros(2, "i4"))
    assert {row.kind for row in t.hazards} == {"WAR"}


def test_a_cas_of_half_the_word_does_not_confirm():
    source = """
extern "C" __global__ void k(unsigned long long *p) {
    unsigned long long old = *p;
    atomicCAS((unsigned *)p, (unsigned)old, (unsigned)old + 1);
}"""
    t = traced(source, np.zeros(1, "u8"), grid=1, options=("-G",))
    assert {row.kind for row in t.hazards} == {"WAR"}
    assert t.benign == ()


def test_a_checked_kernel_may_have_benign_races():
    kernel = smemkern.Kernel(CAS_LOOP % ("", ""), "k", check=True)
    p = np.zeros(1, "u8")
    kernel(2, 64, p, np.zeros(1, "u8"))
    assert p[0] == 3 * 128


# ---- equal writes that are read ----

FLAG = """
extern "C" __global__ void k(int *flag, int *out) {
    __shared__ int any;
    %s = %s; // store
    out[blockIdx.x * blockDim.x + threadIdx.x] = %s; // load
}"""


def flagged(where, value, grid=1, block=64, **kw):
    """Unoptimised: otherwise the store's value would be used without a load."""
    target = {"shared": "any", "global": "*flag"}[where]
    source = FLAG % (target, value, target)
    out = np.zeros(grid * block, "i4")
    args = np.zeros(1, "i4"), out
    return traced(source, *args, grid=grid, block=block, options=("-G",), **kw), out


@pytest.mark.parametrize("where", ["shared", "global"])
@pytest.mark.parametrize("block", [32, 33, 64, 96])
@pytest.mark.parametrize("grid", [1, 5])
def test_each_thread_reads_the_value_that_all_write(where, block, grid):
    t, out = flagged(where, "17", grid, block)
    assert t.hazards == ()
    assert (out == 17).all()


@pytest.mark.parametrize("where", ["shared", "global"])
def test_equal_writes_can_be_asked_for_with_their_reads(where):
    t, _ = flagged(where, "17", equal_writes=True)
    assert {row.kind for row in t.hazards} >= {"WAW", "RAW"}


@pytest.mark.parametrize("where", ["shared", "global"])
@pytest.mark.parametrize("odd_one", [0, 31, 40, 63])
def test_one_other_value_is_a_race(where, odd_one):
    t, _ = flagged(where, f"17 + (threadIdx.x == {odd_one})")
    assert "WAW" in {row.kind for row in t.hazards}
    assert all("different" not in row.message for row in t.hazards)


@pytest.mark.parametrize("reader", [0, 15, 16, 31, 32, 63])
def test_a_reader_that_did_not_write_races(reader):
    """Half of each warp writes 1; `reader` reads before or after them."""
    source = f"""
extern "C" __global__ void k(int *out) {{
    __shared__ int any;
    if (threadIdx.x == 0) any = 0;
    __syncthreads();
    if (threadIdx.x % 32 < 16) any = 1; // store
    if (threadIdx.x == {reader} || threadIdx.x % 32 < 16) out[threadIdx.x] = any; // load
}}"""
    t = traced(source, np.zeros(64, "i4"), grid=1, options=("-G",))
    kinds = {row.kind for row in t.hazards}
    assert kinds == (set() if reader % 32 < 16 else {"RAW"})


def test_a_later_write_of_another_value_races_with_all_writers():
    """Thread 0 writes 1, as all do, and then 2: the other threads' writes are not ordered with it.

    A barrier of warp 0 alone orders thread 0 with its own warp.
    """
    source = """
extern "C" __global__ void k(int *out) {
    __shared__ int any;
    any = 1; // first
    __syncwarp();
    if (threadIdx.x == 0) any = 2; // second
    out[threadIdx.x] = threadIdx.x;
}"""
    t = traced(source, np.zeros(64, "i4"), grid=1, options=("-G",))
    assert {row.kind for row in t.hazards} == {"WAW"}
    alone = traced(source, np.zeros(32, "i4"), grid=1, block=32, options=("-G",))
    assert alone.hazards == ()


def test_equal_writes_of_bytes():
    source = """
extern "C" __global__ void k(unsigned char *out) {
    __shared__ unsigned char any[4];
    any[threadIdx.x % 4] = 9; // store
    out[threadIdx.x] = any[threadIdx.x % 4 %s]; // load
}"""
    out = np.zeros(64, "u1")
    assert traced(source.replace("%s", ""), out, grid=1, options=("-G",)).hazards == ()
    t = traced(source.replace("%s", "^ 1"), out, grid=1, options=("-G",))
    assert {row.kind for row in t.hazards} == {"RAW"}


THREADS = (0, 1, 31, 32, 33)  # of two warps


# Warp 0 stores numbers one by one, warp 1 the same ones by stmatrix; element ODD differs.
MATRIX_STORES = """
extern "C" __global__ void k(int *y) {
    __shared__ __align__(16) unsigned short tile[256];
    const unsigned t = threadIdx.x, l = t % 32, row = l / 4, column = 2 * (l % 4);
    if (FINE) __syncwarp();
    if (t < 32) {
        for (int i = 0; i < 8; i++) tile[l + 32 * i] = 3 * (l + 32 * i) + (l + 32 * i == ODD);
    } else {
        unsigned f[4];
        for (int k = 0; k < 4; k++) {
            const unsigned e = 64 * k + (TRANS ? 8 * column + row : 8 * row + column);
            f[k] = 3 * e | 3 * (e + (TRANS ? 8 : 1)) << 16;
        }
        asm volatile("stmatrix.sync.aligned.m8n8.x4MODE.shared.b16 [%0], {%1, %2, %3, %4};"
                     ::"r"((unsigned)__cvta_generic_to_shared(tile + 8 * l)), "r"(f[0]), "r"(f[1]),
                     "r"(f[2]), "r"(f[3]) : "memory");
    }
    __syncthreads();
    for (int i = t; i < 256; i += 64) y[i] = tile[i];
}"""


@pytest.mark.parametrize("fine", [0, 1], ids=["block", "fine"])
@pytest.mark.parametrize("transposed", [0, 1], ids=["rows", "transposed"])
@pytest.mark.parametrize("differs", [False, True], ids=["equal", "differs"])
def test_stmatrix_of_equal_values(fine, transposed, differs):
    odd_one = random.SystemRandom().randrange(256) if differs else -1
    defines = (f"-DFINE={fine}", f"-DTRANS={transposed}", f"-DODD={odd_one}", "-arch=compute_90")
    source = MATRIX_STORES.replace("MODE", ".trans" if transposed else "")
    y = np.zeros(256, "i4")
    t = traced(source, y, grid=1, options=defines)
    assert y[:odd_one].tolist() == list(range(0, 768, 3))[:odd_one]
    assert [h.kind for h in t.hazards] == (["WAW"] if differs else []), odd_one
    if differs:
        assert t.hazards[0].address == f"shared tile[{odd_one}]"


def random_program(rng):
    """Steps ("write", value, threads), ("read", None, threads), and ("barrier", None, ())."""
    steps = []
    for _ in range(rng.randint(2, 6)):
        kind = rng.choices(["write", "read", "barrier"], [4, 4, 1])[0]
        threads = tuple(t for t in THREADS if kind != "barrier" and rng.random() < 0.6)
        steps.append((kind, rng.choices([1, 2], [5, 1])[0] if kind == "write" else None, threads))
    return steps


def program_source(steps, first):
    lines = []
    for kind, value, threads in steps:
        which = f"{sum(1 << t for t in threads)}ull >> threadIdx.x & 1"
        lines.append(
            {
                "barrier": "__syncthreads();",
                "write": f"if ({which}) word = {value};",
                "read": f"if ({which}) seen += word;",
            }[kind]
        )
    body = "\n    ".join(lines)
    return f"""
extern "C" __global__ void k(int *out) {{
    __shared__ int word;
    int seen = 0;
    {first}
    if (threadIdx.x == 0) word = 0;
    __syncthreads();
    {body}
    out[threadIdx.x] = seen;
}}"""


def races(steps):
    """True, False, or None.

    None: the detector may report a read that does no harm. Its thread wrote before a barrier, or
    was the first to write, which depends on the order of the warps.
    """
    answer, written = False, set()  # threads that wrote the value before the last barrier
    segment = []
    for step in [*steps, ("barrier", None, ())]:
        if step[0] != "barrier":
            segment.append(step)
            continue
        writes = {(t, v) for kind, v, threads in segment if kind == "write" for t in threads}
        if any(t != u and v != w for t, v in writes for u, w in writes):
            return True
        own = set()
        for kind, _, threads in segment:
            for t in threads:
                others = any(u != t for u, _ in writes)
                own_warp = {u for u in own if u // 32 == t // 32}
                if kind == "write":
                    own.add(t)
                elif others and t not in own | written:
                    return True
                elif others and (t not in own or len(own_warp) < 2):
                    answer = None
        written |= own
        segment = []
    return answer


FENCE = "if (out == nullptr) __threadfence_block();"  # the detector then has clocks by thread


@pytest.mark.parametrize("first", ["", FENCE], ids=["barriers", "fences"])
@pytest.mark.parametrize("between", ["none", "barrier"])
def test_a_write_over_an_own_value(first, between):
    """Thread 32 writes 2 and then 1, thread 33 writes 1: it races with the 2."""
    steps = [("write", 2, (32,)), ("write", 1, (32, 33))]
    if between == "barrier":
        steps.insert(1, ("barrier", None, ()))
    t = traced(program_source(steps, first), np.zeros(64, "i4"), grid=1, options=("-G",))
    assert {row.kind for row in t.hazards} == ({"WAW"} if between == "none" else set())


@pytest.mark.parametrize("one", [2, 1])
def test_an_own_value_in_global_memory(one):
    """Block 0 writes 2 and then 1; a barrier does not order the 2 with other blocks' 1."""
    source = f"""
extern "C" __global__ void k(int *p) {{
    if (blockIdx.x == 0 && threadIdx.x == 0) *p = {one};
    __syncthreads();
    if (threadIdx.x == 0) *p = 1;
}}"""
    t = traced(source, np.zeros(1, "i4"), grid=3, options=("-G",))
    assert {row.kind for row in t.hazards} == ({"WAW"} if one == 2 else set())


@pytest.mark.parametrize("first", ["", FENCE], ids=["barriers", "fences"])
def test_random_programs_on_one_word(first):
    seed = random.randrange(10**9)
    rng = random.Random(seed)
    seen = set()
    for _ in range(40):
        steps = random_program(rng)
        expected = races(steps)
        t = traced(program_source(steps, first), np.zeros(64, "i4"), grid=1, options=("-G",))
        if expected is not None:
            assert bool(t.hazards) == expected, (seed, steps, t.hazards)
        seen.add(expected)
    assert {True, False} <= seen
