"""One kernel per operation: a warp runs it on several patterns, each with its repeat count.

The table has 32 offsets per pattern, negative for an inactive lane, and 32 more for the source of a
copy. The repeat counts 1, B, B * B, ... allow several patterns per launch: their counts are the
digits in base B of the total. Each iteration adds `zero` to the address. Its value is 0, but only
at run time, so ptxas cannot move the operation out of the loop.
"""

from __future__ import annotations

from .operations import WINDOW, Operation

HEADER = ".version 8.4\n.target sm_90a\n.address_size 64\n"


def _use(register: str) -> str:
    return {
        "v": f"xor.b32 %acc, %acc, {register};",
        "w": f"xor.b64 %wide, %wide, {register};",
        "h": f"xor.b16 %half, %half, {register};",
    }[register[1]]


def kernel(operation: Operation, patterns: int) -> tuple[str, str]:
    """(PTX, name of the entry)."""
    name = f"exact_{operation.name}"
    uses = "\n    ".join(_use(register) for register in operation.results)

    def source(k: int) -> str:
        load = f"ld.global.u32 %from, [%row + {256 * k + 128}]; cvt.u64.u32 %s, %from; "
        return load + "add.u64 %s, %s, %target;" if "%s]" in operation.ptx else ""

    parts = [
        f"""
    ld.param.u32 %n, [repeats{k}];
    ld.global.s32 %off, [%row + {256 * k}];
    {source(k)}
    setp.lt.s32 %out, %off, 0;
    @%out bra SKIP{k};
    mov.u32 %a, window;
    add.u32 %a, %a, %off;
    cvt.u64.u32 %g, %off;
    add.u64 %g, %g, %target;
LOOP{k}:
    {operation.ptx}
    {uses}
    add.u32 %a, %a, %zero;
    cvt.u64.u32 %step, %zero;
    add.u64 %g, %g, %step;
    add.u64 %s, %s, %step;
    sub.u32 %n, %n, 1;
    setp.ne.u32 %more, %n, 0;
    @%more bra LOOP{k};
SKIP{k}:
    bar.warp.sync 0xffffffff;
"""
        for k in range(patterns)
    ]
    repeats = ", ".join(f".param .u32 repeats{k}" for k in range(patterns))
    text = f"""{HEADER}
.shared .align 1024 .b8 window[{WINDOW}];
.visible .entry {name}(.param .u64 table, .param .u64 memory, .param .u32 nothing,
    .param .u32 key, {repeats})
{{
    .reg .pred %out, %more, %p;
    .reg .b16 %half, %h<4>;
    .reg .b32 %a, %n, %off, %from, %zero, %acc, %key, %low, %high, %lane, %v<4>;
    .reg .b64 %g, %row, %target, %step, %wide, %s, %w<4>;
    ld.param.u64 %row, [table];
    ld.param.u64 %target, [memory];
    ld.param.u32 %zero, [nothing];
    ld.param.u32 %key, [key];
    cvta.to.global.u64 %row, %row;
    cvta.to.global.u64 %target, %target;
    mov.u32 %lane, %tid.x;
    mad.wide.u32 %row, %lane, 4, %row;
    mov.u32 %acc, 0;
    mov.u64 %wide, 0;
    mov.u16 %half, 0;
    add.u32 %v0, %lane, %key;
    add.u32 %v1, %v0, 1;
    add.u32 %v2, %v0, 2;
    add.u32 %v3, %v0, 3;
    cvt.u64.u32 %w0, %v0;
    cvt.u64.u32 %w1, %v1;
    cvt.u64.u32 %w2, %v2;
    cvt.u64.u32 %w3, %v3;
    cvt.u16.u32 %h0, %v0;
    cvt.u16.u32 %h1, %v1;
    cvt.u16.u32 %h2, %v2;
    cvt.u16.u32 %h3, %v3;
{"".join(parts)}
    {operation.after}
    mov.b64 {{%low, %high}}, %wide;
    xor.b32 %acc, %acc, %low;
    xor.b32 %acc, %acc, %high;
    cvt.u32.u16 %low, %half;
    xor.b32 %acc, %acc, %low;
    setp.eq.u32 %p, %acc, %key;
    @!%p bra END;
    st.global.u32 [%row], %acc;
END:
    ret;
}}
"""
    return text, name
