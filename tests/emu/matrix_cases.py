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

import smemkern

LANES = 32

# name: bits, mantissa bits, exponent bits (0: an integer)
ELEMENTS = {
    "f16": (16, 10, 5),
    "bf16": (16, 7, 8),
    "tf32": (32, 23, 8),
    "e4m3": (8, 3, 4),
    "e5m2": (8, 2, 5),
    "f32": (32, 23, 8),
    "f64": (64, 52, 11),
    "s8": (8, 0, 0),
    "u8": (8, 0, 0),
    "s4": (4, 0, 0),
    "u4": (4, 0, 0),
    "b1": (1, 0, 0),
    "s32": (32, 0, 0),
}
FLOATS = ("f16", "bf16", "tf32", "e4m3", "e5m2", "f64")


def random_elements(rng, name: str, shape, spread: str) -> np.ndarray:
    """Bit patterns. spread: "near" one, "wide", "special" (wide, some NaNs and infinities)."""
    bits, mantissa, exponent = ELEMENTS[name]
    raw = rng.integers(0, 1 << bits, shape, dtype=np.uint64)
    if not exponent:
        if name == "s32" and spread == "near":
            return raw & 0xFFFF
        return raw
    top, bias = (1 << exponent) - 1, (1 << (exponent - 1)) - 1
    if spread == "near":
        biased = rng.integers(max(bias - 4, 0), bias + 3, shape, dtype=np.uint64)
    else:
        last = top + 1 if name == "e4m3" else top
        biased = rng.integers(0, last, shape, dtype=np.uint64)
    sign = raw & np.uint64(1 << (bits - 1))
    fraction = raw & np.uint64((1 << mantissa) - 1)
    values = sign | biased << np.uint64(mantissa) | fraction
    if spread == "wide":
        values = np.where(rng.random(shape) < 0.05, sign, values)  # zeros
    if name == "e4m3":
        nan = (values & 0x7F) == 0x7F
        values = np.where(nan, values ^ 1, values)
    if spread == "special":
        infinity = np.uint64(top << mantissa)
        odd = rng.random(shape)
        values = np.where(odd < 0.01, sign | infinity, values)
        values = np.where(odd > 0.995, sign | infinity | fraction | 1, values)
    return values


def words_of(elements: np.ndarray, name: str) -> np.ndarray:
    """Neighbours on the last axis packed into registers of 32 bits (64 for f64)."""
    bits = ELEMENTS[name][0]
    if bits == 64:
        return elements
    per = 32 // bits
    grouped = elements.reshape(*elements.shape[:-1], -1, per)
    shifts = np.arange(per, dtype=np.uint64) * np.uint64(bits)
    return np.bitwise_or.reduce(grouped << shifts, axis=-1).astype(np.uint32)


HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def registers(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{k}" for k in range(count)) + "}"


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

    text: str  # with {d} {a} {b} {c}
    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    k: int

    def __str__(self) -> str:
        return self.text.split()[0].replace(".sync.aligned", "")

    def ptx(self) -> str:
        body, declared = [], []
        parts = [("a", self.a), ("b", self.b), ("c", self.c), ("d", self.d)]
        for k, (name, part) in enumerate(parts):
            size = 8 if part.wide else 4
            declared.append(f".reg .{'f64' if part.wide else 'b32'} %{name}<{part.count}>;")
            body.append(f"ld.param.u64 %base, [p{k}];")
            body.append(f"mad.lo.u32 %at, %block, {part.count * LANES}, %lane;")
            body.append(f"mad.wide.u32 %base, %at, {size}, %base;")
            move = "st" if name == "d" else "ld"
            if name == "d":
                names = {n: registers(n, f.count) for n, f in parts}
                body.append(self.text.format(**names) + ";")
            for r in range(part.count):
                address = f"[%base+{r * LANES * size}]"
                register = f"%{name}{r}"
                pair = (register, address) if move == "ld" else (address, register)
                body.append(f"{move}.global.b{8 * size} {pair[0]}, {pair[1]};")
        parameters = ", ".join(f".param .u64 p{k}" for k in range(4))
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
        return [part.words(rng, trials, spread) for part in (self.a, self.b, self.c)]

    def run(self, inputs, device: str) -> np.ndarray:
        trials = len(inputs[0])
        dtype = np.uint64 if self.d.wide else np.uint32
        out = np.full((trials, self.d.count, LANES), 0xFE, dtype)
        smemkern.Kernel(self.ptx(), "matrix")(trials, LANES, *inputs, out, device=device)
        return out


def mma(shape: str, d: str, a: str, b: str, c: str, suffix: str = "") -> Mma:
    m, n, k = (
        int(part) for part in shape.replace("m", "").replace("n", " ").replace("k", " ").split()
    )
    saturate = ".satfinite" if suffix == "satfinite" else ""
    bit_operation = f".{suffix}.popc" if a == "b1" else ""
    text = f"mma.sync.aligned.{shape}.row.col{saturate}.{d}.{a}.{b}.{c}{bit_operation}"

    def fragment(element: str, count: int) -> Fragment:
        bits = ELEMENTS[element][0]
        return Fragment(
            element, max(count * bits // (LANES * 32), 1) if bits < 64 else count // LANES
        )

    return Mma(
        text + " {d}, {a}, {b}, {c}",
        fragment(a, m * k),
        fragment(b, n * k),
        fragment(c, m * n),
        fragment(d, m * n),
        k,
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
        if self.a in ("s4", "u4", "b1"):
            pass
        register = "f64" if self.a == "f64" else "b32"
        regs = {w: registers(w, self.count(w)) for w in "abcd"}
        types = f"{self.d}.{self.c}" if self.a == "f16" else f"{self.d}.{self.a}.{self.a}.{self.c}"
        opcode = f"wmma.mma.{self.suffix}.popc" if self.a == "b1" else "wmma.mma"
        saturate = ".satfinite" if self.suffix == "satfinite" else ""
        size = 8 if self.a == "f64" else 4
        dump = "\n".join(
            f"st.global.b{8 * size} [%f+{(offset + k) * LANES * size}], %{w}{k};"
            for w, offset in (("a", 0), ("b", self.count("a")))
            for k in range(self.count(w))
        )
        return f"""{HEADER}
.visible .entry matrix(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u64 pf)
{{
    .reg .b64 %pa, %pb, %pc, %pd, %f; .reg .b32 %lane;
    {" ".join(f".reg .{register} %{w}<8>;" for w in "abcd")}
    ld.param.u64 %pa, [pa]; ld.param.u64 %pb, [pb]; ld.param.u64 %pc, [pc]; ld.param.u64 %pd, [pd];
    ld.param.u64 %f, [pf]; mov.u32 %lane, %tid.x; mad.wide.u32 %f, %lane, {size}, %f;
    wmma.load.a.sync.aligned.{la}.{shape}.global.{self.a} {regs["a"]}, [%pa], {stride["a"]};
    wmma.load.b.sync.aligned.{lb}.{shape}.global.{self.a} {regs["b"]}, [%pb], {stride["b"]};
    wmma.load.c.sync.aligned.{lc}.{shape}.global.{self.c} {regs["c"]}, [%pc], {stride["c"]};
    {opcode}.sync.aligned.{la}.{lb}.{shape}.{types}{saturate} {regs["d"]}, {regs["a"]}, {regs["b"]}, {regs["c"]};
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


# ---- wgmma ----

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

    def __str__(self) -> str:
        source = "registers" if self.a_registers else f"major{self.a_major}"
        return (
            f"wgmma.n{self.n}.{self.d}.{self.a}.{self.b}.rows{self.rows}.{source}.{self.b_major}"
            f".d{self.scale_d}.{self.sign_a}.{self.sign_b}.at{self.advance}{'.sat' * self.saturate}"
        )

    @property
    def k(self) -> int:
        return 256 // ELEMENTS[self.a][0]

    @property
    def d_count(self) -> int:
        return self.n // 8 * (2 if self.d == "f16" else 4)

    def distances(self, mn: int, major: int) -> tuple[int, int]:
        """Leading and stride byte offsets of a dense operand."""
        atom = 8 * self.rows
        size = ELEMENTS[self.a][0] // 8
        if not major:  # stride: 8 rows of mn; leading: the chunks along k, unswizzled only
            return (mn * 16, 128) if self.rows == 16 else (16, atom)
        across = mn * size // self.rows  # atoms along mn
        if self.rows == 16:  # leading along k, stride along mn
            return across * 128, 128
        return atom, across * atom

    def descriptor(self, mn: int, major: int) -> int:
        leading, stride = self.distances(mn, major)
        return leading >> 4 << 16 | stride >> 4 << 32 | SWIZZLES[self.rows] << 62

    def ptx(self) -> str:
        declared = f".reg .b32 %d<{self.d_count}>;"
        floats = self.a in FLOATS
        half = self.a in ("f16", "bf16")
        tail = ["%add"]
        if floats:
            tail += [str(self.sign_a), str(self.sign_b)]
        if half:
            tail += ([] if self.a_registers else [str(self.a_major)]) + [str(self.b_major)]
        a = "{%a0, %a1, %a2, %a3}" if self.a_registers else "%da"
        sat = ".satfinite" if self.saturate else ""
        popc = ".and.popc" if self.a == "b1" else ""
        instruction = (
            f"wgmma.mma_async.sync.aligned.m64n{self.n}k{self.k}{sat}.{self.d}.{self.a}.{self.b}{popc} "
            f"{registers('d', self.d_count)}, {a}, %db, {', '.join(tail)};"
        )
        load = "\n".join(f"ld.global.b32 %d{k}, [%pc+{512 * k}];" for k in range(self.d_count))
        store = "\n".join(f"st.global.b32 [%pd+{512 * k}], %d{k};" for k in range(self.d_count))
        load_a = "\n".join(f"ld.global.b32 %a{k}, [%pa+{512 * k}];" for k in range(4))
        total = (A_BYTES + B_BYTES) // 4
        return f"""{HEADER}
.visible .entry matrix(.param .u64 pm, .param .u64 pa, .param .u64 pc, .param .u64 pd)
{{
    .reg .b64 %pm, %pa, %pc, %pd, %at, %da, %db; .reg .b32 %lane, %k, %word, %base, %to, %a<4>;
    .reg .pred %more, %add; {declared}
    .shared .align 1024 .b8 tile[{A_BYTES + B_BYTES}];
    ld.param.u64 %pm, [pm]; ld.param.u64 %pa, [pa]; ld.param.u64 %pc, [pc]; ld.param.u64 %pd, [pd];
    mov.u32 %lane, %tid.x; mov.u32 %base, tile; mov.u32 %k, %lane;
FILL:
    mad.wide.u32 %at, %k, 4, %pm; ld.global.b32 %word, [%at];
    mad.lo.u32 %to, %k, 4, %base; st.shared.b32 [%to], %word;
    add.u32 %k, %k, 128; setp.lt.u32 %more, %k, {total}; @%more bra FILL;
    mad.wide.u32 %pa, %lane, 4, %pa; mad.wide.u32 %pc, %lane, 4, %pc; mad.wide.u32 %pd, %lane, 4, %pd;
    {load}
    {load_a}
    fence.proxy.async;
    bar.sync 0;
    add.u32 %to, %base, {self.advance}; shr.u32 %to, %to, 4;
    cvt.u64.u32 %da, %to; or.b64 %da, %da, {self.descriptor(64, self.a_major):#x};
    add.u32 %to, %base, {A_BYTES + self.advance}; shr.u32 %to, %to, 4;
    cvt.u64.u32 %db, %to; or.b64 %db, %db, {self.descriptor(self.n, self.b_major):#x};
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
        return [memory, words(self.a, (4, 128)), words(self.d, (self.d_count, 128))]

    def run(self, inputs, device: str) -> np.ndarray:
        out = np.zeros((self.d_count, 128), np.uint32)
        smemkern.Kernel(self.ptx(), "matrix")(1, 128, *inputs, out, device=device)
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


# ---- all of them ----

TRIALS = 64  # warps of an Mma case


def all_runs() -> list[tuple[object, str]]:
    """(case, spread of its inputs)."""
    wgmma = wgmma_cases()
    return [
        *((case, "") for case in move_cases()),
        *product(mma_cases(), ("near", "wide", "special")),
        *((case, "near") for case in wmma_cases() + wgmma),
        *product(wgmma[::3], ("wide", "special")),
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
