"""One PTX instruction against a model of it, over edge values and random bits.

A row is an instruction's text, the types of its operands and a function that says what it should
give. `check` writes a kernel around it: a thread loads its sources, runs the instruction twice,
once plainly and once under a guard that holds in some lanes only, and stores both results; where
the guard does not hold the register must keep what it had.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np
import pytest
from exact_float import FORMATS

BLOCK = 96  # three warps
COUNT = 20 * BLOCK  # threads, one for each tuple of sources


@dataclass(frozen=True)
class Type:
    """How a PTX type is kept in a register, loaded, and seen by a model."""

    register: str
    memory: str
    dtype: np.dtype


def _types() -> dict[str, Type]:
    types = {
        "pred": Type(".pred", "u32", np.dtype(np.uint32)),
        "b8": Type(".b16", "u8", np.dtype(np.uint8)),
        "u8": Type(".b16", "u8", np.dtype(np.uint8)),
        "s8": Type(".b16", "s8", np.dtype(np.int8)),
    }
    for bits in (16, 32, 64):
        for kind in "bus":
            dtype = np.dtype(f"{'i' if kind == 's' else 'u'}{bits // 8}")
            types[f"{kind}{bits}"] = Type(f".b{bits}", f"b{bits}", dtype)
    for name, bits in (("f16", 16), ("bf16", 16), ("f32", 32), ("f64", 64), ("tf32", 32)):
        types[name] = Type(f".b{bits}", f"b{bits}", np.dtype(f"u{bits // 8}"))
    for name in ("f16x2", "bf16x2", "u16x2", "s16x2"):
        types[name] = Type(".b32", "b32", np.dtype(np.uint32))
    for name in ("e4m3x2", "e5m2x2"):
        types[name] = Type(".b16", "b16", np.dtype(np.uint16))
    types["f32"] = Type(".f32", "f32", np.dtype(np.uint32))
    types["f64"] = Type(".f64", "f64", np.dtype(np.uint64))
    return types


TYPES = _types()

Model = Callable[..., Sequence[int] | np.ndarray]


@dataclass(frozen=True)
class Row:
    """text: the instruction, with {d} (and {e}) for destinations, {a} {b} {c} {f} for sources.

    The model takes an array for each source and gives the array of results, or a tuple of two;
    floating point is passed as bits. `close(result, expected)` says which results may stand where
    the instruction is approximate. `registers` overrides how an operand is kept ("a": ".b64").
    """

    text: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    model: Model
    close: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    values: Callable[[np.random.Generator], Sequence[np.ndarray]] | None = None
    registers: dict[str, str] = field(default_factory=dict)
    setup: str = ""  # instructions before it, with semicolons between: those whose carry it takes
    declared: str = ""  # registers that setup and text need beside the operands

    def __str__(self) -> str:
        opcodes = [part.split()[0] for part in (*self.setup.split(";"), self.text) if part]
        return "-".join(opcodes)


def per_lane(function: Callable[..., object]) -> Model:
    """The model that applies a function of Python integers to each lane's sources."""

    def model(*arrays: np.ndarray) -> list:
        return [function(*values) for values in zip(*(a.tolist() for a in arrays), strict=True)]

    return model


def edges(name: str) -> list[int]:
    """The bit patterns of a type that an implementation is likely to get wrong."""
    if name == "pred":
        return [0, 1]
    if name in ("f16x2", "bf16x2", "u16x2", "s16x2"):
        halves = edges(name[:-2])
        return [low | halves[-1 - k] << 16 for k, low in enumerate(halves)]
    if name in ("e4m3x2", "e5m2x2"):
        return [0x0080, 0x7F7E, 0x7CFF, 0x0188, 0x3878]
    if name in FORMATS:
        f = FORMATS[name]
        one = f.bias << f.mantissa
        least_normal = 1 << f.mantissa
        quiet = f.infinity | 1 << (f.mantissa - 1)
        positive = [
            0,
            1,
            least_normal - 1,
            least_normal,
            least_normal + 1,
            one - 1,
            one,
            one + 1,
            one + (1 << (f.mantissa - 1)),  # 1.5
            one - (1 << f.mantissa),  # 0.5
            one + (1 << f.mantissa),  # 2
            one + (f.mantissa << f.mantissa) + 1,  # where integers are two apart, nearly
            f.largest,
            f.infinity,
            f.infinity | 1,  # signalling
            quiet | 3,
        ]
        return [bits | sign for bits in positive for sign in (0, f.sign_bit)]
    bits = 8 * TYPES[name].dtype.itemsize
    top = 1 << (bits - 1)
    mask = (1 << bits) - 1
    near = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 255, 256, top >> 1, top - 1, top]
    return sorted({x & mask for x in near} | {(mask - x) & mask for x in near[:9]})


def random_bits(rng: np.random.Generator, name: str, count: int) -> np.ndarray:
    dtype = TYPES[name].dtype
    if name == "pred":
        return rng.integers(0, 2, count, dtype=np.uint32)
    raw = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    f = FORMATS.get(name)
    if f is not None:
        # A third with exponents around that of one, where rounding and cancellation happen.
        some = rng.random(count) < 1 / 3
        exponent = rng.integers(f.bias - 5, f.bias + 6, count).astype(dtype)
        fraction = raw & dtype.type((1 << f.mantissa) - 1)
        near = (raw & dtype.type(f.sign_bit)) | (exponent << dtype.type(f.mantissa)) | fraction
        return np.where(some, near, raw)
    if name[0] in "bus" and dtype.itemsize > 1 and "x" not in name:
        small = raw & dtype.type(0x7F)
        return np.where(rng.random(count) < 1 / 4, small, raw)
    return raw


def source_values(row: Row, rng: np.random.Generator) -> list[np.ndarray]:
    if row.values is not None:
        return [np.resize(np.asarray(v), COUNT) for v in row.values(rng)]
    columns = [edges(name) for name in row.sources]
    budget = COUNT // 2
    if prod(len(column) for column in columns) <= budget:
        crossed = np.array(list(product(*columns)), dtype=object)
    else:
        crossed = np.array([rng.choice(np.array(c, dtype=object), budget) for c in columns]).T
    values = []
    for k, name in enumerate(row.sources):
        dtype = TYPES[name].dtype
        unsigned = np.dtype(f"u{dtype.itemsize}")
        edge = crossed[:, k].astype(unsigned).view(dtype)
        values.append(np.concatenate([edge, random_bits(rng, name, COUNT - len(edge))]))
    return values


REGISTER_NAMES = "abcf"


def kernel_text(row: Row) -> str:
    """PTX of the kernel. Parameters: sources, mask, old values, plain results, guarded results."""
    sources = dict(zip(REGISTER_NAMES, row.sources, strict=False))
    results = dict(zip("de", row.results, strict=False))
    body: list[str] = []
    declared: list[str] = []
    n_parameters = len(sources) + 1 + 3 * len(results)

    def declare(register: str, name: str, operand: str) -> None:
        kept = row.registers.get(operand, TYPES[name].register)
        declared.append(f".reg {kept} %{register};")

    def address(parameter: int, size: int) -> None:
        body.append(f"ld.param.u64 %base, [parameter_{parameter}];")
        body.append(f"mad.wide.u32 %address, %index, {size}, %base;")

    def load(register: str, name: str, parameter: int) -> None:
        t = TYPES[name]
        address(parameter, t.dtype.itemsize)
        if name == "pred":
            body.append("ld.global.u32 %word, [%address];")
            body.append(f"setp.ne.u32 %{register}, %word, 0;")
        else:
            body.append(f"ld.global.{t.memory} %{register}, [%address];")

    def store(register: str, name: str, parameter: int) -> None:
        t = TYPES[name]
        address(parameter, t.dtype.itemsize)
        if name == "pred":
            body.append(f"selp.u32 %word, 1, 0, %{register};")
            body.append("st.global.u32 [%address], %word;")
        else:
            body.append(f"st.global.{t.memory} [%address], %{register};")

    for k, (operand, name) in enumerate(sources.items()):
        declare(operand, name, operand)
        load(operand, name, k)
    load("guard", "pred", len(sources))
    first_result = len(sources) + 1
    for k, (operand, name) in enumerate(results.items()):
        declare(f"plain_{operand}", name, operand)
        declare(f"guarded_{operand}", name, operand)
        load(f"guarded_{operand}", name, first_result + k)

    operands = {operand: f"%{operand}" for operand in sources}
    for prefix, guard in (("plain", ""), ("guarded", "@%guard ")):
        names = {operand: f"%{prefix}_{operand}" for operand in results}
        instructions = [*row.setup.split(";"), row.text] if row.setup else [row.text]
        body += [f"{guard}{i.strip().format(**operands, **names)};" for i in instructions]
    for k, (operand, name) in enumerate(results.items()):
        store(f"plain_{operand}", name, first_result + len(results) + k)
        store(f"guarded_{operand}", name, first_result + 2 * len(results) + k)

    parameters = ", ".join(f".param .u64 parameter_{k}" for k in range(n_parameters))
    lines = [
        ".version 8.3",
        ".target sm_90",
        ".address_size 64",
        f".visible .entry row({parameters})",
        "{",
        *declared,
        row.declared,
        ".reg .pred %guard; .reg .b32 %word, %index, %block, %width; .reg .b64 %base, %address;",
        "mov.u32 %index, %tid.x;",
        "mov.u32 %block, %ctaid.x;",
        "mov.u32 %width, %ntid.x;",
        "mad.lo.u32 %index, %block, %width, %index;",
        *body,
        "ret;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def run(row: Row, device: str, sources: Sequence[np.ndarray], mask: np.ndarray, old: list):
    """The kernel's results: plain ones, and guarded ones."""
    import smemkern

    results = [random_bits(np.random.default_rng(1), name, COUNT) for name in 2 * row.results]
    kernel = smemkern.Kernel(kernel_text(row), "row")
    kernel(COUNT // BLOCK, BLOCK, *sources, mask, *old, *results, device=device)
    return results[: len(old)], results[len(old) :]


def first_differences(row: Row, bad: np.ndarray, sources, got, expected) -> str:
    def shown(array: np.ndarray, k: int) -> str:
        value = int(array[k]) & ((1 << 8 * array.dtype.itemsize) - 1)
        return f"{value:#0{2 * array.dtype.itemsize + 2}x}"

    where = np.flatnonzero(bad)
    lines = [f"{row.text}: {len(where)} of {len(bad)} results are wrong"]
    for k in where[:8]:
        inputs = ", ".join(shown(s, k) for s in sources)
        lines.append(f"  ({inputs}) gave {shown(got, k)}, expected {shown(expected, k)}")
    return "\n".join(lines)


def as_lanes(values: Sequence[int] | np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A model's results as the bits a register keeps: Python integers of any size wrap."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.astype(dtype)
    mask = (1 << 8 * dtype.itemsize) - 1
    wrapped = np.array([int(v) & mask for v in values], dtype=np.dtype(f"u{dtype.itemsize}"))
    return wrapped.view(dtype)


NOT_ON_A_GPU = {
    "setp.lt.and.s32 _|{d}, {a}, {b}, {c}": "ptxas 13.0 and the driver's compiler crash on it",
    "cvt.rna.tf32.f32 {d}, {a}": "an H200 makes infinity of some NaNs; PTX leaves it open",
    "cvt.rna.satfinite.tf32.f32 {d}, {a}": "an H200 makes numbers of NaNs; PTX says NaN",
}


def check(row: Row, device: str) -> None:
    """On a GPU this checks the model. There the guard is ptxas's business, and it does not always
    keep what PTX says it keeps: the upper half of a register under a guarded `set`, for one."""
    if device == "cuda" and row.text in NOT_ON_A_GPU:
        pytest.skip(NOT_ON_A_GPU[row.text])
    rng = np.random.default_rng(zlib.crc32(row.text.encode()))
    sources = source_values(row, rng)
    mask = rng.integers(0, 2, COUNT, dtype=np.uint32)
    mask[:32] = 0  # a warp of which no lane is active
    old = [random_bits(rng, name, COUNT) for name in row.results]
    with np.errstate(all="ignore"):
        modelled = row.model(*sources)
    if len(row.results) == 1:
        modelled = (modelled,)
    expected = [as_lanes(values, o.dtype) for values, o in zip(modelled, old, strict=True)]
    plain, guarded = run(row, device, sources, mask, old)
    for got, got_guarded, want, before in zip(plain, guarded, expected, old, strict=True):
        bad = got != want
        if row.close is not None:
            bad &= ~row.close(got, want)
        assert not bad.any(), first_differences(row, bad, sources, got, want)
        if device == "cuda":
            continue
        kept = np.where(mask != 0, got, before)
        wrong = got_guarded != kept
        assert not wrong.any(), "under a guard: " + first_differences(
            row, wrong, sources, got_guarded, kept
        )
