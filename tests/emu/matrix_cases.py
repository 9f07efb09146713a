"""Kernels of one matrix instruction each, with seeded inputs, to be run on any device.

A case's kernel reads its operands as raw words and stores what the instruction gives, so that the
same arrays can be compared between devices, or with a model. Elements are random in one of several
ways: near one, over the format's whole range, or with some NaNs and infinities among them.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import product

import numpy as np
from matrix_inputs import (
    ELEMENTS,
    FLOATS,
    HEADER,
    LANES,
    random_elements,
    random_metadata,
    registers,
    words_of,
)
from matrix_wgmma import sparse_wgmma_cases, wgmma_cases

import smemkern


@dataclass(frozen=True)
class Fragment:
    element: str
    count: int

    @property
    def wide(self) -> bool:
        return self.element == "f64"

    def words(self, rng, trials: int, spread: str) -> np.ndarray:
        per = max(32 // ELEMENTS[self.element][0], 1)
        elements = random_elements(rng, self.element, (trials, self.count, LANES, per), spread)
        return words_of(elements, self.element)[..., 0] if not self.wide else elements[..., 0]


@dataclass(frozen=True)
class Mma:
    """An instruction from registers to registers."""

    text: str  # with {d} {a} {b} {c}, and {e} (metadata) of a sparse one
    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    k: int
    selector: int | None = None  # of a sparse one

    def __str__(self) -> str:
        name = self.text.split()[0].replace(".sync.aligned", "")
        return name if self.selector is None else f"{name} {self.selector}"

    @property
    def sources(self) -> list[tuple[str, Fragment]]:
        metadata = [] if self.selector is None else [("e", Fragment("s32", 1))]
        return [("a", self.a), ("b", self.b), ("c", self.c), *metadata]

    def ptx(self) -> str:
        body, declared = [], []
        parts = [*self.sources, ("d", self.d)]
        for k, (name, part) in enumerate(parts):
            size = 8 if part.wide else 4
            declared.append(f".reg .{'f64' if part.wide else 'b32'} %{name}<{part.count}>;")
            body.append(f"ld.param.u64 %base, [p{k}];")
            body.append(f"mad.lo.u32 %at, %block, {part.count * LANES}, %lane;")
            body.append(f"mad.wide.u32 %base, %at, {size}, %base;")
            move = "st" if name == "d" else "ld"
            if name == "d":
                names = {n: registers(n, f.count) for n, f in parts} | {"e": "%e0"}
                body.append(self.text.format(**names) + ";")
            for r in range(part.count):
                address = f"[%base+{r * LANES * size}]"
                register = f"%{name}{r}"
                pair = (register, address) if move == "ld" else (address, register)
                body.append(f"{move}.global.b{8 * size} {pair[0]}, {pair[1]};")
        parameters = ", ".join(f".param .u64 p{k}" for k in range(len(parts)))
        return "\n".join(
            [
                HEADER + f".visible .entry matrix({parameters})",
                "{",
                *declared,
                ".reg .b64 %base; .reg .b32 %at, %lane, %block;",
                "mov.u32 %lane, %tid.x; mov.u32 %block, %ctaid.x;",
                *body,
                "ret;",
                "}",
            ]
        )

    def inputs(self, trials: int, spread: str) -> list[np.ndarray]:
        rng = np.random.default_rng(zlib.crc32(f"{self.text}{spread}".encode()))
        words = [part.words(rng, trials, spread) for part in (self.a, self.b, self.c)]
        if self.selector is not None:
            every = spread == "codes"
            words.append(random_metadata(rng, self.a.element, (trials, 1, LANES), every))
        return words

    def run(self, inputs, device: str) -> np.ndarray:
        trials = len(inputs[0])
        dtype = np.uint64 if self.d.wide else np.uint32
        out = np.full((trials, self.d.count, LANES), 0xFE, dtype)
        smemkern.Kernel(self.ptx(), "matrix")(trials, LANES, *inputs, out, device=device)
        return out


ROUNDINGS = ("rz", "rm", "rp")  # and .rn, the default


def mma(shape: str, d: str, a: str, b: str, c: str, suffix: str = "", **sparse) -> Mma:
    """suffix: "satfinite"; a rounding of f64; "xor" or "and" of b1. sparse: of mma.sp."""
    m, n, k = (
        int(part) for part in shape.replace("m", "").replace("n", " ").replace("k", " ").split()
    )
    saturate = f".{suffix}" if suffix in ("satfinite", *ROUNDINGS) else ""
    bit_operation = f".{suffix}.popc" if a == "b1" else ""
    variant, selector = sparse.get("variant", ""), sparse.get("selector")
    text = f"mma{variant}.sync.aligned.{shape}.row.col{saturate}.{d}.{a}.{b}.{c}{bit_operation}"
    metadata = "" if selector is None else f", {{e}}, {selector}"

    def fragment(element: str, count: int) -> Fragment:
        bits = ELEMENTS[element][0]
        return Fragment(
            element, max(count * bits // (LANES * 32), 1) if bits < 64 else count // LANES
        )

    return Mma(
        text + " {d}, {a}, {b}, {c}" + metadata,
        fragment(a, m * k if selector is None else m * k // 2),
        fragment(b, n * k),
        fragment(c, m * n),
        fragment(d, m * n),
        k,
        selector,
    )


def mma_cases() -> list[Mma]:
    cases = []
    for k, d in product((8, 16), ("f16", "f32")):
        cases.append(mma(f"m16n8k{k}", d, "f16", "f16", d))
    cases += [mma(f"m16n8k{k}", "f32", "bf16", "bf16", "f32") for k in (8, 16)]
    cases += [mma(f"m16n8k{k}", "f32", "tf32", "tf32", "f32") for k in (4, 8)]
    for k, a, b, d in product((16, 32), ("e4m3", "e5m2"), ("e4m3", "e5m2"), ("f16", "f32")):
        cases.append(mma(f"m16n8k{k}", d, a, b, d))
    for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"):
        cases.append(mma(shape, "f64", "f64", "f64", "f64"))
    for bits, shapes in (
        (8, ("m8n8k16", "m16n8k16", "m16n8k32")),
        (4, ("m8n8k32", "m16n8k32", "m16n8k64")),
    ):
        for shape, a, b, s in product(shapes, "su", "su", ("", "satfinite")):
            cases.append(mma(shape, "s32", f"{a}{bits}", f"{b}{bits}", "s32", s))
    for shape, operation in product(("m8n8k128", "m16n8k128", "m16n8k256"), ("xor", "and")):
        cases.append(mma(shape, "s32", "b1", "b1", "s32", operation))
    return cases


def rounding_cases() -> list[Mma]:
    shapes = ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")
    return [mma(shape, *["f64"] * 4, r) for shape, r in product(shapes, ROUNDINGS)]


def quad_cases() -> list[Mma]:
    """m8n8k4 of f16: four products."""
    cases, half, single = [], Fragment("f16", 4), Fragment("f32", 8)
    for a, b, (d, c) in product(
        ("row", "col"), ("row", "col"), ((half, half), (single, half), (single, single))
    ):
        text = f"mma.sync.aligned.m8n8k4.{a}.{b}.{d.element}.f16.f16.{c.element}"
        factor = Fragment("f16", 2)
        cases.append(Mma(text + " {d}, {a}, {b}, {c}", factor, factor, c, d, 4))
    return cases


SPARSE = {  # (a, b, c and d): k and its selectors
    **{(a, a, "f32"): {16: 4, 32: 2} for a in ("f16", "bf16")},
    ("f16", "f16", "f16"): {16: 4, 32: 2},
    ("tf32", "tf32", "f32"): {8: 4, 16: 2},
    **{(a, b, "f32"): {64: 1} for a, b in product(("e4m3", "e5m2"), repeat=2)},
    **{(a, b, "s32"): {32: 2, 64: 1} for a, b in product(("s8", "u8"), repeat=2)},
    **{(a, b, "s32"): {64: 2, 128: 1} for a, b in product(("s4", "u4"), repeat=2)},
}


def sparse_cases() -> list[Mma]:
    cases = []
    for variant, (a, b, d) in product((".sp", ".sp::ordered_metadata"), SPARSE):
        for k, selectors in SPARSE[a, b, d].items():
            for selector, s in product(range(selectors), ("", "satfinite")):
                if s == "" or d == "s32":
                    form = {"variant": variant, "selector": selector}
                    cases.append(mma(f"m16n8k{k}", d, a, b, d, s, **form))
    return cases


# ---- ldmatrix, stmatrix, movmatrix ----


@dataclass(frozen=True)
class Move:
    """ldmatrix or stmatrix of 16-byte rows at random places of 8 KiB, or movmatrix."""

    opcode: str
    count: int
    transposed: bool

    def __str__(self) -> str:
        return f"{self.opcode}.x{self.count}{'.trans' if self.transposed else ''}"

    def ptx(self) -> str:
        trans = ".trans" if self.transposed else ""
        values = registers("v", self.count)
        if self.opcode == "movmatrix":
            text = "movmatrix.sync.aligned.m8n8.trans.b16 %v0, %v0"
        elif self.opcode == "ldmatrix":
            text = f"ldmatrix.sync.aligned.m8n8.x{self.count}{trans}.shared.b16 {values}, [%row]"
        else:
            text = f"stmatrix.sync.aligned.m8n8.x{self.count}{trans}.shared.b16 [%row], {values}"
        load = "\n".join(f"ld.global.b32 %v{k}, [%from+{128 * k}];" for k in range(self.count))
        store = "\n".join(f"st.global.b32 [%to+{128 * k}], %v{k};" for k in range(self.count))
        return f"""{HEADER}
.visible .entry matrix(.param .u64 memory, .param .u64 rows, .param .u64 values)
{{
    .reg .b64 %memory, %rows, %values, %from, %to, %global; .reg .b32 %lane, %row, %base, %k, %v<4>;
    .reg .b32 %word, %at; .reg .pred %more;
    .shared .align 16 .b8 tile[8192];
    ld.param.u64 %memory, [memory]; ld.param.u64 %rows, [rows]; ld.param.u64 %values, [values];
    mov.u32 %lane, %tid.x; mov.u32 %base, tile; mov.u32 %k, %lane;
FILL:
    mad.wide.u32 %global, %k, 4, %memory; ld.global.b32 %word, [%global];
    mad.lo.u32 %at, %k, 4, %base; st.shared.b32 [%at], %word;
    add.u32 %k, %k, 32; setp.lt.u32 %more, %k, 2048; @%more bra FILL;
    bar.sync 0;
    mad.wide.u32 %global, %lane, 4, %rows; ld.global.b32 %row, [%global]; add.u32 %row, %row, %base;
    mad.wide.u32 %from, %lane, 4, %values; mov.b64 %to, %from;
    {load}
    {text};
    {store}
    bar.sync 0; mov.u32 %k, %lane;
DUMP:
    mad.wide.u32 %global, %k, 4, %memory; mad.lo.u32 %at, %k, 4, %base;
    ld.shared.b32 %word, [%at]; st.global.b32 [%global], %word;
    add.u32 %k, %k, 32; setp.lt.u32 %more, %k, 2048; @%more bra DUMP;
    ret;
}}
"""

    def inputs(self) -> list[np.ndarray]:
        """Memory (8 KiB of distinct halves), the lanes' row addresses, the fragment."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        memory = rng.permutation(1 << 16)[:4096].astype(np.uint16)
        rows = 16 * rng.permutation(512)[:LANES].astype(np.uint32)
        values = rng.integers(0, 1 << 32, (self.count, LANES), dtype=np.uint32)
        return [memory, rows, values]

    def run(self, inputs, device: str) -> tuple[np.ndarray, np.ndarray]:
        memory, rows, values = (array.copy() for array in inputs)
        smemkern.Kernel(self.ptx(), "matrix")(1, LANES, memory, rows, values, device=device)
        return memory, values


def move_cases() -> list[Move]:
    cases = [
        Move(opcode, count, transposed)
        for opcode, count, transposed in product(("ldmatrix", "stmatrix"), (1, 2, 4), (False, True))
    ]
    return [*cases, Move("movmatrix", 1, True)]


# ---- wmma ----


@dataclass(frozen=True)
class Wmma:
    """load, load, load, mma, store; and the fragments as they were loaded."""

    shape: tuple[int, int, int]
    a: str
    c: str
    d: str
    a_row: bool
    b_row: bool
    c_row: bool
    suffix: str = ""

    def __str__(self) -> str:
        order = "".join(
            "row "[:3] + "." if r else "col." for r in (self.a_row, self.b_row, self.c_row)
        )
        m, n, k = self.shape
        return f"wmma.{order}m{m}n{n}k{k}.{self.d}.{self.a}.{self.c}.{self.suffix}"

    def count(self, which: str) -> int:
        m, n, k = self.shape
        elements = {"a": m * k, "b": n * k, "c": m * n, "d": m * n}[which]
        element = {"a": self.a, "b": self.a, "c": self.c, "d": self.d}[which]
        if element == "f16" and which in "ab":
            return 8
        bits = ELEMENTS[element][0]
        return elements // LANES if bits == 64 else max(elements * bits // (LANES * 32), 1)

    def ptx(self) -> str:
        m, n, k = self.shape
        shape = f"m{m}n{n}k{k}"
        layout = {True: "row", False: "col"}
        la, lb, lc = (layout[r] for r in (self.a_row, self.b_row, self.c_row))
        stride = {
            "a": k if self.a_row else m,
            "b": n if self.b_row else k,
            "c": n if self.c_row else m,
        }
        register = "f64" if self.a == "f64" else "b32"
        regs = {w: registers(w, self.count(w)) for w in "abcd"}
        types = f"{self.d}.{self.c}" if self.a == "f16" else f"{self.d}.{self.a}.{self.a}.{self.c}"
        opcode = f"wmma.mma.{self.suffix}.popc" if self.a == "b1" else "wmma.mma"
        saturate = ".satfinite" if self.suffix == "satfinite" else ""
        rounding = f".{self.suffix}" if self.suffix in ROUNDINGS else ""
        size = 8 if self.a == "f64" else 4
        dump = "\n".join(
            f"st.global.b{8 * size} [%f+{(offset + k) * LANES * size}], %{w}{k};"
            for w, offset in (("a", 0), ("b", self.count("a")))
            for k in range(self.count(w))
        )
        return f"""{HEADER}
.visible .entry matrix(
    .param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u64 pf)
{{
    .reg .b64 %pa, %pb, %pc, %pd, %f; .reg .b32 %lane;
    {" ".join(f".reg .{register} %{w}<8>;" for w in "abcd")}
    ld.param.u64 %pa, [pa]; ld.param.u64 %pb, [pb]; ld.param.u64 %pc, [pc]; ld.param.u64 %pd, [pd];
    ld.param.u64 %f, [pf]; mov.u32 %lane, %tid.x; mad.wide.u32 %f, %lane, {size}, %f;
    wmma.load.a.sync.aligned.{la}.{shape}.global.{self.a} {regs["a"]}, [%pa], {stride["a"]};
    wmma.load.b.sync.aligned.{lb}.{shape}.global.{self.a} {regs["b"]}, [%pb], {stride["b"]};
    wmma.load.c.sync.aligned.{lc}.{shape}.global.{self.c} {regs["c"]}, [%pc], {stride["c"]};
    {opcode}.sync.aligned.{la}.{lb}.{shape}{rounding}.{types}{saturate}
        {regs["d"]}, {regs["a"]}, {regs["b"]}, {regs["c"]};
    wmma.store.d.sync.aligned.{lc}.{shape}.global.{self.d} [%pd], {regs["d"]}, {stride["c"]};
    {dump}
    ret;
}}
"""

    def inputs(self, spread: str) -> list[np.ndarray]:
        """Memory as bytes of packed elements: A, B, C."""
        m, n, k = self.shape
        rng = np.random.default_rng(zlib.crc32(f"{self}{spread}".encode()))
        result = []
        for element, count in ((self.a, m * k), (self.a, k * n), (self.c, m * n)):
            values = random_elements(rng, element, (count,), spread)
            if element == "f16":
                result.append(values.astype(np.uint16))
            else:
                result.append(words_of(values, element))
        return result

    def run(self, inputs, device: str) -> tuple[np.ndarray, np.ndarray]:
        """D in memory, and the fragments of A and B."""
        m, n, _ = self.shape
        dtype = {"f16": np.uint16, "f64": np.uint64}.get(self.d, np.uint32)
        d = np.zeros(m * n, dtype)
        wide = np.uint64 if self.a == "f64" else np.uint32
        fragments = np.zeros((self.count("a") + self.count("b"), LANES), wide)
        kernel = smemkern.Kernel(self.ptx(), "matrix")
        kernel(1, LANES, *inputs, d, fragments, device=device)
        return d, fragments


def wmma_cases() -> list[Wmma]:
    cases = []
    shapes = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
    orders = list(product((True, False), repeat=3))
    for shape, (c, d) in product(shapes, product(("f16", "f32"), repeat=2)):
        cases += [Wmma(shape, "f16", c, d, *order) for order in orders]
    for shape in shapes:
        cases += [Wmma(shape, "bf16", "f32", "f32", *order) for order in orders]
        for a, s in product(("s8", "u8"), ("", "satfinite")):
            cases += [Wmma(shape, a, "s32", "s32", *order, s) for order in orders]
    cases += [Wmma((16, 16, 8), "tf32", "f32", "f32", *order) for order in orders]
    cases += [Wmma((8, 8, 4), "f64", "f64", "f64", *order) for order in orders]
    for a, c_row in product(("s4", "u4"), (True, False)):
        cases.append(Wmma((8, 8, 32), a, "s32", "s32", True, False, c_row))
    for operation, c_row in product(("xor", "and"), (True, False)):
        cases.append(Wmma((8, 8, 128), "b1", "s32", "s32", True, False, c_row, operation))
    return cases


def wmma_rounding_cases() -> list[Wmma]:
    orders = product((True, False), repeat=3)
    return [
        Wmma((8, 8, 4), "f64", "f64", "f64", *order, r) for order, r in product(orders, ROUNDINGS)
    ]


# ---- all of them ----

TRIALS = 64  # warps of an Mma case


SPREADS = ("near", "wide", "special", "cancel", "tiny")


def is_float(case) -> bool:
    return (case.a.element if isinstance(case, Mma) else case.a) in FLOATS


def sparse_runs() -> list[tuple[object, str]]:
    mma, wgmma = sparse_cases(), sparse_wgmma_cases()
    first = {(c.a.element, c.d.element, c.k): c for c in reversed(mma) if "ordered" not in c.text}
    return [
        *product((case for case in mma if is_float(case)), SPREADS),
        *((case, "near") for case in mma if not is_float(case)),
        *((case, "near") for case in wgmma),
        *product(wgmma[::3], SPREADS[1:]),
        # Any metadata, also with equal indices. Of tf32 some is an error.
        *((case, "codes") for case in first.values() if case.a.element != "tf32"),
        *((case, "codes") for case in wgmma[::5] if case.a != "tf32"),
    ]


def all_runs() -> list[tuple[object, str]]:
    """(case, spread of its inputs)."""
    wgmma = wgmma_cases()
    return [
        *((case, "") for case in move_cases()),
        *product(mma_cases(), SPREADS[:3]),
        *product((c for c in mma_cases() if is_float(c) and not c.a.wide), SPREADS[3:]),
        *product(quad_cases() + rounding_cases(), SPREADS),
        *((case, "near") for case in wmma_cases() + wmma_rounding_cases() + wgmma),
        *product(wgmma[::3], SPREADS[1:3]),
        *product((case for case in wgmma[::4] if is_float(case)), SPREADS[3:]),
        *sparse_runs(),
    ]


def run_inputs(case, spread: str) -> list[np.ndarray]:
    if isinstance(case, Move):
        return case.inputs()
    return case.inputs(TRIALS, spread) if isinstance(case, Mma) else case.inputs(spread)


def checksums(arrays) -> list[int]:
    return [zlib.crc32(np.ascontiguousarray(array).tobytes()) for array in arrays]


def outputs(case, inputs, device: str) -> tuple[np.ndarray, ...]:
    out = case.run(inputs, device)
    return out if isinstance(out, tuple) else (out,)
