"""createpolicy: every form runs, and its value guides accesses without an effect on them."""

from __future__ import annotations

import numpy as np
import pytest

import smemkern

KERNEL = """.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x)
{
    .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f;
    ld.param.u64 %rd1, [x];
    mov.u32 %r0, %tid.x; mov.u32 %r1, 64; mov.f32 %f, 0f3F000000;
    setp.ge.u32 %p, %r0, 16;
    mad.wide.u32 %rd2, %r0, 4, %rd1;
    mov.u64 %rd3, 7;
    @%p bra USE;
    createpolicy.FORM;
USE:
    @%p createpolicy.FORM;
    ld.global.L2::cache_hint.u32 %r2, [%rd2], %rd3;
    add.u32 %r2, %r2, %r0;
    st.global.L2::cache_hint.u32 [%rd2], %r2, %rd3;
    ret;
}
"""


def run(form: str, x: np.ndarray) -> None:
    smemkern.Kernel(KERNEL.replace("FORM", form), "k")(1, x.size, x, device="emu")


@pytest.mark.parametrize(
    "form",
    [
        "fractional.L2::evict_last.b64 %rd3, 1.0",
        "fractional.L2::evict_first.b64 %rd3",
        "fractional.L2::evict_normal.b64 %rd3, %f",
        "fractional.L2::evict_last.L2::evict_unchanged.b64 %rd3, 0.25",
        "range.L2::evict_last.b64 %rd3, [%rd1], 1024, 2048",
        "range.global.L2::evict_unchanged.L2::evict_first.b64 %rd3, [%rd1+16], %r1, %r1",
        "cvt.L2.b64 %rd3, %rd1",
    ],
)
def test_a_policy_changes_no_value(form, drawn):
    x = drawn.integers(0, 2**32, 32, dtype="u4")
    given = x.copy()
    run(form, x)
    assert (x == given + np.arange(32, dtype="u4")).all()


@pytest.mark.parametrize(
    "form",
    [
        "fractional.b64 %rd3, 0.5",
        "fractional.L2::evict_last.L2::evict_last.b64 %rd3, 0.5",
        "fractional.L2::evict_last.L2::evict_normal.b64 %rd3, 0.5",
        "fractional.L2::evict_last.b32 %r3, 0.5",
        "fractional.L2::evict_last.b64 %rd3, %rd1",
        "range.shared.L2::evict_last.b64 %rd3, [%rd1], 1024, 2048",
        "range.L2::evict_last.b64 %rd3, [%rd1], 1024",
        "range.L2::evict_last.b64 %rd3, %rd1, 1024, 2048",
        "cvt.b64 %rd3, %rd1",
        "cvt.L2.b64 %rd3",
        "L2.b64 %rd3, %rd1",
    ],
)
def test_other_forms_are_refused(form):
    with pytest.raises(smemkern.UnsupportedInstructionError, match="createpolicy"):
        run(form, np.zeros(32, "u4"))
