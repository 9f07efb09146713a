"""The emulator runs kernels that nobody trusts: what they cannot do (docs/reliability.md).

They cannot read or write outside the arrays they were given, run for ever, or take memory without
end; and whatever they try, the process goes on and the next kernel runs.
"""

import re
import resource
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import smemkern

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
REGISTERS = """.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>;
.reg .b16 %h<4>;
.reg .b128 %q<2>;"""


def kernel(
    body,
    parameters=".param .u64 x, .param .u64 at",
    more="",
    shared=".shared .align 16 .b8 tile[256];",
):
    return smemkern.Kernel(
        f"{HEAD}{more}\n.visible .entry k({parameters})\n{{\n{REGISTERS}\n{shared}\n"
        f"ld.param.u64 %rd0, [x]; mov.u32 %r7, %tid.x;\n{body}\nret;\n}}\n",
        "k",
    )


# Accesses at [%rd1], or at [%r1] of shared memory; bytes.
ACCESSES = {
    "ld.global.u8 %h1, [%rd1]": 1,
    "ld.global.u16 %h1, [%rd1]": 2,
    "ld.global.f32 %f1, [%rd1]": 4,
    "ld.global.u64 %rd2, [%rd1]": 8,
    "ld.global.v2.f32 {%f1, %f2}, [%rd1]": 8,
    "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]": 16,
    "ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]": 16,
    "ld.volatile.global.u32 %r1, [%rd1]": 4,
    "ld.u32 %r1, [%rd1]": 4,
    "st.global.u8 [%rd1], %h1": 1,
    "st.global.u16 [%rd1], %h1": 2,
    "st.global.f32 [%rd1], %f1": 4,
    "st.global.u64 [%rd1], %rd2": 8,
    "st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4}": 16,
    "st.u32 [%rd1], %r1": 4,
    "st.release.gpu.global.u32 [%rd1], %r1": 4,
    "atom.global.add.u32 %r1, [%rd1], 1": 4,
    "atom.global.cas.b64 %rd2, [%rd1], 0, 1": 8,
    "atom.add.f32 %f1, [%rd1], %f2": 4,
    "red.global.max.u32 [%rd1], 7": 4,
    "cp.async.ca.shared.global [%r2], [%rd1], 4": 4,
    "cp.async.cg.shared.global [%r2], [%rd1], 16": 16,
    "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 16": 16,
    "prefetch.global.L2 [%rd1]": 0,
}
SIZE = 256


@pytest.mark.parametrize("text", [text for text, size in ACCESSES.items() if size])
def test_nothing_beside_an_array(text):
    """At each end the last element inside is reached, and the first byte outside is not."""
    size = ACCESSES[text]
    k = kernel(
        f"mov.u32 %r2, tile; mov.b32 %r1, 0; mov.b64 %rd2, 0; mov.b16 %h1, 0; "
        f"mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;\n"
        f"ld.param.u64 %rd3, [at]; add.s64 %rd1, %rd0, %rd3;\n{text};\n"
        "cp.async.wait_all; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    )
    around = np.full(SIZE + 512, 0xAB, "u1")
    start = 256 - around.ctypes.data % 16
    inside = around[start : start + SIZE]
    for at in (0, SIZE - size):
        k(1, 1, inside, at, device="emu")
    before = around.tobytes()
    outside = [
        SIZE,
        SIZE + size,
        -size,
        -1,
        SIZE - size + 1,
        2**31,
        2**39,
        -(2**39),
        2**62,
        -(2**63),
    ]
    for at in outside:
        with pytest.raises(
            smemkern.LaunchError,
            match=r"out of bounds|misaligned|no memory|has the address|multiples? of",
        ):
            k(1, 1, inside, np.int64(at).astype("u8"), device="emu")
    assert around.tobytes() == before


def test_host_addresses_mean_nothing():
    """A kernel that is told where things are in the process cannot get there."""
    secret = np.full(1000, 0x5EC2E7, "u4")
    targets = [secret.ctypes.data, id(secret), id(None), id(test_host_addresses_mean_nothing), 8]
    refused = "no memory of this|a null pointer|past the end of"
    x = np.zeros(8, "u4")
    for what in (
        "ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd0], %r1;",
        "st.global.u32 [%rd1], 1;",
    ):
        for space in (what, what.replace(".global", "")):
            k = kernel(f"ld.param.u64 %rd1, [at];\n{space}")
            for target in targets:
                with pytest.raises(smemkern.LaunchError, match=refused):
                    k(1, 1, x, target & ~3, device="emu")
    assert (secret == 0x5EC2E7).all() and not x.any()


@pytest.mark.parametrize("store", [False, True])
def test_random_addresses(store):
    """64 lanes at addresses of all kinds: a fault, or within what was given."""
    rng = np.random.default_rng(11)
    body = "mul.wide.u32 %rd2, %r7, 8; add.s64 %rd2, %rd0, %rd2; ld.global.u64 %rd1, [%rd2];\n"
    body += "st.u32 [%rd1], %r7;" if store else "ld.u32 %r1, [%rd1];"
    k = kernel(body, ".param .u64 x, .param .u64 y")
    around = np.full(4096, 0xCD, "u1")
    given = around[2048 : 2048 + 64]
    faults = 0
    for _ in range(300):
        high = rng.choice([0, 1 << 40, 7 << 40, 8 << 40, 9 << 40, 10 << 40, 1 << 63], 64)
        low = rng.integers(0, 1 << int(rng.integers(3, 40)), 64) & ~np.int64(3)
        addresses = high.astype("u8") + low.astype("u8")
        try:
            k(1, 64, addresses, given, device="emu")
        except smemkern.LaunchError as error:
            assert "out of bounds" in str(error)
            faults += 1
    assert faults > 250
    assert (around[:2048] == 0xCD).all() and (around[2048 + 64 :] == 0xCD).all()


def test_constants_and_parameters_are_read_only():
    for body, more, words in (
        (
            "mov.u64 %rd1, table; cvta.const.u64 %rd1, %rd1; {};",
            ".const .u32 table[4];",
            "constant memory, which is read-only",
        ),
        ("mov.b64 %rd1, x; cvta.param.u64 %rd1, %rd1; {};", "", "parameters, which is read-only"),
    ):
        load, store = "ld.u32 %r1, [%rd1]", "st.u32 [%rd1], 1"
        kernel(body.format(load), more=more)(1, 1, np.zeros(4, "u4"), 0, device="emu")
        k = kernel(body.format(store), more=more)
        with pytest.raises(smemkern.LaunchError, match=words):
            k(1, 1, np.zeros(4, "u4"), 0, device="emu")


SHARED = {
    "ld.shared.u32 %r1, [%r2]": 4,
    "st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1}": 16,
    "atom.shared.add.u32 %r1, [%r2], 1": 4,
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2]": 16,
    "mbarrier.init.shared.b64 [%r2], 1": 8,
}


@pytest.mark.parametrize("text", SHARED)
def test_nothing_beside_shared_memory(text):
    k = kernel(
        f"ld.param.u64 %rd3, [at]; cvt.u32.u64 %r3, %rd3; mov.u32 %r2, tile;"
        f"add.u32 %r2, %r2, %r3; mov.u32 %r1, 0;\n{text};"
    )
    threads = 32
    k(1, threads, np.zeros(4, "u4"), 256 - 16, device="emu")
    for at in (256, 256 - SHARED[text] + 1, 2**32 - 16, 2**31, 232448):
        with pytest.raises(smemkern.LaunchError, match="end of the block's shared memory"):
            k(1, threads, np.zeros(4, "u4"), at, device="emu")


ENDLESS = {
    "a branch to itself": "L: bra L;",
    "lanes that part": "setp.lt.u32 %p1, %r7, 7; @%p1 bra B; A: bra A; B: bra B;",
    "a flag that nobody sets": "L: ld.volatile.global.u32 %r1, [%rd0];"
    " setp.eq.u32 %p1, %r1, 0; @%p1 bra L;",
    "an atomic": "L: atom.global.cas.b32 %r1, [%rd0], 1, 2; setp.ne.u32 %p1, %r1, 1; @%p1 bra L;",
    "sleeping": "L: nanosleep.u32 100; bra L;",
    "barriers": "L: bar.sync 0; bra L;",
    "a branch by table": "t: .branchtargets L; L: mov.u32 %r1, 0; brx.idx %r1, t;",
    "shuffles": "L: shfl.sync.bfly.b32 %r1, %r7, 1, 31, -1; bra L;",
    "copies": "mov.u32 %r2, tile; L: cp.async.ca.shared.global [%r2], [%rd0], 4; bra L;",
    "committed copies": "mov.u32 %r2, tile; L: cp.async.ca.shared.global [%r2], [%rd0], 4;"
    " cp.async.commit_group; bra L;",
    "an mbarrier": "mov.u32 %r2, tile; mbarrier.init.shared.b64 [%r2], 9;"
    " L: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra L;",
}


@pytest.mark.parametrize("threads", [1, 32, 96])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
def test_no_kernel_runs_for_ever(body, threads, traced):
    k = kernel(body, ".param .u64 x")
    x = np.zeros(64, "u4")
    with pytest.raises(smemkern.LaunchError, match="max_instructions = 50000|deadlock"):
        if traced:
            smemkern.trace(k, 3, threads, x, max_instructions=50_000, hazards=False)
        else:
            k(3, threads, x, max_instructions=50_000, device="emu")
    assert not x.any()


def test_the_limit_is_close():
    """A kernel of n instructions runs with a limit of n, and not with one far below."""
    body = "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10000; @%p1 bra L;"
    k = kernel(body, ".param .u64 x")
    x = np.zeros(4, "u4")
    whole = smemkern.trace(k, 2, 32, x).warp_instructions
    assert whole > 60_000
    k(2, 32, x, max_instructions=whole + 100, device="emu")
    for less in (1, 100, whole // 2):
        with pytest.raises(smemkern.LaunchError, match="max_instructions"):
            k(2, 32, x, max_instructions=less, device="emu")


def test_grids_without_end():
    k = kernel("", ".param .u64 x")
    with pytest.raises(smemkern.LaunchError, match="max_instructions"):
        k((2**31 - 1, 65535, 65535), 1, np.zeros(4, "u4"), max_instructions=100_000, device="emu")


GREEDY = {  # declarations, instructions, threads, and how it ends
    "recursion": (
        ".func f(.param .b32 n) { .reg .b32 %r; .local .b8 s[1000]; ld.param.b32 %r, [n];"
        " add.u32 %r, %r, 1; { .param .b32 a; st.param.b32 [a], %r; call.uni f, (a); } ret; }",
        "{ .param .b32 a; st.param.b32 [a], %r7; call.uni f, (a); }",
        1024,
        "LaunchError.*stack overflow",
    ),
    "parted recursion": (
        ".func f(.param .b32 n) { .reg .b32 %r<3>; .reg .pred %p; .reg .f64 %d<400>;"
        " ld.param.b32 %r0, [n]; mov.u32 %r1, %laneid; rem.u32 %r2, %r0, 32;"
        " setp.eq.u32 %p, %r1, %r2; add.u32 %r0, %r0, 1;"
        " @%p bra L; { .param .b32 a; st.param.b32 [a], %r0; call f, (a); } "
        " L: { .param .b32 a; st.param.b32 [a], %r0; call f, (a); } ret; }",
        "{ .param .b32 a; st.param.b32 [a], %r7; call.uni f, (a); }",
        1024,
        "LaunchError.*stack overflow|MemoryError.*one block",
    ),
    "local memory": (  # the most that one block may have
        "",
        ".local .b8 s[524288]; mov.u64 %rd1, s; st.local.u8 [s], %h1;",
        1024,
        "nothing",
    ),
    "bulk stores": (
        "",
        "mov.u32 %r2, tile;"
        " L: cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 256; bra L;",
        32,
        "MemoryError.*copies in flight",
    ),
    "global variables": (
        ".global .b8 big[4294967040];",
        "mov.u64 %rd1, big; st.global.u8 [%rd1], %h1;",
        1,
        "nothing",
    ),
    "more variables": (
        ".global .b8 big[4294967296]; .global .b8 more[64];",
        "",
        1,
        "KernelImageError.*more than 4294967296 bytes",
    ),
    "printing": (
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);"
        " .global .b8 text[8] = {65, 66, 67, 68, 69, 70, 71, 0};",
        "mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, 0; L: { .param .b64 f;"
        " .param .b64 a; .param .b32 r; st.param.b64 [f], %rd1; st.param.b64 [a], %rd2;"
        " call.uni (r), vprintf, (f, a); } bra L;",
        32,
        "LaunchError.*max_instructions = 1000000",
    ),
}


@pytest.mark.parametrize("name", GREEDY)
def test_no_kernel_takes_all_memory(name):
    """In a process of its own, whose memory is looked at when the kernel has been stopped."""
    more, body, threads, end = GREEDY[name]
    program = f"""
        import warnings, numpy, smemkern, io, sys
        warnings.simplefilter("ignore")
        printed, sys.stdout = sys.stdout, io.StringIO()
        source = {kernel_text(more, body)!r}
        try:
            k = smemkern.Kernel(source, "k")
            k(1, {threads}, numpy.zeros(4096, "u1"), max_instructions=1_000_000, device="emu")
            raised = "nothing"
        except (MemoryError, smemkern.Error) as error:
            raised = type(error).__name__ + " " + str(error)
        x = numpy.ones((8, 8), "f4")
        assert (smemkern.gemm(x, x, device="emu") == 8).all()
        sys.stdout = printed
        peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
        print(int(peak[0].split()[1]) // 1024, raised)  # getrusage counts the parent's memory, too
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    mebibytes, raised = done.stdout.split(" ", 1)
    assert int(mebibytes) < (200 if name == "global variables" else 2200), raised
    assert re.match(end, raised), raised


def kernel_text(more, body):
    return (
        f"{HEAD}{more}\n.visible .entry k(.param .u64 x)\n{{\n{REGISTERS}\n"
        ".shared .align 16 .b8 tile[256];\n"
        f"ld.param.u64 %rd0, [x]; mov.u32 %r7, %tid.x;\n{body}\nret;\n}}\n"
    )


def test_the_limits_of_a_text():
    """The reader's own: each is refused, in little time and memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    entry = ".visible .entry k() { .reg .b32 %r1; "
    for text, words in (
        (entry + ".reg .b32 %r<4000000000>; ret; }", "registers is 4000000000; at most 16777216"),
        (entry + "{" * 100_000, "nested deeper than 126"),
        (entry + "mov.u32 %r1, " + "(" * 100_000 + "1; }", "nested deeper"),
        (entry + ".shared .b8 x[999999999]; ret; }", "shared variables to more than 16777216"),
        (".global .b8 x[99999999999999];", "size is 99999999999999; at most 4294967296"),
        ("." * 1_000_000, "expected a word after '.'"),
        ("\x00" * 10, "null character"),
    ):
        with pytest.raises((smemkern.KernelImageError, ValueError), match=words):
            smemkern.Kernel(HEAD + text, None)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


ENTRY = ".visible .entry k() { .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p; "
MANY = 40_000
# Texts of one or two megabytes in which everything is looked up that a reader might look up one by
# one: in the square of their size each would take minutes.
LARGE = {
    "constants": lambda n: ENTRY + "".join(f"mov.u32 %r0, {k};" for k in range(n)) + "ret; }",
    "places in local memory": lambda n: (
        ENTRY + ".local .b8 s[16];" + "".join(f"mov.u64 %rd0, s+{k};" for k in range(n)) + "ret; }"
    ),
    "functions that are called": lambda n: (
        "".join(f".func f{k}() {{ ret; }}\n" for k in range(n))
        + ENTRY
        + "".join(f"call f{k};" for k in range(n))
        + "ret; }"
    ),
    "addresses of functions": lambda n: (
        "".join(f".func f{k}() {{ ret; }}\n" for k in range(n))
        + f".global .u64 t[{n}] = {{{','.join(f'f{k}' for k in range(n))}}};{ENTRY}ret; }}"
    ),
    "branches": lambda n: (
        ENTRY
        + "".join(f"@%p bra L{k * 7919 % n}; L{k}: mov.u32 %r0, 1;" for k in range(n))
        + "ret; }"
    ),
    "a list of targets that many use": lambda n: (
        f"{ENTRY}t: .branchtargets {','.join(['L'] * (n // 20))}; mov.u32 %r0, 0; L: "
        + "brx.idx %r0, t;" * 400
        + "ret; }"
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_texts_are_read_in_time(name):
    k = smemkern.Kernel(HEAD + LARGE[name](MANY), None)
    try:
        k(1, 1, device="emu", max_instructions=100, timeout=30)
    except smemkern.LaunchError as error:
        assert "max_instructions" in str(error)


def test_variables_that_many_kernels_reach():
    """15 000 kernels that reach 20 000 variables: refused, with the limit."""
    text = "".join(f".shared .u32 v{k};" for k in range(20_000))
    text += ".func f() { .reg .b32 %r; " + "".join(f"mov.u32 %r, v{k};" for k in range(20_000))
    text += "ret; }" + "".join(f".entry e{k}() {{ call f; ret; }}" for k in range(15_000))
    with pytest.raises(smemkern.KernelImageError, match="more than 16777216 references to"):
        smemkern.Kernel(HEAD + text, "e0")
