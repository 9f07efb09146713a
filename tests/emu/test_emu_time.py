"""Clocks and timers of the emulator: they go forward, and are the same in every run."""

from __future__ import annotations

import numpy as np
import pytest

import smemkern

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"


def kernel(body: str) -> smemkern.Kernel:
    return smemkern.Kernel(
        HEAD + ".visible .entry k(.param .u64 out) {\n"
        ".reg .b32 %r<9>; .reg .b64 %o, %t, %rd<9>; .reg .pred %p;\n"
        "ld.param.u64 %o, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %t, %r0, 16;\n"
        f"add.u64 %o, %o, %t;\n{body}\nret; }}",
        "k",
    )


def run(body: str, threads: int = 64, blocks: int = 1, **options) -> np.ndarray:
    out = np.zeros((threads, 2), "u8")
    kernel(body)(blocks, threads, out, device="emu", **options)
    return out


READS = {
    "clock": "mov.u32 {d}32, %clock; cvt.u64.u32 {d}, {d}32;",
    "clock converted": "cvt.u64.u32 {d}, %clock;",
    "clock64": "mov.u64 {d}, %clock64;",
    "both halves": "mov.b64 {d}, {{%clock, %clock_hi}};",
    "globaltimer": "mov.u64 {d}, %globaltimer;",
    "low half": "mov.u32 {d}32, %globaltimer_lo; cvt.u64.u32 {d}, {d}32;",
    "both halves of the timer": "mov.b64 {d}, {{%globaltimer_lo, %globaltimer_hi}};",
    "volatile": "{{ mov.u64 {d}, %clock64; }}",
    "guarded": "setp.ne.u64 %p, %o, 0; @%p mov.u64 {d}, %clock64;",
}
PAIR = ".reg .b32 %rd132, %rd232;\n{0}\n{1}\nst.global.u64 [%o], %rd1; st.global.u64 [%o+8], %rd2;"


@pytest.mark.parametrize("name", READS)
def test_time_goes_forward(name):
    first, second = (READS[name].format(d=d) for d in ("%rd1", "%rd2"))
    body = PAIR.format(first, "add.u32 %r1, %r0, 1;\n" * 50 + second)
    early, late = run(body).T
    assert (late - early >= 50).all()
    assert (late - early < 100).all()
    assert (run(body) == run(body, threads=64)).all()


def test_halves_above_are_zero():
    out = run(
        "mov.u32 %r1, %clock_hi; mov.u32 %r2, %globaltimer_hi; st.global.v2.u32 [%o], {%r1, %r2};"
    )
    assert not out.any()


def test_warps_of_a_block_read_one_clock():
    """A warp that reads after a barrier reads later than all that read before it."""
    body = "mov.u64 %rd1, %clock64; bar.sync 0; mov.u64 %rd2, %globaltimer;" + PAIR.format("", "")
    early, late = run(body, threads=256).T
    assert late.min() > early.max()


def test_a_time_does_not_depend_on_host_threads():
    body = "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd3, %r1, 512; add.u64 %o, %o, %rd3;"
    body += "mov.u64 %rd1, %clock64; nanosleep.u32 40; mov.u64 %rd2, %clock64;" + PAIR.format(
        "", ""
    )
    results = []
    for _ in range(2):
        out = np.zeros((16 * 32, 2), "u8")
        kernel(body)(16, 32, out, device="emu")
        results.append(out)
    assert (results[0] == results[1]).all()
    assert (results[0].reshape(16, -1) == results[0][:32].ravel()).all()


@pytest.mark.parametrize("sleep", ["", "nanosleep.u32 100;"])
def test_a_loop_that_waits_ends(sleep):
    body = f"""mov.u64 %rd1, %globaltimer;
loop: {sleep} mov.u64 %rd2, %globaltimer;
sub.u64 %rd3, %rd2, %rd1; setp.lt.u64 %p, %rd3, 100000; @%p bra loop;
st.global.u64 [%o], %rd1; st.global.u64 [%o+8], %rd2;"""
    early, late = run(body).T
    assert (late - early >= 100000).all()


def test_a_sleep_takes_its_nanoseconds():
    body = PAIR.format("mov.u64 %rd1, %globaltimer;", "{} mov.u64 %rd2, %globaltimer;")
    short, long, longest = (
        np.diff(run(body.format(f"nanosleep.u32 {n};"), threads=32))[:, 0]
        for n in (0, 5000, 0xFFFFFFFF)
    )
    assert (long == short + 5000).all()
    assert (longest == short + 1000000).all()  # of PTX: at most a millisecond


def test_a_failed_try_wait_takes_time():
    """So that a wait for at most some time ends, though nothing arrives."""
    out = run(
        """.shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 2;
mov.u64 %rd1, %globaltimer;
loop: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
mov.u64 %rd2, %globaltimer; sub.u64 %rd3, %rd2, %rd1;
@%p bra done;
setp.lt.u64 %p, %rd3, 20000000; @%p bra loop;
done: st.global.u64 [%o], %rd1; st.global.u64 [%o+8], %rd2;""",
        threads=1,
    )
    assert np.diff(out) >= 20000000


def test_time_under_a_trace():
    """An observer does not change what a clock reads."""
    body = PAIR.format(READS["clock64"].format(d="%rd1"), READS["globaltimer"].format(d="%rd2"))
    traced = np.zeros((64, 2), "u8")
    smemkern.trace(kernel(body), 1, 64, traced)
    assert (traced == run(body)).all()


def test_clocks_in_cuda(nvrtc):
    source = """extern "C" __global__ void k(long long *out) {
        long long start = clock64();
        unsigned first = clock();
        while (clock64() - start < 1000) __nanosleep(20);
        out[2 * threadIdx.x] = start;
        out[2 * threadIdx.x + 1] = clock64();
        if (clock() < first) __trap();
    }"""
    out = np.zeros((64, 2), "i8")
    smemkern.Kernel(source, "k")(1, 64, out, device="emu")
    assert (np.diff(out) >= 1000).all()
