"""The planner of 16-bit tiles: it finds the cheapest of all widths and K ranges, by its table."""

import math

import numpy as np
import pytest

import smemkern
from checks import benchmark
from smemkern import _core
from smemkern._variants import cost_model

columns = benchmark("columns")
MULTIPROCESSORS = 132
STEP = 4  # of the terms that `auto` counts: what the planner predicts
LAYOUTS = ("NN", "NT", "TN", "TT")


def cheapest(shape, batch, layout, block_m):
    """Microseconds of the cheapest tile of Python's list."""
    return min(
        columns.expected(batch, shape, layout, tile, MULTIPROCESSORS)
        for tile in columns.tiles(batch, shape, MULTIPROCESSORS)
        if tile[0] == block_m
    )


@pytest.mark.parametrize("block_m", columns.MOST_COLUMNS)
def test_planner_finds_the_cheapest(block_m, draw):
    rows = [
        row
        for row in cost_model.read(cost_model.PACKAGED)
        if row.variant == "fp16" and row.aligned and row.params.get("block_m", 128) == block_m
    ]
    assert len(rows) == 1
    for _ in range(25):
        batch, shape, layout = columns.draw(draw)
        [(_, _, terms)] = _core.predict(
            *(rows, "gemm", "float16", "float32", (*shape, batch), 90, MULTIPROCESSORS),
            *(layout, True),
        )
        assert 0 < terms[STEP] <= cheapest(shape, batch, layout, block_m) * (1 + 1e-6)


def test_table_has_a_row_per_kernel_and_width():
    costs = columns.read_costs()
    for rows, most in zip(costs, columns.MOST_COLUMNS.values(), strict=True):
        assert len(rows) == (columns.THIN + most) // 32
        for row in rows:
            assert len(row) == len(_core.ring_terms((64, 64, 64, 1), (64, 32, 1, False), "NN", 132))
            assert all(math.isfinite(cost) and cost >= 0 for cost in row)


def test_terms_count_what_they_say():
    """Two tiles per multiprocessor, ten steps each, of 128 + 64 rows of 128 bytes."""
    m, n = 128 * MULTIPROCESSORS, 128
    found = _core.ring_terms((m, n, 640, 1), (128, 64, 1, False), "NT", MULTIPROCESSORS)
    call, tiles, steps, into, out, parts, sums, cluster, matrices, share, longer, result, far, *others = (
        found
    )
    assert (call, tiles, parts, sums, cluster, share) == (1, 2, 0, 0, 0, 1)
    assert steps == pytest.approx(2 * 10 / 10)
    assert into == pytest.approx(2 * 10 * (128 + 64) * 128 * 1e-6)
    assert out == pytest.approx(into)
    assert matrices == pytest.approx((m + n) * 10 * 128 * 1e-7)
    assert longer == out
    assert result == pytest.approx(m * n * 2 * 1e-7)
    assert far == pytest.approx(max(0, matrices + result - 3))
    assert others == [0, 0, 0, into]  # not swapped, no zeros, whole sectors; all multiprocessors


def test_split_counts_partial_sums():
    whole = _core.ring_terms((128, 64, 6400, 1), (128, 64, 1, False), "NT", MULTIPROCESSORS)
    split = _core.ring_terms((128, 64, 6400, 1), (128, 64, 10, False), "NT", MULTIPROCESSORS)
    assert (split[5], whole[5]) == (1, 0)
    assert split[2] == whole[2] / 10
    assert split[6] == pytest.approx(2 * 4 * 10 * 128 * 64 * 1e-5 / MULTIPROCESSORS)
    assert split[9] == pytest.approx(10 * whole[9])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_thin_tiles_are_of_the_larger_side(layout):
    """Of 16 rows or columns no more is copied than there is; clusters add the ranges."""
    of_columns = _core.ring_terms((640, 16, 1280, 1), (64, 8, 3, False), layout, MULTIPROCESSORS)
    swapped = {"NN": "TT", "TT": "NN"}.get(layout, layout)
    of_rows = _core.ring_terms((16, 640, 1280, 1), (64, 8, 3, True), swapped, MULTIPROCESSORS)
    assert of_columns == of_rows
    _, tiles, steps, into, _, parts, sums, cluster, *_ = of_columns
    assert (tiles, parts, sums, cluster) == (1, 0, 0, 1)
    assert steps == pytest.approx(7 / 10)
    of_b = 1.05 if layout[1] == "N" else 1  # rows of 32 bytes, which begin at sectors, not at lines
    assert into == pytest.approx(7 * (64 + 16 * of_b) * 128 * 1e-6)


@pytest.mark.parametrize("layout", ["", "XX", "nn"])
def test_unknown_layout(layout):
    with pytest.raises(ValueError, match="there is no layout"):
        _core.ring_terms((64, 64, 64, 1), (64, 32, 1, False), layout, MULTIPROCESSORS)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_width_gives_the_same_result(layout, rng, device):
    m, n, k = 72, 136, 200
    a = rng.standard_normal((m, k) if layout[0] == "N" else (k, m)).astype("f2")
    b = rng.standard_normal((k, n) if layout[1] == "N" else (n, k)).astype("f2")
    a, b = a if layout[0] == "N" else a.T, b if layout[1] == "N" else b.T
    results = {
        smemkern.gemm(
            a, b, variant="fp16", block_m=block_m, block_n=block_n, split=1, device=device
        ).tobytes()
        for block_m, most in columns.MOST_COLUMNS.items()
        for block_n in (32, 64, most)
    }
    assert len(results) == 1
    np.testing.assert_allclose(
        np.frombuffer(results.pop(), "f2").reshape(m, n).astype("f4"),
        a.astype("f4") @ b.astype("f4"),
        rtol=2e-3,
        atol=2e-2,
    )
