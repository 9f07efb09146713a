"""Kernels whose single instructions do much: the call ends in time, and in bounded memory.

A slice of 4096 such instructions would take seconds to hours. So the emulator looks at what bounds
a kernel, timeout= here, within them too (block_goes_on in csrc/emu/machine/block.h).
"""

import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import smemkern

HEAD = ".version 8.3\n.target sm_90a\n.address_size 64\n"
ENTRY = """.visible .entry k(.param .u64 x)
{{
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<128>;
.shared .align 128 .b8 tile[32768];
ld.param.u64 %rd0, [x]; mov.u32 %r7, %tid.x; mov.u32 %r2, tile;
setp.ne.u32 %p3, %r7, 0; @%p3 bra READY; mbarrier.init.shared.b64 [%r2], 1000000; READY:
{body}
ret;
}}
"""
# A format of a million characters, %4096x again and again, and its arguments from there on.
PRINTF = (
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);"
    " .global .align 8 .b8 text[2000000];"
)
PRINTS = (
    "mov.u64 %rd1, text; mov.u32 %r1, 0; W: cvt.u64.u32 %rd2, %r1; add.s64 %rd2, %rd2, %rd1;"
    + "".join(f" st.global.u8 [%rd2+{k}], {ord(c)};" for k, c in enumerate("%4096x"))
    + " add.u32 %r1, %r1, 6; setp.lt.u32 %p1, %r1, 999990; @%p1 bra W;"
    " L: { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd1;"
    " st.param.b64 [a], %rd1; call (r), vprintf, (f, a); } bra L;"
)
SUMS = ", ".join(f"%f{k}" for k in range(128))
WGMMA = (
    f"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{{SUMS}}}, %rd2, %rd2, %p1, 1, 1, 0, 0;"
)
SLOW = {
    "printing": (PRINTF, PRINTS, 32),
    "arrivals at an mbarrier": (
        "",
        "L: cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];"
        " mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0; bra L;",
        32,
    ),
    "bulk loads": (
        "",
        "L: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+128], [%rd0],"
        " 8192, [%r2]; bra L;",
        32,
    ),
    "bulk stores": (
        "",
        "L: cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 16;"
        " cp.async.bulk.commit_group; cp.async.bulk.wait_group 2000000; bra L;",
        32,
    ),
    "copies": (
        "",
        "L: cp.async.ca.shared.global [%r2], [%rd0], 4; cp.async.commit_group;"
        " cp.async.wait_group 2000000; bra L;",
        1,
    ),
    "large products": (
        "",
        f"mov.b64 %rd2, 0; setp.eq.u32 %p1, 0, 0; L: {WGMMA} bra L;",
        128,
    ),
    "large arguments": (
        ".func f(.param .align 4 .b8 big[65536]) { ret; }",
        "L: { .param .align 4 .b8 b[65536]; call f, (b); } bra L;",
        1024,
    ),
    "deep recursion": (
        ".func f(.param .b32 n) { .reg .b32 %r<3>; .reg .pred %p; .local .b8 s[4000];"
        " ld.param.b32 %r1, [n]; setp.gt.u32 %p, %r1, 100; @%p bra E; add.u32 %r1, %r1, 1;"
        " { .param .b32 a; st.param.b32 [a], %r1; call f, (a); } E: ret; }",
        "L: { .param .b32 a; st.param.b32 [a], 0; call f, (a); } bra L;",
        1024,
    ),
    "fences and flags": (
        "",
        "mad.wide.u32 %rd2, %r7, 4, %rd0; L: membar.gl; atom.global.add.u32 %r1, [%rd2], 1;"
        " st.volatile.global.u32 [%rd2], %r1; bra L;",
        1024,
    ),
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", SLOW)
def test_timeout_is_kept(name, traced, capfd):
    more, body, threads = SLOW[name]
    k = smemkern.Kernel(HEAD + more + ENTRY.format(body=body), "k")
    x = np.zeros(16384, "u4")
    begin = time.monotonic()
    with pytest.raises((TimeoutError, MemoryError), match=r"after 0.3 seconds|out of memory"):
        if traced:
            smemkern.trace(k, 2, threads, x, timeout=0.3)
        else:
            k(2, threads, x, device="emu", timeout=0.3)
    assert time.monotonic() - begin < 6  # seconds on a busy machine; one slice would be many
    assert not x.any()


@pytest.mark.parametrize(("name", "most"), [("fences and flags", 2200), ("bulk loads", 1100)])
@pytest.mark.long(instead="the limits of test_limits.py")
def test_memory_of_a_trace(name, most):
    """What the search for hazards remembers is bounded, too: in a process of its own."""
    more, body, threads = SLOW[name]
    program = f"""
        import numpy, smemkern
        k = smemkern.Kernel({HEAD + more + ENTRY.format(body=body)!r}, "k")
        x = numpy.zeros(16384, "u4")
        try:
            smemkern.trace(k, 4, {threads}, x, max_instructions=200_000, timeout=3)
            raised = "nothing"
        except (MemoryError, TimeoutError, smemkern.Error) as error:
            raised = type(error).__name__
        peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
        print(int(peak[0].split()[1]) // 1024, raised)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    mebibytes, raised = done.stdout.split()
    assert int(mebibytes) < most and raised != "nothing", done.stdout
