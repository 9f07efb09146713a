"""Approximate functions of the emulator: special values exactly, the rest within PTX's bounds."""

from __future__ import annotations

import numpy as np
import pytest
from exact_float import F32
from float_models import within
from ptx_rows import COUNT, Row, check, random_bits


def flushed(bits: np.ndarray) -> np.ndarray:
    return np.where(bits & 0x7F800000, bits, bits & 0x80000000).astype(np.uint32)


def model(function, ftz: bool):
    """A function of doubles, as one of f32 bits."""

    def of_bits(*sources: np.ndarray) -> np.ndarray:
        sources = [flushed(s) if ftz else s for s in sources]
        result = function(*(s.view(np.float32).astype(np.float64) for s in sources))
        bits = result.astype(np.float32).view(np.uint32)
        bits = np.where(np.isnan(result), np.uint32(F32.nan), bits)
        return flushed(bits) if ftz else bits

    return of_bits


def fast_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a * (1/b), the reciprocal of a huge b being 0."""
    huge = (np.abs(b) > 2.0**126) & np.isfinite(b)
    return np.where(huge, a * np.copysign(0.0, b), a / b)


def absolute(bound: float):
    def close(got: np.ndarray, want: np.ndarray) -> np.ndarray:
        g, w = (x.view(np.float32).astype(np.float64) for x in (got, want))
        with np.errstate(invalid="ignore"):
            return np.abs(g - w) <= bound

    return close


def relative(bound: float):
    def close(got: np.ndarray, want: np.ndarray) -> np.ndarray:
        g, w = (x.view(np.float32).astype(np.float64) for x in (got, want))
        with np.errstate(invalid="ignore"):
            return np.abs(g - w) <= bound * np.abs(w)

    return close


def either(*closes):
    return lambda got, want: np.logical_or.reduce([close(got, want) for close in closes])


def angles(rng: np.random.Generator) -> list[np.ndarray]:
    """Where the bound is stated, -2 pi ... 2 pi, and the special values."""
    some = rng.uniform(-2 * np.pi, 2 * np.pi, COUNT).astype(np.float32)
    some[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, np.pi]
    return [some.view(np.uint32)]


def small_exponents(rng: np.random.Generator) -> list[np.ndarray]:
    """ex2: results of all sizes, subnormal ones too."""
    some = rng.uniform(-152, 130, COUNT).astype(np.float32)
    some[: COUNT // 4] = random_bits(rng, "f32", COUNT // 4).view(np.float32)
    return [some.view(np.uint32)]


# name, number of sources, function, what is close, sources (None: any), whether it has .ftz
FUNCTIONS = [
    ("rcp.approx", 1, lambda a: 1 / a, within(F32, 1), None, True),
    ("sqrt.approx", 1, np.sqrt, within(F32, 1), None, True),
    ("rsqrt.approx", 1, lambda a: 1 / np.sqrt(a), within(F32, 2), None, True),
    ("sin.approx", 1, np.sin, absolute(2**-20.4), angles, True),
    ("cos.approx", 1, np.cos, absolute(2**-20.4), angles, True),
    (
        "lg2.approx",
        1,
        np.log2,
        either(absolute(2**-22), relative(2**-22)),
        None,
        True,
    ),
    ("ex2.approx", 1, np.exp2, within(F32, 2), small_exponents, True),
    ("tanh.approx", 1, np.tanh, relative(2**-10.9), None, False),
    ("div.approx", 2, fast_quotient, within(F32, 2), None, True),
    ("div.full", 2, lambda a, b: a / b, within(F32, 2), None, True),
]


def single() -> list[Row]:
    rows = []
    for name, n, function, close, values, has_ftz in FUNCTIONS:
        for ftz in (False, True) if has_ftz else (False,):
            operands = ", ".join(["{d}", "{a}", "{b}"][: n + 1])
            rows.append(
                Row(
                    f"{name}{'.ftz' if ftz else ''}.f32 {operands}",
                    ("f32",),
                    ("f32",) * n,
                    model(function, ftz),
                    close,
                    values,
                )
            )
    return rows


def double() -> list[Row]:
    def upper(bits: np.ndarray) -> np.ndarray:
        subnormal = (bits & np.uint64(0x7FF << 52)) == 0
        return bits & np.where(subnormal, np.uint64(1 << 63), np.uint64(0xFFFFFFFF00000000))

    def of_upper_words(function):
        def of_bits(bits: np.ndarray) -> np.ndarray:
            result = function(upper(bits).view(np.float64))
            return np.where(
                np.isnan(result), np.uint64(0x7FFFFFFF00000000), upper(result.view(np.uint64))
            )

        return of_bits

    def close(bound: float):
        def within_bound(got: np.ndarray, want: np.ndarray) -> np.ndarray:
            g, w = got.view(np.float64), want.view(np.float64)
            with np.errstate(all="ignore"):
                return np.abs(g / w - 1) <= bound

        return within_bound

    def inverse_root(bits: np.ndarray) -> np.ndarray:
        x = bits.view(np.float64)
        result = (1 / np.sqrt(x)).view(np.uint64)
        own = np.where(np.isnan(x), bits | np.uint64(1 << 51), np.uint64(0xFFF8 << 48))
        return np.where(np.isnan(x) | (x < 0), own, result)

    return [
        Row(
            "rcp.approx.ftz.f64 {d}, {a}",
            ("f64",),
            ("f64",),
            of_upper_words(lambda x: 1 / x),
            close(2**-19),
        ),
        Row(
            "rsqrt.approx.ftz.f64 {d}, {a}",
            ("f64",),
            ("f64",),
            of_upper_words(lambda x: 1 / np.sqrt(x)),
            close(2**-19),
        ),
        Row("rsqrt.approx.f64 {d}, {a}", ("f64",), ("f64",), inverse_root, close(2**-22)),
    ]


ROWS = single() + double()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_instruction(row: Row, device: str) -> None:
    check(row, device)
