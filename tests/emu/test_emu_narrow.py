"""cvt to and from the pairs of sm_100: e2m1x2, e2m3x2, e3m2x2 and ue8m0x2.

The models are exact arithmetic (exact_float.py). Only the emulator runs them: a GPU before sm_100
has no such instruction.
"""

from __future__ import annotations

from itertools import product

import exact_float as ef
import numpy as np
import pytest
from exact_float import BF16, F16, F32, Format, Infinity, Nan, Number

import smemkern

# No bits mean NaN or infinity: `nan` is beyond the largest number.
E2M1 = Format("e2m1", 2, 1, 0x8, has_infinity=False)
E2M3 = Format("e2m3", 2, 3, 0x20, has_infinity=False)
E3M2 = Format("e3m2", 3, 2, 0x20, has_infinity=False)
NARROW = {"e2m1": E2M1, "e2m3": E2M3, "e3m2": E3M2}
COUNT = 2048


def convert(text: str, kinds: tuple[str, ...], sources: list[np.ndarray]) -> np.ndarray:
    """Runs cvt on arrays of bits. kinds: the memory types of the result and of the sources."""
    registers = {"b8": ".b8", "b16": ".b16", "b32": ".b32"}
    names = "dab"[: len(kinds)]
    body = []
    for k, (name, kind) in enumerate(zip(names[1:], kinds[1:], strict=True), 1):
        body.append(f"ld.param.u64 %to, [p{k}]; mad.wide.u32 %to, %i, {int(kind[1:]) // 8}, %to;")
        body.append(f"ld.global.{kind} %{name}, [%to];")
    body.append(f"{text} " + ", ".join(f"%{name}" for name in names) + ";")
    body.append(f"ld.param.u64 %to, [p0]; mad.wide.u32 %to, %i, {int(kinds[0][1:]) // 8}, %to;")
    body.append(f"st.global.{kinds[0]} [%to], %d;")
    declared = " ".join(
        f".reg {registers[kind]} %{name};" for name, kind in zip(names, kinds, strict=True)
    )
    parameters = ", ".join(f".param .u64 p{k}" for k in range(len(kinds)))
    ptx = f"""
.version 8.7
.target sm_100a
.address_size 64
.visible .entry k({parameters})
{{
    {declared} .reg .b64 %to; .reg .b32 %i, %block;
    mov.u32 %i, %tid.x; mov.u32 %block, %ctaid.x; mad.lo.u32 %i, %block, 64, %i;
    {" ".join(body)}
    ret;
}}
"""
    count = len(sources[0])
    out = np.zeros(count, {"b8": "u1", "b16": "u2", "b32": "u4"}[kinds[0]])
    smemkern.Kernel(ptx, "k")(count // 64, 64, out, *sources, device="emu")
    return out


def fresh() -> tuple[int, np.random.Generator]:
    seed = np.random.SeedSequence().entropy
    return seed, np.random.default_rng(seed)


def near(rng: np.random.Generator, fmt: Format, source: Format, count: int) -> np.ndarray:
    """Bits of the source's type at and beside every number of fmt and the middles between them,
    then random bits, with NaNs and infinities."""
    half = 1 << (source.mantissa - fmt.mantissa - 1)
    middles = []
    for bits in range(fmt.largest + 1):
        at = source.encode(fmt.decode(bits))
        middles += [at + step * half + by for step in (0, 1) for by in (-1, 0, 1)]
    special = [source.infinity, source.infinity | 1, source.nan, 0, 1, source.largest]
    chosen = np.array([b for b in middles + special if b >= 0], np.int64)
    chosen = np.concatenate([chosen, chosen | source.sign_bit])
    bits = rng.integers(0, 1 << source.bits, count)
    bits[: len(chosen)] = chosen[:count]
    return rng.permutation(bits).astype({16: np.uint16, 32: np.uint32}[source.bits])


def narrowed(fmt: Format, value: ef.Value, relu: bool) -> int:
    if isinstance(value, Nan):
        return fmt.largest
    return 0 if relu and value.sign else fmt.encode(value, finite=True)


def widths(name: str) -> tuple[str, int]:
    """The memory type of a pair, and the bits between its elements."""
    return ("b8", 4) if name == "e2m1" else ("b16", 8)


@pytest.mark.parametrize(("name", "relu"), list(product(NARROW, (False, True))))
def test_from_two_f32(name: str, relu: bool) -> None:
    seed, rng = fresh()
    fmt, (kind, step) = NARROW[name], widths(name)
    a, b = (near(rng, fmt, F32, COUNT) for _ in range(2))
    text = f"cvt.rn.satfinite{'.relu' * relu}.{name}x2.f32"
    got = convert(text, (kind, "b32", "b32"), [a, b])
    want = [
        narrowed(fmt, F32.decode(x), relu) << step | narrowed(fmt, F32.decode(y), relu)
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert got.tolist() == want, f"seed {seed}"


@pytest.mark.parametrize("relu", (False, True))
def test_e2m1_from_f16x2(relu: bool) -> None:
    seed, rng = fresh()
    halves = [near(rng, E2M1, F16, COUNT) for _ in range(2)]
    packed = halves[0].astype(np.uint32) << 16 | halves[1]
    text = f"cvt.rn.satfinite{'.relu' * relu}.e2m1x2.f16x2"
    got = convert(text, ("b8", "b32"), [packed])
    high, low = (
        np.array([narrowed(E2M1, F16.decode(x), relu) for x in half.tolist()]) for half in halves
    )
    assert (got == (high << 4 | low)).all(), f"seed {seed}"


@pytest.mark.parametrize(("name", "relu"), list(product(NARROW, (False, True))))
def test_to_f16x2(name: str, relu: bool) -> None:
    """All pairs of bits; the two highest of an element of six bits are ignored."""
    fmt, (kind, step) = NARROW[name], widths(name)
    pairs = np.arange(1 << 2 * step, dtype={"b8": "u1", "b16": "u2"}[kind])
    got = convert(f"cvt.rn{'.relu' * relu}.f16x2.{name}x2", ("b32", kind), [pairs])

    def wide(bits: int) -> int:
        value = fmt.decode(bits & (1 << fmt.bits) - 1)
        return 0 if relu and value.sign else F16.encode(value)

    table = np.array([wide(bits) for bits in range(1 << step)])
    assert (got == (table[pairs >> step] << 16 | table[pairs & (1 << step) - 1])).all()


def exponent(value: ef.Value, up: bool, finite: bool) -> int:
    """ue8m0: the exponent of a power of two at |value|, at most, or at least."""
    if isinstance(value, Nan):
        return 0xFF
    top = 0xFE if finite else 0xFF
    if isinstance(value, Infinity):
        return top
    assert isinstance(value, Number)
    n = abs(value.n)
    if n == 0:
        return 0
    power = n.bit_length() - 1 + value.e + (up and n & (n - 1) != 0)
    return min(max(power + 127, 0), top)


@pytest.mark.parametrize(
    ("rounding", "finite", "source"),
    list(product(("rz", "rp"), (False, True), ("f32", "bf16x2"))),
)
def test_exponents(rounding: str, finite: bool, source: str) -> None:
    seed, rng = fresh()
    fmt = F32 if source == "f32" else BF16
    quantum = 1 << fmt.mantissa
    powers = np.arange(0, 256) * quantum
    edges = np.concatenate([powers, powers + 1, powers - 1, [quantum // 2 + k for k in (-1, 0, 1)]])
    bits = rng.integers(0, 1 << fmt.bits, (2, COUNT))
    bits[0, : len(edges)] = edges & (1 << fmt.bits) - 1
    a, b = (rng.permutation(row).astype(np.uint32) for row in bits)
    text = f"cvt.{rounding}{'.satfinite' * finite}.ue8m0x2.{source}"
    got = (
        convert(text, ("b16", "b32", "b32"), [a, b])
        if source == "f32"
        else convert(text, ("b16", "b32"), [a << 16 | b])
    )
    want = [
        exponent(fmt.decode(x), rounding == "rp", finite) << 8
        | exponent(fmt.decode(y), rounding == "rp", finite)
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert got.tolist() == want, f"seed {seed}"


def test_exponents_to_bf16x2() -> None:
    pairs = np.arange(1 << 16, dtype=np.uint16)
    got = convert("cvt.rn.bf16x2.ue8m0x2", ("b32", "b16"), [pairs])
    table = np.array([BF16.encode(Number(1, k - 127, 0)) for k in range(255)] + [BF16.nan])
    assert (got == (table[pairs >> 8] << 16 | table[pairs & 0xFF])).all()


@pytest.mark.parametrize(
    "form",
    [
        "cvt.rn.e2m1x2.f32",  # .satfinite is required
        "cvt.rz.satfinite.e2m3x2.f32",
        "cvt.rn.satfinite.ue8m0x2.f32",
        "cvt.rz.relu.ue8m0x2.f32",
        "cvt.rs.satfinite.e2m1x2.f32",
        "cvt.rn.satfinite.e2m1x2.bf16x2",
    ],
)
def test_other_forms_are_refused(form: str) -> None:
    kinds = ("b8" if "e2m1" in form else "b16", "b32", "b32")[: 2 if "bf16x2" in form else 3]
    sources = [np.zeros(64, np.uint32)] * (len(kinds) - 1)
    with pytest.raises(smemkern.UnsupportedInstructionError, match=form.replace(".", r"\.")):
        convert(form, kinds, sources)
