"""GEMM that reads A and B row by row or column by column, as they lie: every pair of orders."""

import itertools

import numpy as np
import pytest

import smemkern
from checks import assert_gemm, random_matrix
from rows import parameter_sets

ROWS = [row for row in smemkern.variants("gemm") if row.strides == "rows or columns"]
SMALL = {"block_m": 64, "block_n": 64, "warp_m": 32, "warp_n": 32}  # of rows by mma.sync
OTHER = {  # of rows for small products
    "sliced_k": {"block_m": 64, "thread_m": 8, "slices": 2},
    "small_k": {"block_m": 128, "thread_n": 1},
    "direct": {"block_n": 16, "slices": 2},
}
CASES = [pytest.param(row, dtype, id=f"{row.name}-{dtype}") for row in ROWS for dtype in row.dtypes]
ORDERS = [pytest.param(*pair, id="".join(pair)) for pair in itertools.product("CF", repeat=2)]
SHAPES = [(96, 136, 72), (65, 131, 67)]
SETS = [
    pytest.param(row, dtype, params, id="-".join(map(str, (row.name, dtype, *params.values()))))
    for row in ROWS
    for dtype in row.dtypes
    for params in parameter_sets(row)[1:]
]
EITHER = pytest.mark.parametrize("shape", SHAPES, ids=["whole", "odd"])
IN_TURN = pytest.mark.parametrize(
    ("of_a", "of_b", "shape"),
    [
        pytest.param(*order.values, SHAPES[n % 2], id=f"{order.id}-{('whole', 'odd')[n % 2]}")
        for n, order in enumerate(ORDERS)
    ],
)


def lying(x, order):
    """The same matrices, row by row ("C") or column by column ("F")."""
    return x if order == "C" else np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


def test_there_are_such_rows():
    assert {"mma_tf32x3", "mma_fp16", "mma_bf16", "sliced_k", "small_k", "direct"} <= {
        row.name for row in ROWS
    }


@pytest.mark.parametrize(("row", "dtype"), CASES)
@pytest.mark.parametrize(("of_a", "of_b"), ORDERS)
def test_a_kernel_for_each(row, dtype, of_a, of_b):
    a, b = lying(np.ones((70, 50), dtype), of_a), lying(np.ones((50, 90), dtype), of_b)
    whole = {"split": 1} if "split" in row.params else {}
    [launch] = smemkern._core.plan("gemm", (a, b), {"variant": row.name, **whole})["launches"]
    end = ("a" if of_a == "F" else "") + ("b" if of_b == "F" else "")
    assert launch["entry"] == f"gemm_{row.name}" + (f"_{end}" if end else "")


@pytest.mark.parametrize(
    ("row", "dtype"), [case for case in CASES if case.values[0].name in ("mma_fp16", "mma_bf16")]
)
@pytest.mark.parametrize(("of_a", "of_b"), ORDERS)
def test_rows_at_4_bytes_are_copied_in_pairs(row, dtype, of_a, of_b, rng):
    """16-bit rows that begin at multiples of 4 bytes have asynchronous copies."""
    a = lying(random_matrix(rng, (66, 70), dtype), of_a)
    b = lying(random_matrix(rng, (70, 130), dtype), of_b)
    for params in ({"warp_n": 32}, SMALL):
        trace = smemkern.trace("gemm", a, b, variant=row.name, **params)
        assert_gemm(trace.result, a, b, row=row)
        assert trace.hazards == ()
        assert {r.width for r in trace.global_ if r.direction == "read"} == {4}


@pytest.mark.parametrize("small", [False, True], ids=["default", "small"])
@IN_TURN
@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_batch_alpha_and_beta(row, dtype, shape, of_a, of_b, small, device, rng):
    m, n, k = shape
    params = OTHER.get(row.name, SMALL) if small else {}
    a, b = random_matrix(rng, (2, m, k), dtype), random_matrix(rng, (2, k, n), dtype)
    c = random_matrix(rng, (2, m, n), dtype)
    out = c.copy()
    smemkern.gemm(
        lying(a, of_a),
        lying(b, of_b),
        out=out,
        alpha=-1.5,
        beta=0.25,
        variant=row.name,
        device=device,
        **params,
    )
    assert_gemm(out, a, b, -1.5, 0.25, c, row=row)


@pytest.mark.parametrize(("of_a", "of_b"), ORDERS)
@EITHER
@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_a_part_of_wider_matrices(row, dtype, shape, of_a, of_b, device, rng):
    """Pitches that are no extents, and first elements off every boundary."""
    m, n, k = shape
    wide_a = lying(random_matrix(rng, (m + 9, k + 5), dtype), of_a)
    wide_b = lying(random_matrix(rng, (k + 3, n + 7), dtype), of_b)
    a, b = wide_a[1 : m + 1, 3 : k + 3], wide_b[2 : k + 2, 1 : n + 1]
    assert_gemm(smemkern.gemm(a, b, variant=row.name, device=device), a, b, row=row)


def assert_no_conflicts_in_reading(row, trace, of_a, of_b):
    """Not even of two. But fp64 reads one operand by elements, half a vector per lane and request,
    if its order is not that of DMMA's registers: moves would take longer. For sums that clusters
    read see test_cluster_sums.py."""
    reads = [
        r
        for r in trace.shared
        if ("load" in r.op or "ldmatrix" in r.op) and r.file != "split_k.cuh"
    ]
    assert reads or row.name == "direct"  # which may have nothing in shared memory
    slow = [r for r in reads if r[4] != r.ideal]
    if row.name == "fp64" and of_a != of_b:
        assert [r for r in slow if r[4] != 2 * r.ideal] == []
        assert len({(r.file, r.line) for r in slow}) <= 1
    else:
        assert slow == []


@pytest.mark.parametrize(("of_a", "of_b"), ORDERS)
@EITHER
@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_no_hazards_and_no_conflicts_in_reading(row, dtype, shape, of_a, of_b, rng):
    m, n, k = shape
    a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
    trace = smemkern.trace("gemm", lying(a, of_a), lying(b, of_b), variant=row.name)
    assert trace.hazards == ()
    assert_no_conflicts_in_reading(row, trace, of_a, of_b)


@IN_TURN
@pytest.mark.parametrize(("row", "dtype", "params"), SETS)
def test_other_tiles(row, dtype, params, shape, of_a, of_b, rng):
    m, n, k = shape
    a, b = (random_matrix(rng, size, dtype) for size in ((m, k), (k, n)))
    trace = smemkern.trace("gemm", lying(a, of_a), lying(b, of_b), variant=row.name, **params)
    assert_gemm(trace.result, a, b, row=row)
    assert trace.hazards == ()
    assert_no_conflicts_in_reading(row, trace, of_a, of_b)


@pytest.mark.parametrize(("row", "dtype"), CASES)
@pytest.mark.parametrize("columns", [1, 2])
def test_few_columns(row, dtype, columns, device, rng):
    """A single column lies along K and across it at once."""
    a, b = random_matrix(rng, (70, 90), dtype), random_matrix(rng, (90, columns), dtype)
    for left, right in itertools.product("CF", repeat=2):
        x, y = lying(a, left), lying(b, right)
        assert_gemm(smemkern.gemm(x, y, variant=row.name, device=device), a, b, row=row)
        x, y = lying(b.T, left), lying(a.T, right)
        assert_gemm(smemkern.gemm(x, y, variant=row.name, device=device), b.T, a.T, row=row)


@pytest.mark.parametrize("row", smemkern.variants("gemm"), ids=lambda row: row.name)
def test_two_elements_that_lie_apart(row, rng):
    """Two are a row, too, whose elements are as far apart as any."""
    for dtype in row.dtypes:
        for m, n, k in ((5, 7, 2), (2, 9, 4), (6, 2, 3), (2, 2, 2)):
            a = random_matrix(rng, (2 * m, 3 * k), dtype)[::2, ::3]
            b = random_matrix(rng, (k, 2 * n), dtype)[:, ::2]
            for x, y in ((a, b), (a, b.copy()), (lying(a, "F")[:, ::1], b[::-1])):
                result = smemkern.gemm(x, y, variant=row.name, device="emu")
                assert_gemm(result, x, y, row=row)


@pytest.mark.parametrize("variant", ["naive", "vectorized", "sliced_k", "tf32x3"])
def test_batches_of_four_axes_that_nothing_folds(variant, rng):
    """Each operand is repeated along other axes, so that every axis is walked for itself."""
    batch = (2, 3, 2, 3)
    a = np.broadcast_to(random_matrix(rng, (2, 1, 2, 1, 6, 5), "f4"), (*batch, 6, 5))
    b = np.broadcast_to(random_matrix(rng, (1, 3, 1, 3, 5, 7), "f4"), (*batch, 5, 7))
    out = np.full((*batch[::-1], 6, 7), np.nan, "f4").transpose(3, 2, 1, 0, 4, 5)
    smemkern.gemm(a, b, out=out, variant=variant, device="emu")
    row = next(row for row in smemkern.variants("gemm") if row.name == variant)
    assert_gemm(out, a, b, row=row)
