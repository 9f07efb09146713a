"""Kernels of one wgmma each, whose operands are whatever bytes shared memory is filled with."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import product

import numpy as np
from matrix_inputs import (
    ELEMENTS,
    FLOATS,
    HEADER,
    random_elements,
    random_metadata,
    registers,
    words_of,
)

import smemkern

A_BYTES, B_BYTES = 8192, 36864
SWIZZLES = {16: 0, 32: 3, 64: 2, 128: 1}  # bytes of a row: code in the descriptor


@dataclass(frozen=True)
class Wgmma:
    n: int
    a: str
    b: str
    d: str
    rows: int = 128  # bytes of a row of both operands: 16 (no swizzle), 32, 64, 128
    a_major: int = 0  # 1: m-major
    b_major: int = 0
    a_registers: bool = False
    scale_d: int = 1
    sign_a: int = 1
    sign_b: int = 1
    advance: int = 0  # bytes added to the start, within the rows
    saturate: bool = False
    selector: int | None = None  # of a sparse one

    def __str__(self) -> str:
        source = "registers" if self.a_registers else f"major{self.a_major}"
        return (
            f"wgmma.n{self.n}.{self.d}.{self.a}.{self.b}.rows{self.rows}.{source}.{self.b_major}"
            f".d{self.scale_d}.{self.sign_a}.{self.sign_b}.at{self.advance}{'.sat' * self.saturate}"
            f"{'' if self.selector is None else f'.sp{self.selector}'}"
        )

    @property
    def k(self) -> int:
        return (256 if self.selector is None else 512) // ELEMENTS[self.a][0]

    @property
    def d_count(self) -> int:
        return self.n // 8 * (2 if self.d == "f16" else 4)

    def distances(self, mn: int, major: int, k_bytes: int) -> tuple[int, int]:
        """Leading and stride byte offsets of an operand that has no gaps."""
        atom = 8 * self.rows
        size = ELEMENTS[self.a][0] // 8
        if not major:  # stride: 8 rows of mn; leading: the chunks along k, unswizzled only
            if self.rows == 16:
                return mn * 16, 128
            return (16 if k_bytes <= self.rows else mn * self.rows), atom
        across = mn * size // self.rows  # atoms along mn
        if self.rows == 16:  # leading along k, stride along mn
            return across * 128, 128
        return atom, across * atom

    def descriptor(self, mn: int, major: int, k_bytes: int = 32) -> int:
        leading, stride = self.distances(mn, major, k_bytes)
        return leading >> 4 << 16 | stride >> 4 << 32 | SWIZZLES[self.rows] << 62

    def ptx(self) -> str:
        declared = f".reg .b32 %d<{self.d_count}>;"
        floats = self.a in FLOATS
        half = self.a in ("f16", "bf16")
        sparse = self.selector is not None
        tail = ["%meta", str(self.selector), "%add"] if sparse else ["%add"]
        if floats:
            tail += [str(self.sign_a), str(self.sign_b)]
        if half:
            tail += ([] if self.a_registers else [str(self.a_major)]) + [str(self.b_major)]
        a = "{%a0, %a1, %a2, %a3}" if self.a_registers else "%da"
        sat = ".satfinite" if self.saturate else ""
        popc = ".and.popc" if self.a == "b1" else ""
        instruction = (
            f"wgmma.mma_async{'.sp' * sparse}.sync.aligned.m64n{self.n}k{self.k}{sat}"
            f".{self.d}.{self.a}.{self.b}{popc} "
            f"{registers('d', self.d_count)}, {a}, %db, {', '.join(tail)};"
        )
        load = "\n".join(f"ld.global.b32 %d{k}, [%pc+{512 * k}];" for k in range(self.d_count))
        store = "\n".join(f"st.global.b32 [%pd+{512 * k}], %d{k};" for k in range(self.d_count))
        load_a = "\n".join(f"ld.global.b32 %a{k}, [%pa+{512 * k}];" for k in range(4))
        b_descriptor = self.descriptor(self.n, self.b_major, 64 if sparse else 32)
        total = (A_BYTES + B_BYTES) // 4
        parameter = ", .param .u64 pe" if sparse else ""
        metadata = (
            """ld.param.u64 %at, [pe]; mad.wide.u32 %at, %lane, 4, %at;
    ld.global.b32 %meta, [%at];"""
            if sparse
            else ""
        )
        return f"""{HEADER}
.visible .entry matrix(.param .u64 pm, .param .u64 pa, .param .u64 pc, .param .u64 pd{parameter})
{{
    .reg .b64 %pm, %pa, %pc, %pd, %at, %da, %db;
    .reg .b32 %lane, %k, %word, %base, %to, %a<4>, %meta; .reg .pred %more, %add; {declared}
    .shared .align 1024 .b8 tile[{A_BYTES + B_BYTES}];
    ld.param.u64 %pm, [pm]; ld.param.u64 %pa, [pa]; ld.param.u64 %pc, [pc]; ld.param.u64 %pd, [pd];
    mov.u32 %lane, %tid.x; mov.u32 %base, tile; mov.u32 %k, %lane;
FILL:
    mad.wide.u32 %at, %k, 4, %pm; ld.global.b32 %word, [%at];
    mad.lo.u32 %to, %k, 4, %base; st.shared.b32 [%to], %word;
    add.u32 %k, %k, 128; setp.lt.u32 %more, %k, {total}; @%more bra FILL;
    mad.wide.u32 %pa, %lane, 4, %pa; mad.wide.u32 %pc, %lane, 4, %pc;
    mad.wide.u32 %pd, %lane, 4, %pd;
    {load}
    {load_a}
    {metadata}
    fence.proxy.async;
    bar.sync 0;
    add.u32 %to, %base, {self.advance}; shr.u32 %to, %to, 4;
    cvt.u64.u32 %da, %to; or.b64 %da, %da, {self.descriptor(64, self.a_major):#x};
    add.u32 %to, %base, {A_BYTES + self.advance}; shr.u32 %to, %to, 4;
    cvt.u64.u32 %db, %to; or.b64 %db, %db, {b_descriptor:#x};
    setp.ne.b32 %add, {self.scale_d}, 0;
    wgmma.fence.sync.aligned;
    {instruction}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    {store}
    ret;
}}
"""

    def inputs(self, spread: str) -> list[np.ndarray]:
        """Shared memory, A's registers (k, thread), C's registers (k, thread)."""
        rng = np.random.default_rng(zlib.crc32(f"{self}{spread}".encode()))

        def words(element: str, shape) -> np.ndarray:
            per = 32 // ELEMENTS[element][0]
            return words_of(random_elements(rng, element, (*shape, per), spread), element)[..., 0]

        memory = np.concatenate([words(self.a, (A_BYTES // 4,)), words(self.b, (B_BYTES // 4,))])
        inputs = [memory, words(self.a, (4, 128)), words(self.d, (self.d_count, 128))]
        if self.selector is not None:
            inputs.append(random_metadata(rng, self.a, (128,), spread == "codes"))
        return inputs

    def run(self, inputs, device: str) -> np.ndarray:
        out = np.zeros((self.d_count, 128), np.uint32)
        arrays = [*inputs[:3], out, *inputs[3:]]
        smemkern.Kernel(self.ptx(), "matrix")(1, 128, *arrays, device=device)
        return out


def wgmma_cases() -> list[Wgmma]:
    cases = []
    for rows, a_major, b_major in product(SWIZZLES, (0, 1), (0, 1)):
        for n in (8, 64, 128, 256):
            if n * 2 < rows and b_major:
                continue  # less than a row along n
            cases.append(Wgmma(n, "f16", "f16", "f32", rows, a_major, b_major))
    cases += [Wgmma(n, "bf16", "bf16", "f32") for n in range(8, 257, 8)]
    kinds = [("f16", "f16", d) for d in ("f16", "f32")] + [("bf16", "bf16", "f32")]
    kinds += [("tf32", "tf32", "f32")]
    kinds += [(a, b, d) for a, b, d in product(("e4m3", "e5m2"), ("e4m3", "e5m2"), ("f16", "f32"))]
    for (a, b, d), rows in product(kinds, SWIZZLES):
        cases.append(Wgmma(24, a, b, d, rows))
        cases.append(Wgmma(88, a, b, d, rows, a_registers=True))
    for (a, b, d), scale, x, y in product(kinds, (0, 1), (-1, 1), (-1, 1)):
        cases.append(Wgmma(16, a, b, d, scale_d=scale, sign_a=x, sign_b=y))
    for a, b, rows, registers_, s in product(
        ("s8", "u8"), ("s8", "u8"), SWIZZLES, (False, True), (False, True)
    ):
        cases.append(Wgmma(32, a, b, "s32", rows, a_registers=registers_, saturate=s))
    cases += [
        Wgmma(16, "b1", "b1", "s32", rows, a_registers=r) for rows in SWIZZLES for r in (0, 1)
    ]
    for rows, advance in ((128, 32), (128, 64), (128, 96), (64, 32)):
        cases.append(Wgmma(64, "f16", "f16", "f32", rows, advance=advance))
        cases.append(Wgmma(64, "tf32", "tf32", "f32", rows, advance=advance))
    return cases


def sparse_wgmma_cases() -> list[Wgmma]:
    cases = []
    for rows, a_major, b_major in product(SWIZZLES, (0, 1), (0, 1)):
        for n in (8, 64, 256):
            if n * 2 >= rows or not b_major:  # else less than a row along n
                selector = n // 64 % 2
                form = {"a_major": a_major, "b_major": b_major, "selector": selector}
                cases.append(Wgmma(n, "f16", "f16", "f32", rows, **form))
    cases += [Wgmma(n, "bf16", "bf16", "f32", selector=n // 8 % 2) for n in range(8, 257, 8)]
    kinds = {(a, a, d): 2 for a, d in (("f16", "f16"), ("f16", "f32"), ("bf16", "f32"))}
    kinds[("tf32", "tf32", "f32")] = 2
    fp8 = ("e4m3", "e5m2")
    kinds |= dict.fromkeys(product(fp8, fp8, ("f16", "f32")), 1)
    for ((a, b, d), selectors), rows in product(kinds.items(), SWIZZLES):
        for selector in range(selectors):
            cases.append(Wgmma(24, a, b, d, rows, selector=selector))
            cases.append(Wgmma(88, a, b, d, rows, a_registers=True, selector=selector))
    for (a, b, d), scale, x, y in product(kinds, (0, 1), (-1, 1), (-1, 1)):
        cases.append(Wgmma(16, a, b, d, scale_d=scale, sign_a=x, sign_b=y, selector=0))
    for a, b, rows, registers_, s in product(
        ("s8", "u8"), ("s8", "u8"), SWIZZLES, (False, True), (False, True)
    ):
        form = {"a_registers": registers_, "saturate": s, "selector": 0}
        cases.append(Wgmma(32, a, b, "s32", rows, **form))
    return list(dict.fromkeys(cases))  # each once
