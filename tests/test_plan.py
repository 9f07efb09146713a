"""Launch planning, which is pure: shapes that no machine holds are planned without running.

An array of any shape and stride over one element of memory stands for what is too large to make;
the plan never reads it.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import smemkern


class phantom(NamedTuple):
    """An array of which only the first element exists. Strides are in elements; None: contiguous.

    It becomes an array only within plan(), since pytest prints the values of a test that fails.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    dtype: str = "f4"

    def array(self):
        shape, strides, dtype = self
        if strides is None:
            strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        itemsize = np.dtype(dtype).itemsize
        return as_strided(np.zeros(1, dtype), shape, [s * itemsize for s in strides])


def plan(op, *arrays, **kwargs):
    arrays = tuple(a.array() if isinstance(a, phantom) else a for a in arrays)
    return smemkern._core.plan(op, arrays, kwargs)


def only_launch(planned):
    [launch] = planned["launches"]
    return launch


def test_one_tile():
    planned = plan("gemm", phantom((5, 7)), phantom((7, 3)), variant="tiled", tile=16, alpha=2)
    assert planned["variant"] == "tiled"
    assert planned["entry"] == "gemm_tiled"
    assert planned["image"] == "gemm_tiled-float32-tile16-pad0"
    assert planned["shape"] == (5, 3)
    launch = only_launch(planned)
    assert launch["grid"] == (1, 1, 1)
    assert launch["block"] == (16, 16, 1)
    assert launch["args"] == {
        **dict.fromkeys(("A", "B", "C", "batch_a", "batch_b", "batch_c"), 0),
        **{"M": 5, "N": 3, "K": 7, "lda": 7, "ldb": 3, "ldc": 3, "alpha": 2.0, "beta": 0.0},
        **{"step_a": 1, "step_b": 1, "split": 1},
    }


def test_tiles_off_the_edge():
    launch = only_launch(plan("gemm", phantom((33, 7)), phantom((7, 65)), variant="tiled", tile=32))
    assert launch["grid"] == (2 * 3, 1, 1)


def test_rows_of_a_slice_are_not_copied():
    planned = plan("gemm", phantom((100, 60), (100, 1)), phantom((60, 8), (9, 1)), variant="tiled")
    args = only_launch(planned)["args"]
    assert (args["lda"], args["ldb"]) == (100, 9)
    assert planned["input_bytes"] == [4 * (99 * 100 + 60), 4 * (59 * 9 + 8)]


def test_more_than_2_31_elements():
    m, k = 70_000, 50_000
    planned = plan("gemm", phantom((m, k)), phantom((k, m)), variant="tiled", tile=32)
    launch = only_launch(planned)
    assert launch["grid"] == (math.ceil(m / 32) ** 2, 1, 1)
    assert planned["input_bytes"] == [4 * m * k] * 2
    assert (launch["args"]["lda"], launch["args"]["ldc"]) == (k, m)


def test_more_than_2_31_rows():
    planned = plan("gemm", phantom((2**33, 1)), phantom((1, 1)), variant="tiled")
    assert planned["shape"] == (2**33, 1)
    assert only_launch(planned)["grid"] == (2**33 // 32, 1, 1)


@pytest.mark.parametrize(
    ("shape_a", "shape_b"),
    [((2**32, 1), (1, 64)), ((2**31, 1), (1, 2**31)), ((2**40, 0), (0, 2**40))],
)
def test_more_tiles_than_a_grid_has(shape_a, shape_b):
    with pytest.raises(ValueError, match=r"2147483647 tiles of 4 x 4.*larger tile"):
        plan("gemm", phantom(shape_a), phantom(shape_b), variant="tiled", tile=4)


def test_batch_in_one_launch():
    launch = only_launch(plan("gemm", phantom((9, 4, 5)), phantom((9, 5, 6)), variant="tiled"))
    assert launch["grid"][2] == 9
    assert [launch["args"][f"batch_{x}"] for x in "abc"] == [20, 30, 24]


def test_batch_dimensions_fold():
    launch = only_launch(
        plan("gemm", phantom((2, 3, 4, 4, 5)), phantom((2, 3, 4, 5, 6)), variant="tiled")
    )
    assert launch["grid"][2] == 24
    assert [launch["args"][f"batch_{x}"] for x in "abc"] == [20, 30, 24]


def test_broadcast_operand_has_stride_0():
    launch = only_launch(plan("gemm", phantom((2, 3, 4, 5)), phantom((5, 6)), variant="tiled"))
    assert launch["grid"][2] == 6
    assert [launch["args"][f"batch_{x}"] for x in "abc"] == [20, 0, 24]


def test_batch_that_does_not_fold_is_several_launches():
    """a repeats along the first dimension, b along the second: the longer one is blockIdx.z."""
    planned = plan("gemm", phantom((1, 7, 4, 5)), phantom((3, 1, 5, 6)), variant="tiled")
    launches = planned["launches"]
    assert [launch["grid"][2] for launch in launches] == [7, 7, 7]
    assert [launch["args"]["A"] for launch in launches] == [0, 0, 0]
    assert [launch["args"]["B"] for launch in launches] == [0, 4 * 30, 4 * 60]
    assert [launch["args"]["C"] for launch in launches] == [0, 4 * 7 * 24, 4 * 14 * 24]
    assert [launches[0]["args"][f"batch_{x}"] for x in "abc"] == [20, 0, 24]


def test_batch_chunks():
    planned = plan("gemm", phantom((150_000, 4, 5)), phantom((5, 6)), variant="tiled")
    assert [launch["grid"][2] for launch in planned["launches"]] == [65535, 65535, 18930]
    assert [launch["args"]["A"] for launch in planned["launches"]] == [
        4 * 20 * 65535 * i for i in range(3)
    ]
    assert [launch["args"]["C"] for launch in planned["launches"]] == [
        4 * 24 * 65535 * i for i in range(3)
    ]


def test_chunks_of_every_outer_index():
    planned = plan("gemm", phantom((2, 1, 4, 5)), phantom((1, 70_000, 5, 6)), variant="tiled")
    got = [
        (x["grid"][2], x["args"]["A"], x["args"]["B"], x["args"]["C"]) for x in planned["launches"]
    ]
    second = 4 * 24 * 70_000
    assert got == [
        (65535, 0, 0, 0),
        (4465, 0, 4 * 30 * 65535, 4 * 24 * 65535),
        (65535, 80, 0, second),
        (4465, 80, 4 * 30 * 65535, second + 4 * 24 * 65535),
    ]


def test_reversed_batch_starts_at_the_last_matrix():
    a = np.zeros((5, 4, 6), np.float32)[::-1]
    args = only_launch(plan("gemm", a, phantom((6, 7)), variant="tiled"))["args"]
    assert args["A"] == 4 * 4 * 24
    assert args["batch_a"] == -24


@pytest.mark.parametrize(
    ("shape_a", "shape_b"),
    [((0, 4), (4, 5)), ((4, 4), (4, 0)), ((0, 4, 4), (4, 4)), ((7, 0, 4, 4), (4, 4))],
)
def test_nothing_to_compute_is_no_launch(shape_a, shape_b):
    assert plan("gemm", phantom(shape_a), phantom(shape_b))["launches"] == []


def test_no_inner_dimension_is_a_launch():
    assert only_launch(plan("gemm", phantom((4, 0)), phantom((0, 4))))["args"]["K"] == 0


def test_transpose():
    planned = plan("transpose", phantom((100, 33), (40, 1), "u2"), variant="tiled")
    assert planned["image"].startswith("transpose_tiled-b16")
    args = only_launch(planned)["args"]
    assert args == {
        **dict.fromkeys(("x", "y", "batch_x", "batch_y"), 0),
        **{"rows": 100, "cols": 33, "ldx": 40, "ldy": 100, "step_x": 1, "step_y": 1},
        **dict.fromkeys(("batches", "matrices", "lead", "pairs"), 0),
        **{"log_tile": (0, 0), "copy": False, "boxes": False},
    }


def test_transpose_batches():
    planned = plan("transpose", phantom((2, 70_000, 3, 5), (15, 30, 5, 1)), variant="tiled")
    assert planned["shape"] == (2, 70_000, 5, 3)
    got = [(x["grid"][2], x["args"]["x"], x["args"]["y"]) for x in planned["launches"]]
    assert got == [
        (65535, 0, 0),
        (4465, 4 * 30 * 65535, 4 * 15 * 65535),
        (65535, 4 * 15, 4 * 15 * 70_000),
        (4465, 4 * (15 + 30 * 65535), 4 * 15 * (70_000 + 65535)),
    ]


def test_transpose_of_more_than_2_31_elements():
    planned = plan("transpose", phantom((60_000, 60_000)))
    assert planned["input_bytes"] == [4 * 60_000**2]


@pytest.mark.parametrize(
    ("row", "dtype"),
    [
        pytest.param(row, dtype, id=f"{row.name}-{dtype}")
        for row in smemkern.variants("gemm")
        for dtype in row.dtypes
    ],
)
def test_every_tile_of_the_result_has_a_block(row, dtype):
    """The row's own kernel is the last of its launches."""
    one = plan(
        "gemm", phantom((1, 9), dtype=dtype), phantom((9, 1), dtype=dtype), variant=row.name
    )["launches"][-1]
    assert one["grid"] == (1, 1, 1)
    assert 1 <= math.prod(one["block"]) <= 1024
    assert one["shared_bytes"] <= 227 * 1024
    many = plan(
        "gemm", phantom((1000, 9), dtype=dtype), phantom((9, 999), dtype=dtype), variant=row.name
    )["launches"][-1]
    assert many["grid"][0] > 1


def test_a_panel_is_as_long_as_k():
    """Of K, or of a part of it, up to panel_k; never less than the sums that meet there."""

    def shared_bytes(k, **options):
        a, b = np.ones((16, k), "f4"), np.ones((k, 32), "f4")
        options = {"variant": "sliced_k", "split": 1, **options}
        return smemkern._core.plan("gemm", (a, b), options)["launches"][0]["shared_bytes"]

    line, sums = 4 * (16 + 32), 4 * 4 * 16 * 32
    assert shared_bytes(1) == max(64 * line, sums)
    assert shared_bytes(65) == 128 * line
    assert shared_bytes(256) == shared_bytes(1 << 16) == 256 * line
    assert shared_bytes(512, split=4) == 128 * line
