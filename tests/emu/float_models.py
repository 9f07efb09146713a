"""What PTX says of results beyond their rounding: NaNs, flushing, saturation, min and max.

Functions here take and give bits.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import exact_float as ef
import numpy as np
from exact_float import Format, Nan, Number, Value
from ptx_rows import COUNT, TYPES, edges, per_lane, random_bits

DEFAULT_NAN_F64 = 0xFFF8000000000000
QUIET_F64 = 0x0008000000000000


def nan_f64(sources: tuple[int, ...], order: str) -> int:
    """f64 arithmetic passes on the first NaN in this order, made quiet, or makes one."""
    for k in ("abc".index(name) for name in order):
        if isinstance(ef.F64.decode(sources[k]), Nan):
            return sources[k] | QUIET_F64
    return DEFAULT_NAN_F64


def saturated(fmt: Format, bits: int) -> int:
    value = fmt.decode(bits)
    if isinstance(value, Nan) or value.sign or (isinstance(value, Number) and value.n == 0):
        return 0
    return min(bits, ef.one(fmt))


def rectified(fmt: Format, bits: int) -> int:
    value = fmt.decode(bits)
    if isinstance(value, Nan):
        return fmt.nan
    return 0 if value.sign else bits


def arithmetic(
    fmt: Format,
    operation: Callable[..., Value],
    rounding: str = ef.NEAREST,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    nan_order: str = "a",
) -> Callable[..., list[int]]:
    """The model of a row; the operation takes values."""

    def one(*sources: int) -> int:
        if ftz:
            sources = tuple(fmt.flush(bits) for bits in sources)
        value = operation(*(fmt.decode(bits) for bits in sources))
        if isinstance(value, Nan) and fmt is ef.F64:
            return nan_f64(sources, nan_order)
        bits = fmt.encode(value, rounding)
        if ftz and fmt.is_tiny(value, rounding):
            bits = fmt.sign_bit if value.sign else 0
        if sat:
            bits = saturated(fmt, bits)
        return rectified(fmt, bits) if relu else bits

    return per_lane(one)


def per_half(model: Callable[..., list[int]]) -> Callable[..., list[int]]:
    """A model of 16-bit operands, of packed pairs of them."""

    def packed(*arrays: np.ndarray) -> list[int]:
        low = model(*(a & 0xFFFF for a in arrays))
        high = model(*(a >> 16 for a in arrays))
        return [x | y << 16 for x, y in zip(low, high, strict=True)]

    return packed


def minmax(
    fmt: Format,
    larger: bool,
    ftz: bool = False,
    nan: bool = False,
    xorsign: bool = False,
) -> Callable[..., list[int]]:
    def one(a: int, b: int) -> int:
        if ftz:
            a, b = fmt.flush(a), fmt.flush(b)
        x, y = fmt.decode(a), fmt.decode(b)
        if isinstance(x, Nan) and isinstance(y, Nan) or (nan and Nan in (type(x), type(y))):
            return nan_f64((a, b), "b") if fmt is ef.F64 else fmt.nan
        sign = (a ^ b) & fmt.sign_bit
        if xorsign:
            a, b = a & ~fmt.sign_bit, b & ~fmt.sign_bit
            x, y = fmt.decode(a), fmt.decode(b)
        if isinstance(x, Nan):
            chosen = b
        elif isinstance(y, Nan):
            chosen = a
        else:
            order = ef.compare(x, y) or (y.sign - x.sign)  # -0 below +0
            chosen = (a if order > 0 else b) if larger else (a if order < 0 else b)
        return chosen | sign if xorsign else chosen

    return per_lane(one)


def ordered(fmt: Format, bits: np.ndarray) -> np.ndarray:
    """Integers in the order of the values: neighbours differ by one, both zeros are 0."""
    magnitude = (bits & bits.dtype.type(fmt.sign_bit - 1)).astype(np.int64)
    return np.where(bits & bits.dtype.type(fmt.sign_bit), -magnitude, magnitude)


def within(fmt: Format, ulps: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Numbers at most so many steps apart. NaNs and infinities must be equal."""

    def close(got: np.ndarray, want: np.ndarray) -> np.ndarray:
        magnitude = got.dtype.type(fmt.sign_bit - 1)
        finite = ((got & magnitude) < fmt.infinity) & ((want & magnitude) < fmt.infinity)
        return finite & (np.abs(ordered(fmt, got) - ordered(fmt, want)) <= ulps)

    return close


def near_least_normal(fmt: Format, n: int, quotient: bool = False):
    """Sources whose product, or quotient, lies close to the least normal number."""

    def values(rng: np.random.Generator) -> list[np.ndarray]:
        dtype = TYPES[fmt.name].dtype
        a = rng.integers(0, 1 << fmt.mantissa, COUNT) | (fmt.bias - 1) << fmt.mantissa
        target = Number(1, 1 - fmt.bias, 0)
        b = []
        for k, bits in enumerate(a.tolist()):
            # (1 + x) * (1 - x) is a little less than 1; other products are a little beside it.
            if k % 3 == 0:
                x = 1 << int(rng.integers(1, fmt.mantissa))
                a[k] = (fmt.bias - 1) << fmt.mantissa | x
                b.append(((2 << fmt.mantissa) - x) & ((1 << fmt.mantissa) - 1) | 1 << fmt.mantissa)
            else:
                value = fmt.decode(bits)
                exact = ef.multiply(target, value) if quotient else ef.divide(target, value)
                b.append(fmt.encode(exact, ef.ROUNDINGS[k % 4]))
        sources = [a.astype(dtype), np.array(b).astype(dtype)]
        if quotient:
            sources.reverse()
        signs = [rng.choice(np.array([0, fmt.sign_bit], dtype=dtype), COUNT) for _ in sources]
        sources = [x ^ sign for x, sign in zip(sources, signs, strict=True)]
        if n == 3:
            c = random_bits(rng, fmt.name, COUNT)
            c[: COUNT // 2] &= dtype.type(fmt.sign_bit)
            sources.append(c)
        return sources

    return values


def halved(*generators):
    """Half of the lanes from each of two generators."""

    def values(rng: np.random.Generator) -> list[np.ndarray]:
        columns = [generate(rng) for generate in generators]
        return [
            np.concatenate([x[: COUNT // 2], y[COUNT // 2 :]])
            for x, y in zip(*columns, strict=True)
        ]

    return values


def per_half_close(close: Callable[[np.ndarray, np.ndarray], np.ndarray]):
    def both(got: np.ndarray, want: np.ndarray) -> np.ndarray:
        result = np.ones(len(got), dtype=bool)
        for shift in (0, 16):
            g, w = ((x >> shift & 0xFFFF).astype(np.uint16) for x in (got, want))
            result &= (g == w) | close(g, w)
        return result

    return both


def fma_operands(fmt: Format):
    """Sources of a multiply-add: edges of all three, and sums that cancel or end half-way."""

    def values(rng: np.random.Generator) -> list[np.ndarray]:
        dtype = TYPES[fmt.name].dtype
        crossed = np.array(list(product(edges(fmt.name), repeat=3)), dtype=dtype)
        crossed = crossed[rng.choice(len(crossed), COUNT // 2, replace=False)]
        n = COUNT // 2
        a, b, c = (random_bits(rng, fmt.name, n) for _ in range(3))
        for k in range(0, n, 2):  # c nearly -a*b, or a small part of it
            exact = ef.multiply(fmt.decode(int(a[k])), fmt.decode(int(b[k])))
            if not isinstance(exact, Number):
                continue
            if k % 4:
                exact = Number(
                    exact.n, exact.e - fmt.mantissa - int(rng.integers(0, 4)), exact.sign
                )
            c[k] = fmt.encode(ef.negate(exact), rng.choice(ef.ROUNDINGS))
        return [np.concatenate([crossed[:, k], x]) for k, x in enumerate((a, b, c))]

    return values
