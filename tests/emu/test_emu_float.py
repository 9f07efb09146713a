"""f32 and f64 arithmetic of the emulator against exact arithmetic, in all its forms."""

from __future__ import annotations

from itertools import product

import exact_float as ef
import pytest
from exact_float import F32, F64, Format, Nan
from float_models import (
    QUIET_F64,
    arithmetic,
    fma_operands,
    halved,
    minmax,
    near_least_normal,
)
from ptx_rows import Row, check, per_lane, source_values

ONE = ef.number(1, 0)


def add(rounding):
    return lambda a, b: ef.add(a, b, rounding)


def subtract(rounding):
    return lambda a, b: ef.add(a, ef.negate(b), rounding)


def multiply_add(rounding):
    return lambda a, b, c: ef.multiply_add(a, b, c, rounding)


# Name, number of sources, the operation for a rounding, whether the rounding may be left out,
# whether it saturates, and the order in which f64 looks for a NaN to pass on (as an H200 does).
OPERATIONS = [
    ("add", 2, add, True, True, "ba"),
    ("sub", 2, subtract, True, True, "ba"),
    ("mul", 2, lambda rounding: ef.multiply, True, True, "ba"),
    ("fma", 3, multiply_add, False, True, "bca"),
    ("mad", 3, multiply_add, False, True, "bca"),
    ("div", 2, lambda rounding: ef.divide, False, False, "ab"),
    ("rcp", 1, lambda rounding: lambda a: ef.divide(ONE, a), False, False, "a"),
    ("sqrt", 1, lambda rounding: ef.square_root, False, False, "a"),
]


def pairs_of(fmt: Format):
    return lambda rng: source_values(Row("", (fmt.name,), (fmt.name,) * 2, None), rng)


def arithmetic_rows() -> list[Row]:
    rows = []
    for name, n, operation, may_omit, saturates, nan_order in OPERATIONS:
        operands = ", ".join(["{d}", "{a}", "{b}", "{c}"][: n + 1])
        for fmt in (F32, F64):
            f32 = fmt is F32
            flags = product((False, True) if f32 else (False,), repeat=2)
            for (ftz, sat), rounding in product(flags, (None, *ef.ROUNDINGS)):
                if (sat and not saturates) or (rounding is None and not may_omit):
                    continue
                parts = [name, rounding, "ftz" if ftz else "", "sat" if sat else "", fmt.name]
                mode = rounding or ef.NEAREST
                values = fma_operands(fmt) if n == 3 else None
                if ftz and name in ("mul", "fma", "mad", "div"):
                    tiny = near_least_normal(fmt, n, name == "div")
                    values = halved(values, tiny) if values else halved(pairs_of(fmt), tiny)
                rows.append(
                    Row(
                        ".".join(part for part in parts if part) + f" {operands}",
                        (fmt.name,),
                        (fmt.name,) * n,
                        arithmetic(fmt, operation(mode), mode, ftz, sat, nan_order=nan_order),
                        values=values,
                    )
                )
    rows.append(
        Row(
            "fma.rn.f32 {d}, {a}, 0f3FC00000, {b}",
            ("f32",),
            ("f32", "f32"),
            arithmetic(F32, lambda a, b: ef.multiply_add(a, ef.number(3, -1), b)),
        )
    )
    rows.append(
        Row(
            "add.f64 {d}, {a}, 0d3FB999999999999A",
            ("f64",),
            ("f64",),
            arithmetic(F64, lambda a: ef.add(a, F64.decode(0x3FB999999999999A))),
        )
    )
    return rows


def sign_rows() -> list[Row]:
    rows = []
    for fmt in (F32, F64):
        t, sign = fmt.name, fmt.sign_bit
        for ftz, op in product((False, True) if fmt is F32 else (False,), ("abs", "neg")):

            def one(bits, fmt=fmt, ftz=ftz, op=op):
                if isinstance(fmt.decode(bits), Nan):
                    return bits | QUIET_F64 if fmt is F64 else fmt.nan
                bits = fmt.flush(bits) if ftz else bits
                return bits & ~fmt.sign_bit if op == "abs" else bits ^ fmt.sign_bit

            rows.append(
                Row(
                    f"{op}{'.ftz' if ftz else ''}.{t} {{d}}, {{a}}",
                    (t,),
                    (t,),
                    per_lane(one),
                )
            )
        rows.append(
            Row(
                f"copysign.{t} {{d}}, {{a}}, {{b}}",
                (t,),
                (t, t),
                lambda a, b, s=sign: (a & a.dtype.type(s)) | (b & a.dtype.type(s - 1)),
            )
        )
    return rows


def minmax_rows() -> list[Row]:
    rows = []
    for name in ("min", "max"):
        for ftz, nan, xorsign in product((False, True), repeat=3):
            parts = [name, *(("ftz",) * ftz), *(("NaN",) * nan), *(("xorsign.abs",) * xorsign)]
            rows.append(
                Row(
                    ".".join([*parts, "f32"]) + " {d}, {a}, {b}",
                    ("f32",),
                    ("f32", "f32"),
                    minmax(F32, name == "max", ftz, nan, xorsign),
                )
            )
        rows.append(
            Row(
                f"{name}.f64 {{d}}, {{a}}, {{b}}",
                ("f64",),
                ("f64", "f64"),
                minmax(F64, name == "max"),
            )
        )
    return rows


def classification_rows() -> list[Row]:
    def classified(fmt: Format, bits: int) -> set[str]:
        value = fmt.decode(bits)
        if isinstance(value, Nan):
            return {"notanumber"}
        if isinstance(value, ef.Infinity):
            return {"infinite", "number"}
        return {"finite", "number", "subnormal" if fmt.is_subnormal(bits) else "normal"}

    return [
        Row(
            f"testp.{name}.{fmt.name} {{d}}, {{a}}",
            ("pred",),
            (fmt.name,),
            per_lane(lambda a, fmt=fmt, name=name: name in classified(fmt, a)),
        )
        for fmt in (F32, F64)
        for name in ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    ]


ROWS = arithmetic_rows() + sign_rows() + minmax_rows() + classification_rows()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_instruction(row: Row, device: str) -> None:
    check(row, device)
