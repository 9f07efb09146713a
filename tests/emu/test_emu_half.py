"""f16 and bf16 arithmetic of the emulator, single and packed, against exact arithmetic."""

from __future__ import annotations

from itertools import product

import exact_float as ef
import numpy as np
import pytest
from exact_float import BF16, F16, Nan
from float_models import (
    arithmetic,
    fma_operands,
    halved,
    minmax,
    near_least_normal,
    per_half,
    per_half_close,
    within,
)
from ptx_rows import COUNT, Row, check, per_lane, random_bits

OPERATIONS = [
    ("add", 2, ef.add),
    ("sub", 2, lambda a, b: ef.add(a, ef.negate(b))),
    ("mul", 2, ef.multiply),
    ("fma", 3, ef.multiply_add),
]


def packed_values(values):
    """Of a function that gives values of halves, one that gives packed ones."""

    def both(rng: np.random.Generator) -> list[np.ndarray]:
        return [
            low.astype(np.uint32) | high.astype(np.uint32) << 16
            for low, high in zip(values(rng), values(rng), strict=True)
        ]

    return both


def random_operands(name: str, n: int):
    return lambda rng: [random_bits(rng, name, COUNT) for _ in range(n)]


def rows_of(text: str, fmt, n: int, model, values=None, close=None) -> list[Row]:
    """The row of a format and that of packed pairs of it."""
    operands = ", ".join(["{d}", "{a}", "{b}", "{c}"][: n + 1])
    t, t2 = fmt.name, fmt.name + "x2"
    pairs = packed_values(values or random_operands(t, n))
    return [
        Row(f"{text}.{t} {operands}", (t,), (t,) * n, model, close, values),
        Row(
            f"{text}.{t2} {operands}",
            (t2,),
            (t2,) * n,
            per_half(model),
            close and per_half_close(close),
            pairs,
        ),
    ]


def name_of(*parts: str | bool) -> str:
    return ".".join(part for part in parts if part)


def arithmetic_rows() -> list[Row]:
    rows = []
    for fmt, (name, n, operation) in product((F16, BF16), OPERATIONS):
        flags = (False, True) if fmt is F16 else (False,)
        usual = fma_operands(fmt) if n == 3 else random_operands(fmt.name, n)
        for ftz, sat in product(flags, repeat=2):
            tiny = ftz and name in ("mul", "fma")
            values = halved(usual, near_least_normal(fmt, n)) if tiny else usual
            text = name_of(name, "rn", ftz and "ftz", sat and "sat")
            model = arithmetic(fmt, operation, ef.NEAREST, ftz, sat)
            rows += rows_of(text, fmt, n, model, values)
            if n == 3 and not sat:
                model = arithmetic(fmt, operation, ef.NEAREST, ftz, relu=True)
                rows += rows_of(name_of(text, "relu"), fmt, n, model, values)
        if n == 2:
            rows += rows_of(name, fmt, n, arithmetic(fmt, operation))
    return rows


def minmax_rows() -> list[Row]:
    rows = []
    for fmt, name in product((F16, BF16), ("min", "max")):
        flags = (False, True) if fmt is F16 else (False,)
        for ftz, nan, xorsign in product(flags, (False, True), (False, True)):
            text = name_of(name, ftz and "ftz", nan and "NaN", xorsign and "xorsign.abs")
            rows += rows_of(text, fmt, 2, minmax(fmt, name == "max", ftz, nan, xorsign))
    return rows


def sign_rows() -> list[Row]:
    rows = []
    for fmt, op in product((F16, BF16), ("abs", "neg")):
        for ftz in (False, True) if fmt is F16 else (False,):

            def one(bits, fmt=fmt, op=op, ftz=ftz):
                if isinstance(fmt.decode(bits), Nan):
                    return fmt.nan
                bits = fmt.flush(bits) if ftz else bits
                return bits & ~fmt.sign_bit if op == "abs" else bits ^ fmt.sign_bit

            rows += rows_of(name_of(op, ftz and "ftz"), fmt, 1, per_lane(one))
    return rows


def approximate_rows() -> list[Row]:
    def model(function, fmt, ftz):
        def one(bits: int) -> int:
            value = fmt.decode(fmt.flush(bits) if ftz else bits)
            if isinstance(value, Nan):
                return fmt.nan
            if isinstance(value, ef.Infinity):
                x = -np.inf if value.sign else np.inf
            else:
                x = -0.0 if value.sign and value.n == 0 else value.n * 2.0**value.e
            result = np.float64(function(np.float64(x)))
            rounded = fmt.encode(ef.F64.decode(int(result.view(np.uint64))))
            return fmt.flush(rounded) if ftz else rounded

        return per_lane(one)

    rows = []
    for fmt in (F16, BF16):
        ftz = fmt is BF16
        for text, function in (("ex2.approx" + ".ftz" * ftz, np.exp2), ("tanh.approx", np.tanh)):
            flushes = ftz and function is np.exp2
            rows += rows_of(text, fmt, 1, model(function, fmt, flushes), close=within(fmt, 2))
    return rows


ROWS = arithmetic_rows() + minmax_rows() + sign_rows() + approximate_rows()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_instruction(row: Row, device: str) -> None:
    check(row, device)
