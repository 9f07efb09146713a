"""A kernel that takes too long: the caller gets the call back, and what was given is as it was."""

from __future__ import annotations

import time

import numpy as np
import pytest

import smemkern

# x[0] = rounds. 5e8 rounds take some seconds on a GPU, and hours on the emulator.
PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry turns(.param .u64 x, .param .u32 rounds)
{
    .reg .u64 %x; .reg .u32 %left, %sum; .reg .pred %more;
    ld.param.u64 %x, [x];
    ld.param.u32 %left, [rounds];
    mov.u32 %sum, 0;
AGAIN:
    st.volatile.global.u32 [%x], %sum;
    add.u32 %sum, %sum, 1;
    sub.u32 %left, %left, 1;
    setp.ne.u32 %more, %left, 0;
    @%more bra AGAIN;
    st.global.u32 [%x], %sum;
    ret;
}
"""
LONG = np.uint32(500_000_000)


def test_it_ends_the_call(device) -> None:
    kernel, x = smemkern.Kernel(PTX, "turns"), np.full(4, 7, np.uint32)
    started = time.monotonic()
    with pytest.raises(TimeoutError, match=r"not finished after 0\.25 seconds; no array was"):
        kernel(1, 1, x, LONG, device=device, timeout=0.25)
    assert 0.25 <= time.monotonic() - started < 5
    assert x.tolist() == [7] * 4
    kernel(1, 1, x, np.uint32(5), device=device, timeout=60)  # the next one is none the worse
    assert x.tolist() == [5, 7, 7, 7]


def test_it_ends_a_checked_call() -> None:
    kernel, x = smemkern.Kernel(PTX, "turns", check=True), np.zeros(4, np.uint32)
    with pytest.raises(TimeoutError, match="not finished after 0.25 seconds"):
        kernel(1, 1, x, LONG, timeout=0.25)
    assert not x.any()


@pytest.mark.parametrize(
    ("timeout", "error"),
    [(0, ValueError), (-1.5, ValueError), (float("nan"), ValueError)]
    + [("1", TypeError), ([], TypeError)],
)
def test_what_it_cannot_be(timeout, error) -> None:
    kernel, x = smemkern.Kernel(PTX, "turns"), np.zeros(4, np.uint32)
    with pytest.raises(error, match="timeout must be a positive number of seconds or None, not"):
        kernel(1, 1, x, np.uint32(5), device="emu", timeout=timeout)
    assert not x.any()
