"""gemm's rows that multiply float64 by residues: `ozaki2` and those beside it.

Where the integers that they round to hold every bit of A and B, the result is the exact one rounded
once: Python's fractions say which. Elsewhere the error is compared with that of a float64 sum.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

import smemkern
from checks import assert_gemm, assert_same_bits
from smemkern import reference
from smemkern._variants.registry import kernel_file

ROWS = [row for row in smemkern.variants("gemm") if "moduli" in row.params]
EACH = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
MODULI = (14, 15, 16)
HEADER = "ozaki_moduli.cuh"


@pytest.fixture
def seed(request) -> np.random.Generator:
    """A new generator per run; pytest shows the seed of a test that fails."""
    value = np.random.SeedSequence().entropy
    print(f"seed {value}")
    return np.random.default_rng(value)


def product(row, a, b, device, **keywords) -> np.ndarray:
    return smemkern.gemm(a, b, variant=row.name, device=device, **keywords)


def rounded_once(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The exact product, each element rounded to nearest even. Fraction's division of integers, as
    int's, rounds correctly, subnormal results included."""
    left = [[Fraction(x) for x in row] for row in a.tolist()]
    right = [[Fraction(x) for x in column] for column in b.T.tolist()]
    return np.array([[_as_float(sum(map(Fraction.__mul__, r, c))) for c in right] for r in left])


def _as_float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def exact_of(a, b) -> np.ndarray:
    return a.astype(np.longdouble) @ b.astype(np.longdouble)


# ---- exact results


@EACH
@pytest.mark.parametrize("moduli", MODULI)
def test_sums_are_exact(row, moduli, device, seed):
    """Integers of few bits, so nothing of A and B is rounded; the sums have up to 110 bits."""
    for bits, k in ((20, 300), (45, 5), (50, 2), (53, 1)):
        a = seed.integers(-(2**bits), 2**bits, (19, k)).astype(float)
        b = seed.integers(-(2**bits), 2**bits, (k, 21)).astype(float)
        a[:, 0] = b[0] = 2.0**bits - 1  # no row or column is much smaller than the others
        result = product(row, a, b, device, moduli=moduli)
        np.testing.assert_array_equal(result, rounded_once(a, b), err_msg=f"{bits} bits, K = {k}")


@EACH
@pytest.mark.parametrize("moduli", MODULI)
def test_sums_that_cancel_are_exact(row, moduli, device, seed):
    """All but the last bits cancel: every residue counts."""
    a = seed.integers(-(2**40), 2**40, (9, 12)).astype(float)
    b = seed.integers(-(2**40), 2**40, (12, 11)).astype(float)
    left = np.hstack([a, -a, seed.integers(-3, 4, (9, 1))])
    right = np.vstack([b, b, seed.integers(-3, 4, (1, 11))])
    wanted = left[:, -1:] * right[-1:]
    np.testing.assert_array_equal(product(row, left, right, device, moduli=moduli), wanted)
    assert np.all(product(row, left[:, :-1], right[:-1], device, moduli=moduli) == 0)


@EACH
@pytest.mark.parametrize("exponent", [-1020, -1035, -1060, -1074, -1080, 500, 1020])
def test_ends_of_float64(row, exponent, device, seed):
    """Results that are subnormal, tiny and infinite are rounded once, too."""
    a, b = seed.standard_normal((40, 1)), seed.standard_normal((1, 40))
    left, right = np.ldexp(a, exponent // 2), np.ldexp(b, exponent - exponent // 2)
    result = product(row, left, right, device)
    np.testing.assert_array_equal(result, rounded_once(left, right))
    small = np.ldexp(np.rint(a * 2**20), -1074)  # subnormal operands
    result = product(row, small, np.ldexp(b, 1000), device)
    np.testing.assert_array_equal(result, rounded_once(small, np.ldexp(b, 1000)))


@EACH
def test_scales_are_exact(row, device, seed):
    """Powers of two of rows and columns change no bit."""
    a, b = seed.standard_normal((20, 50)), seed.standard_normal((50, 30))
    up, across = seed.integers(-490, 490, (20, 1)), seed.integers(-490, 490, (1, 30))
    scaled = product(row, np.ldexp(a, up), np.ldexp(b, across), device)
    np.testing.assert_array_equal(scaled, np.ldexp(product(row, a, b, device), up + across))


@EACH
@pytest.mark.parametrize("moduli", MODULI)
def test_large_times_small(row, moduli, device, seed):
    """Scales of rows near one end of float64, of columns near the other one."""
    a, b = seed.standard_normal((5, 70)), seed.standard_normal((70, 6))
    wanted = product(row, a, b, device, moduli=moduli)
    for up in (*seed.integers(700, 1000, 4), 700, 1000):
        for sign in (up, -up):
            left, right = np.ldexp(a, sign), np.ldexp(b, -sign)
            np.testing.assert_array_equal(product(row, left, right, device, moduli=moduli), wanted)


# ---- errors


@EACH
def test_short_sums(row, device, seed):
    """A large element of a row times a small one of a column, and the reverse: the sum is much less
    than the norms, to which the error is relative."""
    a, b = seed.standard_normal((400, 2)), seed.standard_normal((2, 300))
    result = product(row, a, b, device)
    assert_gemm(result, a, b, row=row)
    exact, of_sums = reference.gemm_bound(a, b)
    assert np.any(abs(result - exact) > of_sums)


@EACH
@pytest.mark.parametrize("span", [0, 4, 20, 40])
def test_error_in_norm(row, span, device, seed):
    """With 15 moduli the error is below that of NumPy's float64 sum, with 14 about that, relative
    to the norms of row and column; whatever the span of magnitudes in them."""
    a, b = seed.standard_normal((50, 400)), seed.standard_normal((400, 60))
    a *= 2.0 ** seed.integers(-span, 1, a.shape)
    b *= 2.0 ** seed.integers(-span, 1, b.shape)
    exact = exact_of(a, b)
    size = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=0)
    errors = [
        float(np.sqrt(np.mean((abs(c - exact) / size) ** 2)))
        for c in (a @ b, *(product(row, a, b, device, moduli=moduli) for moduli in MODULI))
    ]
    assert errors[1] < 1.5 * errors[0], errors
    assert errors[2] < errors[0], errors
    assert errors[3] < errors[0], errors


@EACH
def test_error_of_normal_elements(row, device, seed):
    a, b = seed.standard_normal((64, 200)), seed.standard_normal((200, 64))
    exact = exact_of(a, b)
    assert abs(product(row, a, b, device) - exact).max() <= abs(a @ b - exact).max()


# ---- NaN and infinity


@EACH
def test_nan_and_infinity(row, device, seed):
    a, b = seed.standard_normal((40, 70)), seed.standard_normal((70, 50))
    for value in (np.nan, np.inf, -np.inf):
        for x in (a, b):
            x[seed.integers(x.shape[0]), seed.integers(x.shape[1])] = value
    b[:, 7] = 0  # times infinity
    with np.errstate(invalid="ignore"):
        wanted = a @ b
    result = product(row, a, b, device)
    np.testing.assert_array_equal(np.isfinite(result), np.isfinite(wanted))
    np.testing.assert_array_equal(result[np.isinf(wanted)], wanted[np.isinf(wanted)])
    np.testing.assert_array_equal(np.isnan(result), np.isnan(wanted))
    finite = np.isfinite(wanted)
    np.testing.assert_allclose(result[finite], wanted[finite], rtol=0, atol=1e-13)


@EACH
def test_largest_elements(row, device):
    """Squares and sums of these overflow, but not the result."""
    largest = np.finfo(float).max
    a, b = np.full((3, 1000), largest), np.full((1000, 2), 2.0**-1000)
    a[1] *= -1
    a[2, ::2] *= -1
    result = product(row, a, b, device)
    np.testing.assert_allclose(result, rounded_once(a, b), rtol=2.0**-52)


# ---- blocks


@EACH
@pytest.mark.parametrize("shape", [(300, 500, 300), (129, 40, 900), (260, 257, 700), (1, 1, 1100)])
def test_blocks_change_nothing(row, shape, device, seed):
    """With little room for residues rows, columns and K are cut; sums stay exact."""
    m, n, k = shape
    a, b, c = (seed.standard_normal(s) for s in ((m, k), (k, n), (m, n)))
    whole, cut = c.copy(), c.copy()
    product(row, a, b, device, out=whole, alpha=1.5, beta=-2)
    product(row, a, b, device, out=cut, alpha=1.5, beta=-2, workspace=1)
    assert_same_bits(cut, whole)
    launches = [
        len(smemkern._core.plan("gemm", (a, b), {"variant": row.name, **more})["launches"])
        for more in ({}, {"workspace": 1})
    ]
    assert launches[0] == 4
    assert (launches[1] > 4) == (m + n > 2)


@EACH
def test_batches_in_blocks(row, device, seed):
    a, b = seed.standard_normal((7, 2, 90, 100)), seed.standard_normal((2, 100, 80))
    result = product(row, a, b, device, workspace=1)
    assert_gemm(result, a, b)
    assert_same_bits(result, product(row, a, b, device))


@EACH
def test_no_block_is_too_large(row):
    """The plan of products that no emulator runs: the workspace stays near what was asked for."""
    for m, n, k in ((16384, 16384, 16384), (10**6, 64, 4096), (128, 128, 10**7), (1, 10**6, 10**5)):
        a = np.lib.stride_tricks.as_strided(np.zeros(1), (m, k), (0, 8))
        b = np.lib.stride_tricks.as_strided(np.zeros(1), (k, n), (0, 8))
        plan = smemkern._core.plan("gemm", (a, b), {"variant": row.name})
        assert plan["workspace"] < 1.1 * 2**32, (m, n, k)


# ---- constants


def moduli() -> list[int]:
    text = kernel_file(HEADER).read_text()
    return [int(p) for p in re.search(r"moduli\[\] = \{([^}]*)\}", text)[1].split(",")]


def test_moduli_are_coprime():
    found = moduli()
    assert len(found) == 16
    for i, p in enumerate(found):
        assert all(math.gcd(p, q) == 1 for q in found[:i]), p
        assert p <= 256


@pytest.mark.parametrize("p", [p for p in moduli() if p != 256])
def test_every_sum_of_digits(p):
    """The remainder in ozaki_pack.cuh by two float32 operations, over all its arguments: a byte
    that is congruent to the sum."""
    limit = 8 * 128 * 128
    base = -(-(2**23 + limit) // p) * p
    sums = np.arange(base - limit, base + limit + 1)
    one = np.float32(1) / np.float32(p)
    products = sums.astype(np.longdouble) * np.longdouble(one)  # exact in 64 bits
    quotients = (products + np.longdouble(12582912)).astype(np.float32).astype(np.int64) - 12582912
    rest = sums - quotients * p
    assert rest.min() >= -128
    assert rest.max() <= 127


@pytest.mark.parametrize("p", moduli())
def test_remainder_of_sums(p, seed):
    """The remainder of a product's sums by a multiplication: at most p, so a byte."""
    x = np.concatenate(
        [seed.integers(-(2**30), 2**30 + 1, 10**6), np.arange(-1000, 1000), [2**30, -(2**30)]]
    )
    x = np.concatenate([x, x // p * p, x // p * p - 1])  # where a quotient could be 1 off
    x = x[abs(x) <= 2**30]
    rest = x - ((x * (2**38 // p) >> 32) >> 6) * p
    assert rest.min() >= 0
    assert rest.max() <= min(p, 255)


# ---- the bound of docs/choosing.md


def drawn_matrix(rng, rows, columns) -> np.ndarray:
    """Magnitudes, sparsity, scales of rows, layout and strides at random."""
    x = rng.standard_normal((rows, columns))
    x *= 2.0 ** rng.integers(-int(rng.integers(0, 70)), 1, x.shape)
    x *= rng.random(x.shape) < rng.choice([1.0, 0.5, 0.02])
    x = np.ldexp(x, rng.integers(-300, 300, (rows, 1) if rng.random() < 0.5 else (1, columns)))
    up, across = (int(s) for s in rng.choice([1, 2, -1, -3], 2))
    apart = np.zeros((rows * abs(up), columns * abs(across) + int(rng.integers(2))))
    view = apart[::up, ::across][:rows, :columns]
    view[...] = x
    return view if rng.random() < 0.5 else np.asfortranarray(view)


@EACH
@pytest.mark.parametrize("draw", range(6))
def test_the_bound(row, draw, device, seed):
    m, n, k = (int(2 ** seed.uniform(0, 8.5)) for _ in range(3))
    a, b = drawn_matrix(seed, m, k), drawn_matrix(seed, n, k).T
    moduli = int(seed.choice(MODULI))
    workspace = int(seed.choice([1, 4096]))
    alpha, beta = seed.choice([1.0, -0.5, 3.0]), seed.choice([0.0, 1.0, -2.0])
    c = seed.standard_normal((m, n))
    old = c.copy()
    product(row, a, b, device, moduli=moduli, workspace=workspace, out=c, alpha=alpha, beta=beta)
    wide_a, wide_b = a.astype(np.longdouble), b.astype(np.longdouble)
    norms = np.sqrt((wide_a**2).sum(1))[:, None] * np.sqrt((wide_b**2).sum(0))
    bits = {14: 54.57, 15: 58.38, 16: 62.18}[moduli]
    exact = alpha * (wide_a @ wide_b)
    bound = abs(alpha) * 2.001 * np.sqrt(k) * 2.0**-bits * norms
    # The sum is rounded once; so are a product with alpha, and the sum with C, which is fused.
    roundings = 1 + (alpha == 3) + (beta != 0)
    bound = bound + 2.0**-53 * (roundings * abs(exact) + abs(beta * old))
    bound = bound + roundings * np.finfo(float).smallest_subnormal
    error = abs(c - (exact + beta * old))
    assert np.all(error <= bound), f"{m} x {n} x {k}, {moduli} moduli: {(error / bound).max()}"
