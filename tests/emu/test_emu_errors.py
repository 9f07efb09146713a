"""What the emulator does not know it refuses, with the instruction's text and line."""

from __future__ import annotations

import pytest

import smemkern

HEADER = """.version 8.3
.target sm_90
.address_size 64
.visible .entry unknown()
{
    .reg .pred %p<3>; .reg .b16 %h<4>; .reg .b32 %r<5>; .reg .b64 %rd<5>;
    .reg .f32 %f<5>; .reg .f64 %fd<5>; .reg .b128 %q<2>;
    mov.u32 %r0, 1;
"""
LINE = HEADER.count("\n") + 1

UNKNOWN = [
    # no such instruction or modifier
    "frobnicate.b32 %r1, %r2",
    "add.frob.s32 %r1, %r2, %r3",
    "fma.rn.f32.frob %f1, %f2, %f3, %f4",
    # a modifier or type that is of other instructions
    "add.sat.u32 %r1, %r2, %r3",
    "add.lo.s32 %r1, %r2, %r3",
    "and.u32 %r1, %r2, %r3",
    "mul.wide.u64 %rd1, %rd2, %rd3",
    "div.sat.rn.f32 %f1, %f2, %f3",
    "add.ftz.f64 %fd1, %fd2, %fd3",
    "add.ftz.bf16 %h1, %h2, %h3",
    "min.relu.u32 %r1, %r2, %r3",
    "setp.lo.s32 %p1, %r1, %r2",
    "setp.lt.b32 %p1, %r1, %r2",
    "setp.nan.s32 %p1, %r1, %r2",
    "cvt.rni.s32.s32 %r1, %r2",
    "cvt.rn.f64.f32 %fd1, %f2",
    "cvt.rs.f16x2.f32 %r1, %f1, %f2, %r3",
    "prmt.b32.f5e %r1, %r2, %r3, %r4",
    "shf.l.b32 %r1, %r2, %r3, %r4",
    # a modifier that must be there
    "fma.f32 %f1, %f2, %f3, %f4",
    "div.f32 %f1, %f2, %f3",
    "mul.s32 %r1, %r2, %r3",
    "cvt.s32.f32 %r1, %f2",
    "cvt.f32.s32 %f1, %r2",
    "cvt.e4m3x2.f32 %h1, %f1, %f2",
    "sin.f32 %f1, %f2",
    "bmsk.b32 %r1, %r2, %r3",
    "setp.s32 %p1, %r1, %r2",
    # operands: too few, too many, of another width, of another kind
    "add.s32 %r1, %r2",
    "add.s32 %r1, %r2, %r3, %r4",
    "add.s64 %rd1, %r2, %rd3",
    "add.s32 %rd1, %r2, %r3",
    "add.s32 %p1, %r2, %r3",
    "and.pred %p1, %p2, %r3",
    "mul.wide.s32 %r1, %r2, %r3",
    "selp.b32 %r1, %r2, %r3, %r4",
    "setp.lt.s32 %r1, %r2, %r3",
    "add.s32 %r1|%p1, %r2, %r3",
    "setp.lt.f16 %p1|%p2, %h1, %h2",
    "lop3.b32 %r1, %r2, %r3, %r4, 256",
    "lop3.b32 %r1, %r2, %r3, %r4, %r1",
    "mov.b64 {%r1, %r2, %r3}, %rd1",
    "mov.b64 %rd1, {%rd2, %rd3}",
    "cvt.u32.u64 %r1, %r2",
    "cvt.rn.f32.s32 %p1, %r2",
    "atom.global.add.u32 %r1, [%rd1]",
    "atom.global.cas.b32 %r1, [%rd1], %r2",
    "red.global.add.u32 [%rd1]",
    "atom.global.frob.b32 %r1, [%rd1], %r2",
    "atom.global.add.b32 %r1, [%rd1], %r2",
    "red.global.cas.b32 [%rd1], %r1, %r2",
    "red.global.exch.b32 [%rd1], %r1",
    "isspacep.shared %p1",
    "isspacep.shared %p1, %rd1, %rd2",
    "isspacep %p1, %rd1",
    "bfe.u32 %r1, %r2, %r3",
    "cvt.u32 %r1, %r2",
    "cvt.rn.f16x2 %r1, %f1, %f2",
    "cvt.rn.satfinite.e4m3x2 %h1, %f1, %f2",
    "cvt.rn.f32.b32 %f1, %r2",
    "cvt.b32.u32 %r1, %r2",
    "bfe.b32 %r1, %r2, %r3, %r4",
    "mov.v2.u32 {%r1, %r2}, {%r3, %r4, %r0}",
    "mov.v2.u32 {%r1, %r2}, %rd1",
    "mov.v2.u64 {%r1, %r2}, {%r3, %r4}",
    "mov.v4.u32 {%r1, %r2}, {%r3, %r4}",
    "mov.u32 {%r1, %r2}, {%r3, %r4}",
    "mov.u32 %r1, %pm0",
    "mov.u64 %rd1, %pm7_64",
    "vote.any.b32 %r1, %p1",
    "vote.sync.any.pred %p1|%p2, %p0, -1",
    "match.any.sync.b32 %r1|%p1, %r2, -1",
    "redux.sync.min.f32 %f1, %f2, -1",
    "redux.sync.max.abs.NaN.f32 %f1, %f2, -1",
    "shfl.up.b64 %rd1, %rd2, 1, 0",
]


@pytest.mark.parametrize("instruction", UNKNOWN, ids=lambda text: text.replace(" ", "_"))
@pytest.mark.parametrize("guard", ["", "@%p0 "], ids=["plain", "guarded"])
def test_unknown_form(instruction: str, guard: str) -> None:
    kernel = smemkern.Kernel(f"{HEADER}    {guard}{instruction};\n    ret;\n}}\n", "unknown")
    with pytest.raises(smemkern.UnsupportedInstructionError) as raised:
        kernel(1, 32, device="emu")
    message = str(raised.value)
    assert instruction in message
    assert f"line {LINE}" in message
    assert "unknown" in message  # the kernel


def test_known_forms_around_it_run() -> None:
    """The same kernel without an unknown instruction is fine: only that one was refused."""
    smemkern.Kernel(f"{HEADER}    ret;\n}}\n", "unknown")(1, 32, device="emu")
