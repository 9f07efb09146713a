"""Divergence of the emulator: branches, loops, computed branches and calls of some lanes."""

from __future__ import annotations

import numpy as np
import pytest

import smemkern

N = 256
HEADER = """
.version 8.3
.target sm_90
.address_size 64
"""
ENTRY = """
.visible .entry control(.param .u64 source, .param .u64 result)
{
    .reg .pred %p<4>; .reg .b32 %x, %y, %z, %i; .reg .b64 %from, %to;
    ld.param.u64 %from, [source]; ld.param.u64 %to, [result];
    mov.u32 %i, %tid.x;
    mad.wide.u32 %from, %i, 4, %from; mad.wide.u32 %to, %i, 4, %to;
    ld.global.u32 %x, [%from];
"""


def run(body: str, source: np.ndarray, functions: str = "") -> np.ndarray:
    result = np.full(N, 0xDEADBEEF, dtype=np.uint32)
    text = f"{HEADER}{functions}{ENTRY}{body}\n}}\n"
    smemkern.Kernel(text, "control")(1, N, source, result, device="emu")
    return result


@pytest.fixture
def source() -> np.ndarray:
    return np.random.default_rng(3).integers(1, 1000, N, dtype=np.uint32)


def test_loop_of_different_lengths(source) -> None:
    """Steps of Collatz's sequence: every lane leaves the loop at its own time."""

    def steps(x: int) -> int:
        count = 0
        while x != 1:
            x, count = (3 * x + 1 if x & 1 else x // 2), count + 1
        return count

    result = run(
        """
    mov.u32 %y, 0;
LOOP:
    setp.eq.u32 %p0, %x, 1;
    @%p0 bra DONE;
    and.b32 %z, %x, 1;
    setp.eq.u32 %p1, %z, 1;
    @%p1 bra ODD;
    shr.u32 %x, %x, 1;
    bra.uni NEXT;
ODD:
    mad.lo.u32 %x, %x, 3, 1;
NEXT:
    add.u32 %y, %y, 1;
    bra LOOP;
DONE:
    activemask.b32 %z;
    st.global.u32 [%to], %y;
    setp.ne.u32 %p2, %z, 0xffffffff;
    @%p2 st.global.u32 [%to], %z;
    ret;""",
        source,
    )
    assert result.tolist() == [steps(x) for x in source.tolist()]


def test_nested_branches_and_early_exits(source) -> None:
    result = run(
        """
    and.b32 %y, %x, 3;
    setp.eq.u32 %p0, %y, 0;
    @%p0 exit;
    setp.eq.u32 %p1, %y, 1;
    @!%p1 bra MORE;
    setp.gt.u32 %p2, %x, 500;
    @%p2 bra LARGE;
    mov.u32 %z, 10;
    bra END;
LARGE:
    mov.u32 %z, 20;
    bra END;
MORE:
    setp.eq.u32 %p3, %y, 2;
    mov.u32 %z, 30;
    @%p3 ret;
END:
    add.u32 %z, %z, %y;
    st.global.u32 [%to], %z;
    ret;""",
        source,
    )

    def expected(x: int) -> int:
        kind = x & 3
        if kind in (0, 2):
            return 0xDEADBEEF
        return 33 if kind == 3 else 21 if x > 500 else 11

    assert result.tolist() == [expected(x) for x in source.tolist()]


def test_computed_branch(source) -> None:
    result = run(
        """
    and.b32 %y, %x, 3;
TARGETS: .branchtargets ZERO, ONE, TWO, ZERO;
    brx.idx %y, TARGETS;
ZERO:
    mov.u32 %z, 100; bra END;
ONE:
    mov.u32 %z, 101; bra END;
TWO:
    mov.u32 %z, 102;
END:
    st.global.u32 [%to], %z;
    ret;""",
        source,
    )
    assert result.tolist() == [(100, 101, 102, 100)[x & 3] for x in source.tolist()]


FACTORIAL = """
.func (.param .b32 product) factorial(.param .b32 n)
{
    .reg .b32 %n, %m; .reg .pred %p;
    ld.param.b32 %n, [n];
    setp.gt.u32 %p, %n, 1;
    @%p bra MORE;
    st.param.b32 [product], 1;
    ret;
MORE:
    sub.u32 %m, %n, 1;
    {
    .param .b32 argument;
    .param .b32 smaller;
    st.param.b32 [argument], %m;
    call (smaller), factorial, (argument);
    ld.param.b32 %m, [smaller];
    }
    mul.lo.u32 %n, %n, %m;
    st.param.b32 [product], %n;
    ret;
}
"""


def test_recursion_of_different_depths(source) -> None:
    result = run(
        """
    rem.u32 %y, %x, 13;
    setp.eq.u32 %p0, %y, 5;
    mov.u32 %z, 0;
    @%p0 bra END;
    {
    .param .b32 argument;
    .param .b32 product;
    st.param.b32 [argument], %y;
    call (product), factorial, (argument);
    ld.param.b32 %z, [product];
    }
END:
    st.global.u32 [%to], %z;
    ret;""",
        source,
        FACTORIAL,
    )
    factorials = np.cumprod([1, *range(1, 13)]) & 0xFFFFFFFF
    expected = [0 if x % 13 == 5 else factorials[x % 13] for x in source.tolist()]
    assert result.tolist() == expected


def test_lanes_compare_all_of_their_bits_across_a_branch(source) -> None:
    """64-bit values whose lower halves are equal, from two sides and two depths of calls."""
    result = run(
        """
    .reg .b64 %value; .reg .b32 %high;
    and.b32 %y, %i, 1;
    shr.u32 %high, %i, 2; and.b32 %high, %high, 3;
    mov.b64 %value, {%y, %high};
    setp.eq.u32 %p1, %y, 1;
    @%p1 bra ODD;
    match.any.sync.b64 %z, %value, 0xffffffff;
    bra END;
ODD:
    mov.b64 %value, {0, %high};
    call (%z), matched, (%value);
END:
    st.global.u32 [%to], %z;
    ret;""",
        source,
        ".func (.param .b32 r) matched(.param .b64 x) {"
        " .reg .b64 %a; .reg .b32 %z; ld.param.b64 %a, [x];"
        " match.any.sync.b64 %z, %a, 0xffffffff; st.param.b32 [r], %z; ret; }",
    )
    high = np.arange(32) >> 2 & 3
    masks = [sum(1 << k for k in range(32) if high[k] == own) for own in high]
    assert result.tolist() == masks * (N // 32)


def test_each_half_of_a_warp_compares_its_own(source) -> None:
    """Both halves are at the instruction, with masks of their own."""
    result = run(
        """
    and.b32 %y, %i, 3; and.b32 %z, %i, 16; setp.eq.u32 %p0, %z, 0;
    selp.b32 %x, 0x0000ffff, 0xffff0000, %p0;
    match.any.sync.b32 %z, %y, %x;
    st.global.u32 [%to], %z;
    ret;""",
        source,
    )
    i = np.arange(N)
    assert np.array_equal(result, (0x1111 << (i & 3)) << (i & 16))


def test_lanes_exchange_across_a_branch(source) -> None:
    """Both sides of a branch meet in one shuffle, though they stand at different instructions."""
    result = run(
        """
    setp.lt.u32 %p0, %i, 4096;
    and.b32 %y, %i, 1;
    setp.eq.u32 %p1, %y, 1;
    @%p1 bra ODD;
    add.u32 %x, %x, 1;
    bar.warp.sync 0xffffffff;
    bra END;
ODD:
    add.u32 %x, %x, 2;
    bar.warp.sync 0xffffffff;
END:
    shfl.sync.bfly.b32 %z, %x, 1, 31, 0xffffffff;
    st.global.u32 [%to], %z;
    ret;""",
        source,
    )
    moved = source + np.where(np.arange(N) % 2, 2, 1)
    assert result.tolist() == moved.reshape(-1, 2)[:, ::-1].reshape(-1).tolist()


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_immediate_arguments(bits: int) -> None:
    """A constant has the parameter's size, in every lane, and leaves the next parameter alone."""
    register = max(bits, 16)
    function = f"""
.func (.param .b{bits} r) f(.param .b{bits} a, .param .b{bits} b)
{{
    .reg .b{register} %a, %b;
    ld.param.u{bits} %a, [a]; ld.param.u{bits} %b, [b];
    shl.b{register} %b, %b, 4;
    add.u{register} %a, %a, %b;
    st.param.b{bits} [r], %a;
    ret;
}}"""
    result = run(
        f"""
    .reg .b{register} %r;
    {{
    .param .b{bits} r;
    call (r), f, (3, 2);
    ld.param.u{bits} %r, [r];
    }}
    cvt.u32.u{bits} %z, %r;
    st.global.u32 [%to], %z;
    ret;""",
        np.zeros(N, "u4"),
        function,
    )
    assert result.tolist() == [0x23] * N
