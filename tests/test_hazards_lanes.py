"""Order among lanes of one warp: what a barrier of some lanes orders, and what comes after it."""

from __future__ import annotations

import numpy as np
import pytest

import smemkern

KERNEL = """.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x)
{
    .reg .pred %p, %q;
    .reg .b32 %t, %own, %other, %value;
    .reg .b64 %to;
    .shared .align 4 .b32 s[32];
    ld.param.u64 %to, [x];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %to, %t, 4, %to;
    mov.u32 %own, s; mov.u32 %other, s; mad.lo.u32 %own, %t, 4, %own;
    st.shared.u32 [%own], %t;
    setp.ge.u32 %p, %t, LANES;
    @%p bra END;
    BODY
    st.global.u32 [%to], %value;
END:
    ret;
}
"""
COUNTS = (2, 3, 16, 31, 32)  # lanes that take part, from lane 0 on


def hazards(body: str, lanes: int) -> list[tuple[str, str, set[int]]]:
    text = KERNEL.replace("BODY", body).replace("LANES", str(lanes))
    text = text.replace("MASK", hex((1 << lanes) - 1))
    trace = smemkern.trace(smemkern.Kernel(text, "k"), 1, 32, np.zeros(32, "u4"))
    return [(h.kind, h.address, {t[0] for t in h.threads}) for h in trace.hazards]


@pytest.mark.parametrize("lanes", COUNTS)
def test_what_comes_before_the_barrier_is_ordered(lanes: int) -> None:
    """Each reads what the next one stored."""
    body = f"""
    add.u32 %value, %t, 1; rem.u32 %value, %value, {lanes};
    mad.lo.u32 %other, %value, 4, %other;
    bar.warp.sync MASK;
    ld.shared.u32 %value, [%other];"""
    assert hazards(body, lanes) == []


@pytest.mark.parametrize("lanes", COUNTS)
def test_what_comes_after_it_is_not(lanes: int) -> None:
    """Lane 0 stores behind the barrier where the last lane reads behind it: in one epoch."""
    last = lanes - 1
    body = f"""
    bar.warp.sync MASK;
    setp.eq.u32 %q, %t, 0;
    @%q st.shared.u32 [%other+{4 * last}], 7;
    ld.shared.u32 %value, [%own];"""
    assert hazards(body, lanes) == [("RAW", f"shared s[{last}]", {0, last})]


@pytest.mark.parametrize("lanes", COUNTS)
def test_a_second_barrier_orders_it(lanes: int) -> None:
    body = f"""
    bar.warp.sync MASK;
    setp.eq.u32 %q, %t, 0;
    @%q st.shared.u32 [%other+{4 * lanes - 4}], 7;
    bar.warp.sync MASK;
    ld.shared.u32 %value, [%own];"""
    assert hazards(body, lanes) == []


def test_order_goes_on_through_a_lane_that_both_have_met() -> None:
    """Lanes 0 and 1 wait for each other, then 1 and 2: lane 2 may read what lane 0 stored before,
    and not what it stored between."""
    body = """
    setp.lt.u32 %q, %t, 2; @%q bar.warp.sync 3;
    setp.eq.u32 %q, %t, 0; @%q st.shared.u32 [%other+4], 7;
    setp.ge.u32 %q, %t, 1; @%q bar.warp.sync 6;
    setp.eq.u32 %q, %t, 2; @%q ld.shared.u32 %value, [%other+READ];"""
    assert hazards(body.replace("READ", "0"), 3) == []
    assert hazards(body.replace("READ", "4"), 3) == [("RAW", "shared s[1]", {0, 2})]
