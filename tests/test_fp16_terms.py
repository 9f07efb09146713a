"""fp16x3_guarded against data made to break its bound, and fp16x1's accuracy beside tf32's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import smemkern

GUARDED = "fp16x3_guarded"
Operands = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def rng(record_property):
    seed = np.random.SeedSequence().entropy
    record_property("seed", seed)
    print(f"seed {seed}")  # which pytest shows on failure
    return np.random.default_rng(seed)


def spans(rng, low: int, high: int, *shape: int) -> np.ndarray:
    """N(0, 1) times powers of two."""
    return np.ldexp(rng.standard_normal(shape), rng.integers(low, high + 1, shape))


def of_bound(a: np.ndarray, b: np.ndarray, **keywords) -> float:
    """The largest error as a share of docs/choosing.md's bound; of sums that may overflow 0."""
    a, b = a.astype("f4"), b.astype("f4")
    # Products of two float32 are exact in float64, also in its range; sums lose 2^-29 of the bound.
    wide_a, wide_b, k = a.astype("f8"), b.astype("f8"), a.shape[1]
    exact, size = wide_a @ wide_b, abs(wide_a) @ abs(wide_b)
    step = 2.0**-149  # of subnormal results
    bound = (k + 64) * 2.0**-24 * size + (k + 2) * step
    result = smemkern.gemm(a, b, variant=GUARDED, **keywords).astype("f8")
    fits = size < np.finfo("f4").max * 0.999
    assert not np.isnan(result[fits]).any()
    return float(np.where(fits, abs(np.where(fits, result, 0) - exact) / bound, 0).max())


def cancelling(rng, m: int, n: int, k: int) -> Operands:
    a, b = rng.standard_normal((m, 2 * k)), rng.standard_normal((2 * k, n))
    a[:, k:], b[k:] = -a[:, :k] * (1 + 2.0**-20), b[:k]
    return a, b


def one_huge(rng, m: int, n: int, k: int) -> Operands:
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a[rng.integers(m), rng.integers(k)] *= 2.0**60
    b[rng.integers(k), rng.integers(n)] *= 2.0**60
    return a, b


def one_small(rng, m: int, n: int, k: int) -> Operands:
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a[rng.integers(m), rng.integers(k)] *= 2.0**-30
    return a, b


def many_zeros(rng, m: int, n: int, k: int) -> Operands:
    a, b = spans(rng, -40, 0, m, k), spans(rng, -40, 0, k, n)
    return a * (rng.random((m, k)) < 0.1), b * (rng.random((k, n)) < 0.1)


def near_threshold(share: float) -> Callable[..., Operands]:
    """Rows whose smallest elements, as large as this share of the threshold, alone count: in B
    the others meet zeros. Scaled they are half-way between multiples of 2^-24, above even ones, so
    each loses 2^-25, the most that it can, and all in the same direction."""

    def make(rng, m: int, n: int, k: int) -> Operands:
        even = int(share * 2.0 / max(k, 16) * 2.0**24) // 2 * 2
        a = (even + 2.0 * rng.integers(0, 1 + even // 1000, (m, k)) + 0.5) * 2.0**-39
        a[:, 0] = rng.uniform(1, 1.99, m)  # 2^15 times that in [2^15, 2^16)
        b = rng.integers(1, 8, (k, n)).astype("f8")
        b[0] = 0
        return a, b

    return make


MAKERS: dict[str, Callable[..., Operands]] = {
    "normal": lambda rng, m, n, k: (rng.standard_normal((m, k)), rng.standard_normal((k, n))),
    "rows to 2^-149": lambda rng, m, n, k: (spans(rng, -149, 0, m, k), spans(rng, 0, 0, k, n)),
    "columns to 2^-149": lambda rng, m, n, k: (spans(rng, 0, 0, m, k), spans(rng, -149, 0, k, n)),
    "both": lambda rng, m, n, k: (spans(rng, -70, 60, m, k), spans(rng, -70, 60, k, n)),
    "subnormal": lambda rng, m, n, k: (spans(rng, -149, -126, m, k), spans(rng, 80, 110, k, n)),
    "one huge": one_huge,
    "one small": one_small,
    "zeros": many_zeros,
    "cancelling": cancelling,
    **{
        f"at {share} of the threshold": near_threshold(share)
        for share in (0.01, 0.1, 0.5, 0.98, 1.02, 2)
    },
}


def shapes(rng) -> Iterator[tuple[int, int, int]]:
    for k in (1, 2, 15, 17, 64, 65, int(rng.integers(100, 600)), int(rng.integers(1000, 2200))):
        yield int(rng.integers(1, 140)), int(rng.integers(1, 140)), k


@pytest.mark.parametrize("maker", MAKERS)
def test_every_element_is_within_the_bound(maker, device, rng):
    for m, n, k in shapes(rng):
        a, b = MAKERS[maker](rng, m, n, k)
        assert of_bound(a, b, device=device) <= 1, (m, n, k)
        assert of_bound(b.T, a.T, device=device) <= 1, (n, m, k)
        ordered = np.asfortranarray(a.astype("f4")), np.asfortranarray(b.astype("f4"))
        assert of_bound(*ordered, device=device, split=2) <= 1, (m, n, k)


def test_what_lost_bits_cost(device, rng):
    """Just above the threshold a quarter of the bound for one operand, as the proof counts;
    below it, where tf32 terms are used, next to nothing."""
    above, below = (near_threshold(share)(rng, 9, 8, 2000) for share in (1.02, 0.98))
    assert 0.2 < of_bound(*above, device=device) < 0.26
    assert of_bound(*below, device=device) < 0.01


def test_fp16x3_is_not(device, rng):
    """So the data above can break the bound."""
    a, b = spans(rng, -30, 30, 64, 64).astype("f4"), spans(rng, -30, 30, 64, 64).astype("f4")
    exact, size = a.astype("f8") @ b, abs(a).astype("f8") @ abs(b)
    result = smemkern.gemm(a, b, variant="fp16x3", device=device)
    assert np.max(abs(result - exact) / size) > (64 + 64) * 2.0**-24


def hide(a: np.ndarray, b: np.ndarray, rows: slice, columns: object) -> None:
    """Makes one element of these rows of A huge, and gives it zeros to meet in these columns: there
    only elements count that lose bits beside it."""
    a[rows, 3], b[3, columns] = 2.0**30, 0


@pytest.mark.parametrize("side", ["row", "column"])
def test_tiles_of_many_small_sums_have_the_bits_of_tf32x3(side, device, rng):
    """Of 3 x 2 tiles those of one row or column, and no others. K is whole: a part without the huge
    element has small sums only."""
    a, b = (rng.standard_normal(s).astype("f4") for s in ((300, 200), (200, 140)))
    left, right = (a, b) if side == "row" else (b.T, a.T)
    right[3] = 0
    before = smemkern.gemm(a, b, variant=GUARDED, split=1, device=device)
    hide(left, right, slice(128, 256), slice(None))
    result = smemkern.gemm(a, b, variant=GUARDED, split=1, device=device)
    words = smemkern.gemm(a, b, variant="tf32x3", split=1, device=device)
    taken = np.s_[128:256] if side == "row" else np.s_[:, 128:]
    assert result[taken].tobytes() == words[taken].tobytes()
    rest = np.ones(result.shape, bool)
    rest[taken] = False
    assert np.array_equal(result[rest], before[rest])
    assert np.mean(result[rest] != words[rest]) > 0.1


@pytest.mark.parametrize("side", ["row", "column"])
def test_few_small_sums_are_computed_again(side, device, rng):
    """The others of a wide tile have the bits that they have in one that is not."""
    a, b = (rng.standard_normal(s).astype("f4") for s in ((300, 200), (200, 140)))
    left, right = (a, b) if side == "row" else (b.T, a.T)
    at, columns = int(rng.integers(len(left))), rng.choice(right.shape[1], 5, replace=False)
    right[3, columns] = 0
    before = smemkern.gemm(a, b, variant=GUARDED, split=1, device=device)
    hide(left, right, slice(at, at + 1), columns)
    assert of_bound(a, b, device=device) <= 1
    assert of_bound(a, b, device=device, split=2) <= 1
    result = smemkern.gemm(a, b, variant=GUARDED, split=1, device=device)
    others = np.delete(result if side == "row" else result.T, at, axis=0)
    same = others == np.delete(before if side == "row" else before.T, at, axis=0)
    assert np.mean(~same) < 0.01  # those that happen to be small


def test_zero_rows_and_columns_of_wide_tiles(device, rng):
    """Their sums are 0, which is no reason to compute them again."""
    a, b = spans(rng, 0, 0, 140, 150).astype("f4"), spans(rng, 0, 0, 150, 130).astype("f4")
    a[rng.choice(140, 90, replace=False)], b[:, rng.choice(130, 90, replace=False)] = 0, 0
    a[:, 0] *= np.float32(2.0**30)
    assert of_bound(a, b, device=device) <= 1
    words = smemkern.gemm(a, b, variant="tf32x3", device=device)
    result = smemkern.gemm(a, b, variant=GUARDED, device=device)
    zero = (a == 0).all(axis=1)[:, None] | (b == 0).all(axis=0)
    assert (result[zero] == 0).all()
    # Mostly a third differ; few where the products of 2^30 are large enough to hide the others.
    assert np.mean(result[~zero] != words[~zero]) > 0.01


def test_blocks_take_tiles_of_both_kinds(device, rng):
    """More tiles than multiprocessors: the ring goes on from one kind to the other."""
    a, b = spans(rng, 0, 0, 128 * 30, 100), spans(rng, 0, 0, 100, 128 * 11)
    b[7, rng.choice(128 * 11, 600, replace=False)] = 0
    for row in rng.choice(128 * 30, 9, replace=False):
        a[row, 7] *= 2.0 ** rng.integers(0, 60)
    assert of_bound(a, b, device=device, split=1) <= 1


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("order", ["C", "F"])
def test_infinite_elements_of_wide_tiles(value, order, device, rng):
    a, b = spans(rng, -50, 10, 70, 90).astype("f4"), spans(rng, -50, 10, 90, 60).astype("f4")
    a[3, 4], b[50, 7], b[4, 9] = value, value, 0
    result = smemkern.gemm(np.asarray(a, order=order), b, variant=GUARDED, device=device)
    with np.errstate(invalid="ignore"):
        exact = a.astype("f8") @ b.astype("f8")
    finite = np.isfinite(exact)
    assert np.array_equal(np.isnan(result), np.isnan(exact))
    assert np.array_equal(result[~finite], exact[~finite].astype("f4"), equal_nan=True)
    assert np.isfinite(result[finite]).all()


def test_wide_batches_alpha_beta(device, rng):
    """A batch has scales and extremes of its own for each matrix; one operand is broadcast."""
    a = spans(rng, 0, 0, 3, 130, 70).astype("f4")
    a[1, 5, 6] = 2.0**-35
    b, out = (rng.standard_normal(s).astype("f4") for s in ((70, 50), (3, 130, 50)))
    old = out.astype("f8")
    keywords = {"variant": GUARDED, "device": device, "alpha": -1.5, "beta": 0.5}
    smemkern.gemm(a, b, out=out, **keywords)
    size = 1.5 * (abs(a).astype("f8") @ abs(b)) + 0.5 * abs(old)
    assert np.all(abs(out - (-1.5 * (a.astype("f8") @ b) + 0.5 * old)) <= 2.0**-18 * size)


@pytest.mark.parametrize("order", ["CC", "CF", "FC", "FF"])
def test_wide_tiles_have_no_hazards(order, rng):
    a, b = spans(rng, -30, 0, 140, 201).astype("f4"), spans(rng, -30, 0, 201, 130).astype("f4")
    a, b = np.asarray(a, order=order[0]), np.asarray(b, order=order[1])
    for split in (1, 2):
        trace = smemkern.trace("gemm", a, b, variant=GUARDED, hazards=True, split=split)
        assert trace.hazards == ()


def norm_of_error(variant: str, a: np.ndarray, b: np.ndarray, device: str) -> float:
    exact = a.astype("f8") @ b.astype("f8")
    result = smemkern.gemm(a, b, variant=variant, device=device)
    return float(np.linalg.norm(result - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("span", [0, 4, 10, 20, 40])
def test_fp16x1_is_as_accurate_as_tf32_in_norm(span, device, rng):
    """Also where K is large; errors of either differ by chance by less than a percent."""
    for k in (50, 3000):
        a = spans(rng, -span, 0, 60, k).astype("f4")
        b = spans(rng, -span, 0, k, 70).astype("f4")
        ours, theirs = (norm_of_error(v, a, b, device) for v in ("fp16x1", "tf32"))
        assert ours <= 1.02 * theirs


def test_fp16x1_cancelling(device, rng):
    a, b = (x.astype("f4") for x in cancelling(rng, 60, 70, 800))
    ours, theirs = (norm_of_error(v, a, b, device) for v in ("fp16x1", "tf32"))
    assert ours <= 1.02 * theirs
