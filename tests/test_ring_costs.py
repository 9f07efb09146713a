"""The planner of tiles with any number of columns: it finds the cheapest by its table."""

import itertools
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
NAMES = (
    *("call", "tiles", "steps", "bytes in", "bytes out", "parts", "sums", "cluster", "operands"),
    *("share", "longer", "result", "far", "swapped", "zeros", "odd", "busy", "odd result"),
)
PACKING = ("call", "short lines", "lines", "line bytes", "tiles", "tile bytes")


def cheapest(itemsize, shape, batch, layout, block_m):
    """Microseconds of the cheapest tile of Python's list, without numbers of ranges of which fewer
    would be as long: the planner leaves these out."""
    steps = math.ceil(shape[2] * itemsize / 128)
    return min(
        columns.expected(itemsize, batch, shape, layout, tile, MULTIPROCESSORS)
        for tile in columns.tiles(itemsize, batch, shape, MULTIPROCESSORS)
        if tile[0] == block_m and tile[2] == math.ceil(steps / math.ceil(steps / tile[2]))
    )


def terms_of(sizes, tile, layout, itemsize=2, multicast=1, multicast_a=1):
    tile = (*tile, multicast, multicast_a)
    found, *_ = _core.ring_facts(sizes, tile, layout, MULTIPROCESSORS, itemsize, True)
    return dict(zip(NAMES, found, strict=True))


def packing_of(sizes, layout, itemsize, swapped=False, aligned=True):
    tile = (64, 64, 1, swapped, 1, 1)
    _, found, _ = _core.ring_facts(sizes, tile, layout, MULTIPROCESSORS, itemsize, aligned)
    return dict(zip(PACKING, found, strict=True))


@pytest.mark.parametrize(("itemsize", "block_m"), columns.MOST_COLUMNS)
def test_planner_finds_the_cheapest(itemsize, block_m, draw):
    name, dtype, accuracy = {
        2: ("fp16", "float16", "float32"),
        4: ("tf32", "float32", "tf32"),
    }[itemsize]
    rows = [
        row
        for row in cost_model.read(cost_model.PACKAGED)
        if row.variant == name and row.alignment == 16 and row.params.get("block_m", 128) == block_m
    ]
    assert len(rows) == 1
    for _ in range(25):
        batch, shape, layout = columns.draw(draw)
        [(_, _, terms)] = _core.predict(
            *(rows, "gemm", dtype, accuracy, (*shape, batch), 90, MULTIPROCESSORS),
            *(layout, 16),
        )
        best = cheapest(itemsize, shape, batch, layout, block_m)
        assert 0 < terms[STEP] <= best * (1 + 1e-6)


@pytest.mark.parametrize(("tiles", "load"), [(1, 0), (66, 0), (67, 1), (132, 1), (133, 2)])
def test_load_of_the_device(tiles, load):
    sizes, tile = (128 * tiles, 64, 64, 1), (128, 64, 1, False, 1, 1)
    assert _core.ring_facts(sizes, tile, "NT", MULTIPROCESSORS, 2, True)[2] == load


def test_table_has_a_row_per_kernel_cluster_load_and_width():
    costs = columns.read_costs()
    for tables, (kernel, most) in zip(costs, columns.MOST_COLUMNS.items(), strict=True):
        assert len(tables) == len(columns.SIZES)
        assert {len(loads) for loads in tables} == {columns.LOADS}
        for rows in itertools.chain(*tables):
            assert len(rows) == columns.THIN // 32 + most // columns.STEP_COLUMNS[kernel[0]]
            for row in rows:
                assert len(row) == len(NAMES)
                assert all(math.isfinite(cost) and cost >= 0 for cost in row)


@pytest.mark.parametrize("itemsize", [2, 4])
def test_terms_count_what_they_say(itemsize):
    """Two tiles per multiprocessor, ten steps each, of 128 + 64 rows of 128 bytes."""
    m, n, k = 128 * MULTIPROCESSORS, 128, 1280 // itemsize
    found = terms_of((m, n, k, 1), (128, 64, 1, False), "NT", itemsize)
    copied = 2 * 10 * (128 + 64) * 128 * 1e-6
    result, operands = m * n * itemsize * 1e-7, (m + n) * 10 * 128 * 1e-7
    assert found == pytest.approx(
        {
            **dict.fromkeys(NAMES, 0),
            **{"call": 1, "tiles": 2, "steps": 2 * 10 / 10, "share": 1},
            **dict.fromkeys(["bytes in", "bytes out", "longer", "busy"], copied),
            **{"operands": operands, "result": result, "far": max(0, operands + result - 3)},
        }
    )


def test_split_counts_partial_sums():
    whole = terms_of((128, 64, 6400, 1), (128, 64, 1, False), "NT")
    split = terms_of((128, 64, 6400, 1), (128, 64, 10, False), "NT")
    assert (split["parts"], whole["parts"]) == (1, 0)
    assert split["steps"] == whole["steps"] / 10
    assert split["sums"] == pytest.approx(2 * 4 * 10 * 128 * 64 * 1e-5 / MULTIPROCESSORS)
    assert split["share"] == pytest.approx(10 * whole["share"])


def test_blocks_that_share_tiles_read_them_once():
    """40 x 2 tiles: L2 sends B's columns 40 times, or 10. Of 41 rows of tiles three are empty."""
    for rows, tiles in ((40, 40), (41, 44)):
        alone = terms_of((128 * rows, 256, 640, 1), (128, 128, 1, False), "NT")
        shared = terms_of((128 * rows, 256, 640, 1), (128, 128, 1, False), "NT", multicast=4)
        a, b = tiles * 2 * 10 * 128 * 128, tiles / 4 * 10 * 256 * 128
        assert shared["bytes out"] == pytest.approx((a + b) * 1e-6 / MULTIPROCESSORS)
        assert shared["bytes in"] == alone["bytes in"]
        assert shared["share"] == pytest.approx(tiles * 2 / MULTIPROCESSORS)


def test_blocks_side_by_side_read_the_first_operand_once():
    """2 x 40 tiles, in clusters of 2 x 4: L2 sends A's rows 40 times, or 10, and B's once, not
    twice."""
    alone = terms_of((256, 128 * 40, 640, 1), (128, 128, 1, False), "NT")
    shared = terms_of(
        (256, 128 * 40, 640, 1), (128, 128, 1, False), "NT", multicast=2, multicast_a=4
    )
    a, b = 10 * 10 * 256 * 128, 10 * 40 * 128 * 128
    assert shared["bytes out"] == pytest.approx((a + b) * 1e-6 / MULTIPROCESSORS)
    assert alone["bytes out"] == pytest.approx((4 * a + 2 * b) * 1e-6 / MULTIPROCESSORS)
    assert shared["share"] == alone["share"]


def test_clusters_of_four_leave_multiprocessors_idle():
    """30 of them run at once: 124 tiles are two waves, and 120 one."""
    for rows, waves in ((120, 1), (124, 2)):
        found = terms_of((128 * rows, 64, 640, 1), (128, 64, 1, False), "NT", multicast=4)
        assert found["tiles"] == waves


def test_zeros_and_rows_at_odd_multiples_of_16_bytes():
    found = terms_of((72, 40, 648, 1), (128, 64, 1, False), "NT")
    steps = 11
    assert found["zeros"] == pytest.approx(steps * (128 - 72 + 64 - 40) * 128 * 1e-6)
    assert found["odd"] == pytest.approx(steps * (72 + 40) * 128 * 1e-6)
    assert found["odd result"] == found["result"]  # a row of C has 80 bytes


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tf32_operand_that_is_not_k_major_is_packed(layout):
    """The second one: B, or of the transposes A."""
    for swapped, operand, packed in ((False, 72, layout[1] == "N"), (True, 40, layout[0] == "T")):
        found = packing_of((40, 72, 320, 1), layout, 4, swapped)
        assert found["call"] == packed
        assert found["tiles"] == pytest.approx(packed * -(-operand // 64) * 5 * 1e-3)
        assert found["tile bytes"] == pytest.approx(packed * operand * 320 * 4 * 1e-6)
    assert packing_of((40, 72, 320, 1), layout, 2, True)["call"] == 0


def test_packing_counts_lines_and_tiles():
    """Of odd rows: lines along K, or along 64 or more rows; else tiles. Others stay in place."""
    none = dict.fromkeys(PACKING, 0)
    for sizes, layout, counted in (
        ((500, 64, 101, 3), "NN", {"short lines": 1.5, "line bytes": 0.303}),
        ((500, 64, 201, 3), "NN", {"lines": 1.5, "line bytes": 0.603}),
        ((505, 64, 200, 3), "TN", {"lines": 0.6, "line bytes": 0.606}),
        ((33, 64, 200, 3), "TN", {"tiles": 0.012, "tile bytes": 0.0396}),
    ):
        assert packing_of(sizes, layout, 2, aligned=False) == pytest.approx(
            {**none, "call": 1, **counted}
        )
    views = packing_of((64, 64, 200, 1), "NT", 2, aligned=False)  # sizes do not say which
    assert views["lines"] == pytest.approx(0.128)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_thin_tiles_are_of_the_larger_side(layout):
    """Of 16 rows or columns no more is copied than there is; clusters add the ranges."""
    of_columns = terms_of((640, 16, 1280, 1), (64, 8, 3, False), layout)
    swapped = {"NN": "TT", "TT": "NN"}.get(layout, layout)
    assert of_columns == terms_of((16, 640, 1280, 1), (64, 8, 3, True), swapped)
    assert [of_columns[name] for name in ("tiles", "parts", "sums", "cluster")] == [1, 0, 0, 1]
    assert of_columns["steps"] == pytest.approx(7 / 10)
    of_b = 1.05 if layout[1] == "N" else 1  # rows of 32 bytes, which begin at sectors, not at lines
    assert of_columns["bytes in"] == pytest.approx(7 * (64 + 16 * of_b) * 128 * 1e-6)


@pytest.mark.parametrize("layout", ["", "XX", "nn"])
def test_unknown_layout(layout):
    with pytest.raises(ValueError, match="there is no layout"):
        terms_of((64, 64, 64, 1), (64, 32, 1, False), layout)


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
        for (itemsize, block_m), most in columns.MOST_COLUMNS.items()
        if itemsize == 2
        for block_n in (32, 64, most)
    }
    assert len(results) == 1
    np.testing.assert_allclose(
        np.frombuffer(results.pop(), "f2").reshape(m, n).astype("f4"),
        a.astype("f4") @ b.astype("f4"),
        rtol=2e-3,
        atol=2e-2,
    )
