"""Numbers at the ends of a type, on every row: the smallest, the largest, zeros, and the same bits
each time.

NaN and infinity are tests/test_gemm.py's.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import smemkern

M, N, K = 33, 65, 40
CASES = [
    pytest.param(row, dtype, id=f"{row.name}-{dtype}")
    for row in smemkern.variants("gemm")
    for dtype in row.dtypes
]
every_row = pytest.mark.parametrize(("row", "dtype"), CASES)

# The smallest steps of operands of rows that round or split fp32 in registers: tf32 has fp32's
# exponents and 10 bits, so its subnormal numbers are 2^-136 apart, and what is left of a split is
# rounded to that too.
OPERAND_STEP = dict.fromkeys(("mma_tf32x3", "mma_tf32", "tf32"), 2.0**-136)


def limits(dtype: str):
    return ml_dtypes.finfo(dtype) if dtype == "bfloat16" else np.finfo(dtype)


def scaled(rng, shape, dtype: str, exponent: int) -> np.ndarray:
    """N(0, 1) times a power of two, rounded once, subnormal numbers included."""
    return np.ldexp(rng.standard_normal(shape).astype(np.longdouble), exponent).astype(dtype)


def assert_right(row, a, b, result) -> None:
    """Within the bound of rounding, and of underflow: half a step of the sums for each of their
    additions, a step where tensor cores truncate, and that of the operands."""
    wide_a, wide_b = a.astype(np.longdouble), b.astype(np.longdouble)
    exact, size = wide_a @ wide_b, abs(wide_a) @ abs(wide_b)
    sums = np.finfo(np.float64 if a.dtype.itemsize == 8 else np.float32)
    of = limits(a.dtype.name)
    bound = (K + 2) * sums.eps * size + (K + 2) * sums.smallest_subnormal
    if row.product_bits:
        bound += 2.0**-row.product_bits * size
    if a.dtype.itemsize == 2:
        bound += float(of.eps) * abs(exact) + float(of.smallest_subnormal)
    step = OPERAND_STEP.get(row.name, 0.0)
    bound += step * (abs(wide_a).sum(-1, keepdims=True) + abs(wide_b).sum(-2, keepdims=True))
    largest = np.longdouble(float(of.max))
    wide = result.astype(np.longdouble)
    with np.errstate(invalid="ignore"):
        near = abs(wide - exact) <= bound
        beyond = np.isinf(wide) & (np.sign(wide) == np.sign(exact)) & (abs(exact) + bound > largest)
    assert np.all(near | beyond), f"{np.count_nonzero(~(near | beyond))} elements are off"


@every_row
def test_small_times_large(row, dtype, device, rng) -> None:
    """Subnormal operands, which some hardware takes for zero."""
    of = limits(dtype)
    small = int(of.minexp) - 3
    for exponents in ((small, -small - 4), (-small - 4, small)):
        a, b = scaled(rng, (M, K), dtype, exponents[0]), scaled(rng, (K, N), dtype, exponents[1])
        result = smemkern.gemm(a, b, variant=row.name, device=device)
        assert np.count_nonzero(result) > M * N / 2 or row.name in OPERAND_STEP
        assert_right(row, a, b, result)


@every_row
def test_results_that_are_subnormal(row, dtype, device, rng) -> None:
    half = int(limits(dtype).minexp) // 2 - 3
    a, b = scaled(rng, (M, K), dtype, half), scaled(rng, (K, N), dtype, half)
    result = smemkern.gemm(a, b, variant=row.name, device=device)
    assert np.count_nonzero(result) > M * N / 2
    assert_right(row, a, b, result)


@every_row
def test_the_largest_number(row, dtype, device) -> None:
    """Times one it stays, times itself it is infinite."""
    largest = limits(dtype).max
    a, b = np.zeros((M, K), dtype), np.zeros((K, N), dtype)
    a[np.arange(M), np.arange(M)] = largest
    b[np.arange(K), np.arange(K)] = 1
    result = smemkern.gemm(a, b, variant=row.name, device=device)
    expected = np.zeros((M, N), dtype)
    expected[np.arange(M), np.arange(M)] = largest
    if row.name in ("tf32", "mma_tf32"):  # rounds it to 11 bits: up, to infinity
        expected[:] = np.nan
        expected[np.arange(M), np.arange(M)] = np.inf
    if row.name == "fp16x1":  # the same, but when the scales are undone
        expected[np.arange(M), np.arange(M)] = np.inf
    assert np.array_equal(result.astype("f8"), expected.astype("f8"), equal_nan=True)
    a[:], b[:] = largest, -largest
    assert np.all(smemkern.gemm(a, b, variant=row.name, device=device).astype("f8") == -np.inf)


@every_row
@pytest.mark.parametrize("alpha", [1.0, -1.0])
def test_zero_is_zero(row, dtype, alpha, device) -> None:
    """Of either sign: which one is left open, as NumPy leaves it open."""
    a, b = np.full((M, K), -0.0, dtype), np.ones((K, N), dtype)
    assert not np.any(smemkern.gemm(a, b, alpha=alpha, variant=row.name, device=device))


@every_row
def test_the_same_bits_each_time(row, dtype, device, rng) -> None:
    shape = (130, 70, 200) if device == "cuda" else (70, 40, 90)
    a = rng.standard_normal((shape[0], shape[2])).astype(dtype)
    b = rng.standard_normal((shape[2], shape[1])).astype(dtype)
    first = smemkern.gemm(a, b, variant=row.name, device=device)
    for _ in range(20 if device == "cuda" else 2):
        again = smemkern.gemm(a, b, variant=row.name, device=device)
        assert again.tobytes() == first.tobytes()


@pytest.mark.parametrize("row", smemkern.variants("transpose"), ids=lambda row: row.name)
def test_transposes_keep_every_bit(row, device) -> None:
    """Signs of zeros and payloads of NaNs."""
    bits = np.array([0x80000000, 0, 0x7F800001, 0xFFC12345, 1, 0x807FFFFF, 0xFF800000], np.uint32)
    a = np.resize(bits, (37, 23)).view(np.float32)
    result = smemkern.transpose(a, variant=row.name, device=device)
    assert np.array_equal(result.view(np.uint32), a.view(np.uint32).T)
