"""cvt of the emulator: pairs of types, roundings, modifiers, packing, wide registers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import exact_float as ef
import numpy as np
import pytest
from exact_float import BF16, E4M3, E5M2, F16, F32, F64, TF32, Infinity, Nan, Number
from float_models import rectified, saturated
from ptx_rows import (
    COUNT,
    TYPES,
    Row,
    check,
    edges,
    first_differences,
    per_lane,
    random_bits,
    run,
)

INTEGERS = [f"{kind}{n}" for kind in "us" for n in (8, 16, 32, 64)]
FLOATS = [F16, BF16, F32, F64]
INTEGRAL = {"rni": ef.NEAREST, "rzi": ef.ZERO, "rmi": ef.DOWN, "rpi": ef.UP}


def limits(t: str) -> tuple[int, int]:
    n = int(t[1:])
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if t[0] == "s" else (0, (1 << n) - 1)


def clamp(x: int, t: str) -> int:
    low, high = limits(t)
    return min(max(x, low), high)


def encode(fmt, value, rounding=ef.NEAREST, *, source=None, finite=False) -> int:
    """A result's bits. A NaN from or to f64 keeps its sign and what fits of its payload."""
    if isinstance(value, Nan) and F64 in (fmt, source):
        sign = fmt.sign_bit if value.bits & source.sign_bit else 0
        payload = (value.bits & ((1 << source.mantissa) - 1)) << 52 >> source.mantissa
        quiet = 1 << (fmt.mantissa - 1)
        return sign | fmt.infinity | quiet | payload >> (52 - fmt.mantissa)
    bits = fmt.encode(value, rounding, finite)
    return bits << 13 if fmt is TF32 else bits


def between_integers() -> list[Row]:
    rows = []
    for to, frm in product(INTEGERS, INTEGERS):
        rows.append(Row(f"cvt.{to}.{frm} {{d}}, {{a}}", (to,), (frm,), per_lane(lambda x: x)))
        (low, high), (least, most) = limits(to), limits(frm)
        if least < low or most > high:
            rows.append(
                Row(
                    f"cvt.sat.{to}.{frm} {{d}}, {{a}}",
                    (to,),
                    (frm,),
                    per_lane(lambda x, to=to: clamp(x, to)),
                )
            )
    return rows


def from_integers() -> list[Row]:
    rows = []
    for fmt, frm, rounding in product(FLOATS, INTEGERS, ef.ROUNDINGS):
        rows.append(
            Row(
                f"cvt.{rounding}.{fmt.name}.{frm} {{d}}, {{a}}",
                (fmt.name,),
                (frm,),
                per_lane(lambda x, fmt=fmt, r=rounding: fmt.encode(ef.number(x, 0), r)),
                registers={"a": ".b8"} if fmt is BF16 and frm in ("u8", "s8") else {},
            )
        )
    for fmt in (F16, F32, F64):
        rows.append(
            Row(
                f"cvt.rn.sat.{fmt.name}.s32 {{d}}, {{a}}",
                (fmt.name,),
                ("s32",),
                per_lane(lambda x, fmt=fmt: saturated(fmt, fmt.encode(ef.number(x, 0)))),
            )
        )
    return rows


def near_limits(fmt, t: str):
    """Floats around an integer type's limits and around halves."""

    def values(rng: np.random.Generator) -> list[np.ndarray]:
        dtype = TYPES[fmt.name].dtype
        low, high = limits(t)
        exact = [
            Number(2 * x + d, -1, int(2 * x + d < 0))
            for x in (low, high, high + 1)
            for d in range(-3, 4)
        ]
        exact += [Number(x, -1, int(x < 0)) for x in range(-15, 16)]
        near = [fmt.encode(x, r) for x in exact for r in (ef.DOWN, ef.UP)] + edges(fmt.name)
        scaled = rng.uniform(-1.2, 1.2, COUNT // 2) * 2.0 ** rng.integers(
            0, int(t[1:]) + 1, COUNT // 2
        )
        bits = [fmt.encode(F64.decode(int(x))) for x in scaled.view(np.uint64)]
        rest = COUNT - len(near) - len(bits)
        return [
            np.concatenate([np.array(near + bits, dtype=dtype), random_bits(rng, fmt.name, rest)])
        ]

    return values


def to_integers() -> list[Row]:
    def converted(fmt, t: str, rounding: str, ftz: bool):
        def one(bits: int) -> int:
            value = fmt.decode(fmt.flush(bits) if ftz else bits)
            n = int(t[1:])
            if isinstance(value, Nan):
                return 1 << (n - 1) if fmt is F64 or n == 64 else 0
            if isinstance(value, Infinity):
                return limits(t)[0 if value.sign else 1]
            whole = ef.to_integral(value, rounding)
            return clamp(whole.n << whole.e, t)

        return per_lane(one)

    rows = []
    for fmt, t, (spelt, rounding) in product(FLOATS, INTEGERS, INTEGRAL.items()):
        for ftz in (False, True) if fmt is F32 else (False,):
            rows.append(
                Row(
                    f"cvt.{spelt}{'.ftz' if ftz else ''}.{t}.{fmt.name} {{d}}, {{a}}",
                    (t,),
                    (fmt.name,),
                    converted(fmt, t, rounding, ftz),
                    values=near_limits(fmt, t),
                    registers={"d": ".b8"} if fmt is BF16 and t in ("u8", "s8") else {},
                )
            )
    return rows


def around(fmt, source):
    """Values of a source format at, and next to, half-way points and limits of a narrower one."""

    def values(rng: np.random.Generator) -> list[np.ndarray]:
        dtype = TYPES[source.name].dtype
        exact = []
        for bits in [*edges(fmt.name), *rng.integers(0, fmt.sign_bit, 200).tolist()]:
            value = fmt.decode(int(bits))
            if isinstance(value, Number):
                exact += [
                    Number(4 * value.n + k, value.e - 2, int(4 * value.n + k < 0) or value.sign)
                    for k in (-2, 0, 1, 2, 3)
                ]
        near = [source.encode(x, r) for x in exact for r in (ef.DOWN, ef.UP)]
        near += [bits ^ 1 for bits in near[::7]]
        nans = source.infinity | rng.integers(1, 1 << source.mantissa, 16, dtype=np.uint64).astype(
            dtype
        )
        nans[::2] |= dtype.type(source.sign_bit)
        near = np.array([*edges(source.name), *nans.tolist(), *near], dtype=dtype)[:COUNT]
        return [np.concatenate([near, random_bits(rng, source.name, COUNT - len(near))])]

    return values


def between_floats() -> list[Row]:
    rows = []

    def add(text, to, frm, rounding=ef.NEAREST, integral=None, ftz=False, sat=False, **kw):
        relu, finite = kw.get("relu", False), kw.get("finite", False)

        def one(bits: int) -> int:
            # Seen on an H200: f16 results of .ftz come of sources that are not flushed.
            flushes = ftz and frm is F32 and to is not F16
            value = frm.decode(frm.flush(bits) if flushes else bits)
            if to is frm and not text and not (ftz or sat) and to in (F32, F64):
                return bits
            if isinstance(value, Nan) and frm is BF16 and to is F32 and not ftz:
                return bits << 16
            if isinstance(value, Nan) and frm is F32 and ftz:
                value = Nan(F32.nan)
            if integral:
                value = ef.to_integral(value, integral)
            result = encode(to, value, rounding, source=frm, finite=finite)
            if ftz and to is F32 and to.is_tiny(value, rounding):
                result = to.sign_bit if value.sign else 0
            if sat:
                result = saturated(to, result)
            if relu:
                result = rectified(to, result >> 13) << 13 if to is TF32 else rectified(to, result)
            return result

        flags = ".ftz" * ftz + ".relu" * relu + ".satfinite" * finite + ".sat" * sat
        dot = f".{text}" if text else ""
        rows.append(
            Row(
                f"cvt{dot}{flags}.{to.name}.{frm.name} {{d}}, {{a}}",
                (to.name,),
                (frm.name,),
                per_lane(one),
                values=around(to, frm),
            )
        )

    for frm in FLOATS:
        for spelt, rounding in INTEGRAL.items():
            add(spelt, frm, frm, integral=rounding)
        for to in FLOATS:
            narrows = to is not frm and (to in (F16, BF16) or (to is F32 and frm is F64))
            for rounding in ef.ROUNDINGS if narrows else (ef.NEAREST,):
                text = rounding if narrows else ""
                add(text, to, frm, rounding)
                if F32 in (to, frm):
                    add(text, to, frm, rounding, ftz=True)
                if to is not BF16 and frm is not BF16:
                    add(text, to, frm, rounding, sat=True)
    add("", F16, BF16)  # ptxas takes .rn for none
    add("", BF16, F16)
    add("rni", F32, F32, integral=ef.NEAREST, ftz=True, sat=True)
    for to, rounding in product((F16, BF16, TF32), (ef.NEAREST, ef.ZERO)):
        add(rounding, to, F32, rounding, relu=True)
        if to is TF32:
            add(rounding, to, F32, rounding)
        else:
            add(rounding, to, F32, rounding, finite=True)
            add(rounding, to, F32, rounding, relu=True, finite=True)
    add("rna", TF32, F32, ef.AWAY)
    add("rna", TF32, F32, ef.AWAY, finite=True)
    return rows


def packing() -> list[Row]:
    rows = []

    def pair(fmt, frm):
        return lambda rng: [around(fmt, frm)(rng)[0], rng.permutation(around(fmt, frm)(rng)[0])]

    for fmt, rounding in product((F16, BF16), (ef.NEAREST, ef.ZERO)):
        for relu, finite in product((False, True), repeat=2):

            def model(a, b, fmt=fmt, r=rounding, relu=relu, finite=finite):
                high, low = (fmt.encode(F32.decode(x), r, finite) for x in (a, b))
                if relu:
                    high, low = rectified(fmt, high), rectified(fmt, low)
                return high << 16 | low

            flags = ".relu" * relu + ".satfinite" * finite
            rows.append(
                Row(
                    f"cvt.{rounding}{flags}.{fmt.name}x2.f32 {{d}}, {{a}}, {{b}}",
                    ("b32",),
                    ("f32", "f32"),
                    per_lane(model),
                    values=pair(fmt, F32),
                )
            )
    for fmt, relu in product((E4M3, E5M2), (False, True)):
        name, dot = f"{fmt.name}x2", ".relu" * relu

        def narrow(value, fmt=fmt, relu=relu):
            bits = fmt.encode(value, ef.NEAREST, finite=True)
            return rectified(fmt, bits) if relu else bits

        def widen(bits, fmt=fmt, relu=relu):
            result = F16.encode(fmt.decode(bits))
            return rectified(F16, result) if relu else result

        def halves(rng, fmt=fmt):
            low, high = pair(fmt, F16)(rng)
            return [low.astype(np.uint32) | high.astype(np.uint32) << 16]

        rows += [
            Row(
                f"cvt.rn.satfinite{dot}.{name}.f32 {{d}}, {{a}}, {{b}}",
                ("b16",),
                ("f32", "f32"),
                per_lane(lambda a, b, n=narrow: n(F32.decode(a)) << 8 | n(F32.decode(b))),
                values=pair(fmt, F32),
            ),
            Row(
                f"cvt.rn.satfinite{dot}.{name}.f16x2 {{d}}, {{a}}",
                ("b16",),
                ("b32",),
                per_lane(
                    lambda a, n=narrow: n(F16.decode(a >> 16)) << 8 | n(F16.decode(a & 0xFFFF))
                ),
                values=halves,
            ),
            Row(
                f"cvt.rn{dot}.f16x2.{name} {{d}}, {{a}}",
                ("b32",),
                ("b16",),
                per_lane(lambda a, w=widen: w(a >> 8) << 16 | w(a & 0xFF)),
                values=lambda rng: [
                    np.arange(1 << 16, dtype=np.uint16)[rng.permutation(1 << 16)[:COUNT]]
                ],
            ),
        ]
    for t in ("u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"):
        n = int(t[1:])

        def packed(a, b, c=0, t=t, n=n):
            mask = (1 << n) - 1
            low = (clamp(a, t) & mask) << n | clamp(b, t) & mask
            return low | c << 2 * n

        with_c = n < 16
        rows.append(
            Row(
                f"cvt.pack.sat.{t}.s32{'.b32' if with_c else ''} {{d}}, {{a}}, {{b}}"
                + (", {c}" if with_c else ""),
                ("b32",),
                ("s32", "s32", "b32") if with_c else ("s32", "s32"),
                per_lane(packed),
            )
        )
    return rows


def wide_registers() -> list[Row]:
    """A register may be wider than the type: low bits are read, results extended to all of it."""

    def signed(x: int, n: int) -> int:
        x &= (1 << n) - 1
        return x - (1 << n) if x >> (n - 1) else x

    rows = []
    for stored, n in product((16, 32, 64), (8, 16, 32)):
        if n >= stored and n != 8:
            continue
        b = f"b{stored}"
        rows += [
            Row(
                f"cvt.u32.u{n} {{d}}, {{a}}",
                ("u32",),
                (b,),
                per_lane(lambda x, n=n: x & ((1 << n) - 1)),
            ),
            Row(
                f"cvt.s64.s{n} {{d}}, {{a}}", ("s64",), (b,), per_lane(lambda x, n=n: signed(x, n))
            ),
            Row(
                f"cvt.u{n}.u32 {{d}}, {{a}}",
                (b,),
                ("u32",),
                per_lane(lambda x, n=n: x & ((1 << n) - 1)),
            ),
            Row(
                f"cvt.s{n}.s64 {{d}}, {{a}}", (b,), ("s64",), per_lane(lambda x, n=n: signed(x, n))
            ),
            Row(
                f"cvt.rn.f32.s{n} {{d}}, {{a}}",
                ("f32",),
                (b,),
                per_lane(lambda x, n=n: F32.encode(ef.number(signed(x, n), 0))),
            ),
            Row(
                f"cvt.rzi.s{n}.f32 {{d}}, {{a}}",
                (b,),
                ("f32",),
                per_lane(
                    lambda x, n=n: clamp(int(np.trunc(np.uint32(x).view(np.float32))), f"s{n}")
                ),
                values=lambda rng: [
                    rng.uniform(-300, 300, COUNT).astype(np.float32).view(np.uint32)
                ],
            ),
        ]
    rows += [
        Row(
            "cvt.f32.f16 {d}, {a}",
            ("f32",),
            ("b32",),
            per_lane(lambda x: F32.encode(F16.decode(x & 0xFFFF))),
        ),
        Row(
            "cvt.rn.f16.f32 {d}, {a}",
            ("b32",),
            ("f32",),
            per_lane(lambda x: F16.encode(F32.decode(x))),
        ),
    ]
    return rows


ROWS = (
    between_integers()
    + from_integers()
    + to_integers()
    + between_floats()
    + packing()
    + wide_registers()
)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_instruction(row: Row, device: str) -> None:
    check(row, device)


LEAST = Fraction(1, 2**126)  # the least normal number of f32
BELOW = Fraction(1, 2**24)  # and, as a share of it, the step of 24-bit numbers just below


def rounded_below(share: Fraction, rounding: str) -> Fraction:
    """A share of LEAST between 1/2 and 1, rounded to 24 bits."""
    steps = share / BELOW
    away = {
        "rn": Fraction(round(steps)),  # ties to even
        "rz": Fraction(int(steps)),
        "rm": Fraction(steps.__floor__()),
        "rp": Fraction(steps.__ceil__()),
    }[rounding]
    return away * BELOW


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_ftz_flushes_what_is_tiny_after_rounding(rounding: str, device: str) -> None:
    """Near the least normal number: .ftz makes a zero of what 24 bits, with an exponent that goes
    on below, keep less than it."""
    parts = [Fraction(k, 2**28) for k in range(-40, 41)]  # sixteenths of a step
    parts += [sign * Fraction(1, 2**52) + k * BELOW / 2 for k in range(-4, 3) for sign in (-1, 1)]
    shares = [sign * (1 + part) for part in parts for sign in (1, -1)]
    sources = np.array([float(share * LEAST) for share in shares])
    expected = []
    for share, x in zip(shares, sources, strict=True):
        assert Fraction(x) == share * LEAST
        tiny = abs(share) < 1 and abs(rounded_below(share, rounding)) < 1
        plain = F32.encode(ef.number(*share_as_pair(share)), rounding)
        expected.append(0x80000000 * (share < 0) if tiny else plain)
    row = Row(f"cvt.{rounding}.ftz.f32.f64 {{d}}, {{a}}", ("f32",), ("f64",), per_lane(int))
    repeated = np.resize(sources.view("u8"), COUNT)
    want = np.resize(np.array(expected, "u4"), COUNT)
    [got], _ = run(row, device, [repeated], np.ones(COUNT, "u4"), [np.zeros(COUNT, "u4")])
    assert (got == want).all(), first_differences(row, got != want, [repeated], got, want)
    assert 0 in expected and 0x80000000 in expected and 0x00800000 in expected


def share_as_pair(share: Fraction) -> tuple[int, int]:
    """n and e with n * 2**e == share * LEAST."""
    return share.numerator, -126 - (share.denominator.bit_length() - 1)
