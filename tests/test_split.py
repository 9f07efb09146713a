"""K cut into parts by the rows that can: the same product, whatever the number of parts."""

import numpy as np
import pytest

import smemkern
from checks import assert_gemm, assert_same_bits, random_matrix

ROWS = [row for row in smemkern.variants("gemm") if "split" in row.params]
EACH = pytest.mark.parametrize(
    ("row", "dtype"),
    [pytest.param(row, dtype, id=row.name) for row in ROWS for dtype in row.dtypes],
)


def lie(x, order):
    """Row-major, transposed, or in rows that begin off 16-byte boundaries."""
    if order != "odd":
        return np.asarray(x, order=order)
    wide = np.zeros((*x.shape[:-1], x.shape[-1] + 1), x.dtype)
    wide[..., :-1] = x
    return wide[..., :-1]


@EACH
@pytest.mark.parametrize("split", [1, 2, 3, 7])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 48, 1024), (65, 130, 515), (1, 1, 999), (3, 5, 40)])
def test_parts(row, dtype, split, m, n, k, device, rng):
    """Also of a K that has fewer steps than that."""
    a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
    result = smemkern.gemm(a, b, variant=row.name, split=split, device=device)
    assert_gemm(result, a, b, row=row)
    again = smemkern.gemm(a, b, variant=row.name, split=split, device=device)
    assert_same_bits(again, result)


@EACH
@pytest.mark.parametrize("of_a", ["C", "F", "odd"])
@pytest.mark.parametrize("of_b", ["C", "F", "odd"])
def test_layouts(row, dtype, of_a, of_b, device, rng):
    a = lie(random_matrix(rng, (40, 600), dtype), of_a)
    b = lie(random_matrix(rng, (600, 72), dtype), of_b)
    result = smemkern.gemm(a, b, variant=row.name, split=3, device=device)
    assert_gemm(result, a, b, row=row)


@EACH
@pytest.mark.parametrize("n", [64, 67])
def test_alpha_and_beta(row, dtype, n, device, rng):
    """They are the second launch's; `out` has rows of its own."""
    a, b = random_matrix(rng, (33, 400), dtype), random_matrix(rng, (400, n), dtype)
    c = random_matrix(rng, (33, n), dtype)
    out = c.copy()
    smemkern.gemm(a, b, variant=row.name, split=4, alpha=0.5, beta=-2.0, out=out, device=device)
    assert_gemm(out, a, b, alpha=0.5, beta=-2.0, c=c, row=row)


@EACH
def test_beta_zero_reads_nothing(row, dtype, device, rng):
    a, b = random_matrix(rng, (33, 400), dtype), random_matrix(rng, (400, 20), dtype)
    out = np.full((33, 20), np.nan, dtype)
    smemkern.gemm(a, b, variant=row.name, split=4, out=out, device=device)
    assert_gemm(out, a, b, row=row)


@EACH
def test_batches(row, dtype, device, rng):
    """Folded into one launch, broadcast, and in launches of their own that share the workspace."""
    a, b = random_matrix(rng, (2, 1, 33, 300), dtype), random_matrix(rng, (1, 3, 300, 21), dtype)
    result = smemkern.gemm(a, b, variant=row.name, split=2, device=device)
    assert_gemm(result, a, b, row=row)
    many = random_matrix(rng, (6, 33, 300), dtype)
    result = smemkern.gemm(many, b[0, 0], variant=row.name, split=3, device=device)
    assert_gemm(result, many, b[0, 0], row=row)


@EACH
def test_no_hazards(row, dtype, rng):
    a, b = random_matrix(rng, (70, 400), dtype), random_matrix(rng, (400, 67), dtype)
    trace = smemkern.trace("gemm", a, b, variant=row.name, split=3, hazards=True)
    assert len(trace.hazards) == 0
    assert_gemm(trace.result, a, b, row=row)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if "float32" in row.dtypes], ids=lambda r: r.name
)
def test_infinity(row, device, rng):
    """Of tensor cores in parts it makes NaNs, which each part of K takes care of."""
    a, b = random_matrix(rng, (33, 400), "f4"), random_matrix(rng, (400, 21), "f4")
    a[3, 77], a[5, 10], a[5, 390] = np.inf, np.inf, -np.inf
    b[:, 4] = abs(b[:, 4]) + 1
    with np.errstate(invalid="ignore"):
        expected = np.matmul(a.astype("f8"), b.astype("f8"))
    result = smemkern.gemm(a, b, variant=row.name, split=3, device=device)
    assert np.array_equal(np.isnan(result), np.isnan(expected))
    assert np.array_equal(np.isposinf(result), np.isposinf(expected))


# ---- how many parts


def parts(variant, m, n, k, batch=(), dtype="f4", **params):
    one = np.zeros(1, dtype)
    a = np.lib.stride_tricks.as_strided(
        one, (*batch, m, k), (0,) * len(batch) + (k * one.itemsize, one.itemsize)
    )
    b = np.lib.stride_tricks.as_strided(one, (k, n), (n * one.itemsize, one.itemsize))
    launches = smemkern._core.plan("gemm", (a, b), {"variant": variant, **params})["launches"]
    return launches[-1]["args"]["split"]
