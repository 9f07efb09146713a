"""transpose against numpy.swapaxes, bit by bit."""

import itertools

import numpy as np
import pytest

import smemkern
from checks import assert_same_bits

ROWS = [pytest.param(row, id=row.name) for row in smemkern.variants("transpose")]
WIDTHS = {"b8": "u1", "b16": "u2", "b32": "u4", "b64": "u8", "b128": "V16"}
CASES = [
    pytest.param(row, bits, id=f"{row.name}-{bits}")
    for row in smemkern.variants("transpose")
    for bits in row.dtypes
]
SHAPES = [(1, 1), (1, 70), (70, 1), (3, 5), (31, 33), (32, 32), (64, 64), (65, 127), (128, 96)]


def random_bits(rng, shape, dtype):
    dtype = np.dtype(dtype)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


@pytest.mark.parametrize(("row", "bits"), CASES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_every_variant(row, bits, shape, device, rng):
    a = random_bits(rng, shape, WIDTHS[bits])
    result = smemkern.transpose(a, variant=row.name, device=device)
    assert result.flags.c_contiguous
    assert_same_bits(result, a.T)


@pytest.mark.parametrize(("row", "bits"), CASES)
def test_rows_apart_and_unaligned(row, bits, device, rng):
    a = random_bits(rng, (70, 90), WIDTHS[bits])[:, 1:78]
    assert_same_bits(smemkern.transpose(a, variant=row.name, device=device), a.T)


@pytest.mark.parametrize(("row", "bits"), CASES)
def test_batch(row, bits, device, rng):
    a = random_bits(rng, (3, 33, 18), WIDTHS[bits])
    assert_same_bits(smemkern.transpose(a, variant=row.name, device=device), a.swapaxes(1, 2))


# Around the sides of tiles, narrow, and larger than a tile in both directions.
MORE_SHAPES = [(47, 48), (48, 47), (63, 200), (71, 128), (131, 257), (256, 192), (300, 70)]
MORE_SHAPES += [(2, 1000), (1000, 3), (17, 700), (5000, 2), (1, 5000)]
ANY_STRIDES = [case for case in CASES if case.values[0].strides == "any"]


@pytest.mark.parametrize("shape", MORE_SHAPES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize(("row", "bits"), ANY_STRIDES)
def test_where_it_lies(row, bits, shape, device, rng):
    """Rows at any pitch and place, in steps, backwards, and columns in their place."""
    a = random_bits(rng, shape, WIDTHS[bits])
    for view in (a, a[1:, 1:], a[:, :-1], a.T, a[:, ::-1], a[::-2], a[::2, 1::3].T):
        assert_same_bits(smemkern.transpose(view, variant=row.name, device=device), view.T)


# More than there are little tiles for: chunks, odd sides, one tile a row, batches.
LARGE_SHAPES = [(1472, 1456), (1457, 1459), (63, 33_300), (33_301, 65), (5, 641, 659)]


@pytest.mark.parametrize("shape", LARGE_SHAPES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize(("row", "bits"), ANY_STRIDES)
def test_large_ones(row, bits, shape, device, rng):
    a = random_bits(rng, shape, WIDTHS[bits])
    for view in (a, a[..., 1:, 1:]):
        result = smemkern.transpose(view, variant=row.name, device=device)
        assert_same_bits(result, view.swapaxes(-1, -2))


# Rows 128 KiB apart: pairs of strips, and what is left of them; by chunks, by elements, and with
# large tiles.
CROWDED = [("b32", 64, 16500, ""), ("b64", 64, 8200, ""), ("b128", 64, 4100, "")]
CROWDED += [("b32", 264, 16501, "_aligned"), ("b64", 264, 8201, "_aligned")]
CROWDED += [("b32", 471, 16501, "_large"), ("b64", 471, 8200, "_large"), ("b128", 257, 8192, "")]


@pytest.mark.parametrize(("bits", "rows", "cols", "ending"), CROWDED)
def test_rows_that_crowd_the_memory(bits, rows, cols, ending, device, rng):
    pitch = (128 << 10) // np.dtype(WIDTHS[bits]).itemsize
    a = random_bits(rng, (rows, pitch), WIDTHS[bits])[:, :cols]
    [launch] = smemkern._core.plan("transpose", (a,), {"variant": "sector_aligned"})["launches"]
    assert launch["args"]["pairs"] > 0
    assert launch["entry"].endswith(ending)
    assert_same_bits(smemkern.transpose(a, variant="sector_aligned", device=device), a.T)


@pytest.mark.parametrize(
    "shape", [(3, 50, 60), (5, 64, 4), (2, 3, 4, 5), (300, 3, 3), (2, 60, 1, 55)]
)
@pytest.mark.parametrize(("row", "bits"), ANY_STRIDES)
def test_axes_in_any_order(row, bits, shape, device, rng):
    a = random_bits(rng, shape, WIDTHS[bits])
    for axes in itertools.permutations(range(a.ndim)):
        view = a.transpose(axes)
        result = smemkern.transpose(view, variant=row.name, device=device)
        assert_same_bits(result, view.swapaxes(-1, -2))


@pytest.mark.parametrize(
    "shape", [(1000, 3, 5), (300, 16, 16), (5000, 2, 2), (40, 1, 9), (7, 8, 33)]
)
@pytest.mark.parametrize(("row", "bits"), ANY_STRIDES)
def test_many_small_matrices(row, bits, shape, device, rng):
    a = random_bits(rng, shape, WIDTHS[bits])
    result = smemkern.transpose(a, variant=row.name, device=device)
    assert_same_bits(result, a.swapaxes(1, 2))
    repeated = np.broadcast_to(a[:1], shape)
    result = smemkern.transpose(repeated, variant=row.name, device=device)
    assert_same_bits(result, repeated.swapaxes(1, 2))


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)], ids=str)
@pytest.mark.parametrize("n", [1, 31, 32, 64, 65, 127, 200])
@pytest.mark.parametrize(("row", "bits"), CASES)
def test_square_in_place(row, bits, n, lead, device, rng):
    a = random_bits(rng, (*lead, n, n), WIDTHS[bits]).copy()
    want = a.swapaxes(-1, -2).copy()
    assert smemkern.transpose(a, out=a, variant=row.name, device=device) is a
    assert_same_bits(a, want)


@pytest.mark.parametrize("order", ["rows apart", "columns", "reversed"])
def test_views_in_place(order, device, rng):
    memory = rng.standard_normal((70, 90))
    views = {
        "rows apart": memory[:, 5:75],
        "columns": memory[:, :70].T,
        "reversed": memory[::-1, 70::-1],
    }
    a = views[order][:70, :70]
    want = a.T.copy()
    assert smemkern.transpose(a, out=a, variant="sector_aligned", device=device) is a
    assert_same_bits(a.copy(), want)


@pytest.mark.parametrize(
    ("bits", "n"),
    [(bits, n) for bits in ("b32", "b64", "b128") for n in (256, 1456)]
    + [("b32", 2511), ("b64", 1777), ("b128", 1457)],
)
def test_sectors_are_written_whole(bits, n, rng):
    """Each sector by one request, at any pitch, if the result is more than 24 MiB."""
    a = random_bits(rng, (n, n), WIDTHS[bits])
    trace = smemkern.trace("transpose", a, variant="sector_aligned", hazards=True)
    assert not trace.hazards
    written = sum(row.sectors for row in trace.global_ if row.op == "store")
    ends = np.arange(n + 1) * n * a.itemsize
    whole = int(np.sum(-(-ends[1:] // 32) - ends[:-1] // 32))
    assert written == whole


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (0, 3, 4), (2, 0, 4)])
def test_empty(row, shape, device):
    a = np.empty(shape, "f4")
    assert_same_bits(smemkern.transpose(a, variant=row.name, device=device), a.swapaxes(-1, -2))


LEGAL_SETS = [
    pytest.param(row, name, value, id=f"{row.name}-{name}{value}")
    for row in smemkern.variants("transpose")
    for name, param in row.params.items()
    for value in sorted({param.legal[0], param.legal[-1]})
]


@pytest.mark.parametrize(("row", "name", "value"), LEGAL_SETS)
def test_parameters(row, name, value, device, rng, nvrtc):
    a = random_bits(rng, (37, 75), "u4")
    try:
        result = smemkern.transpose(a, variant=row.name, device=device, **{name: value})
    except ValueError as error:
        assert name in str(error)
    else:
        assert_same_bits(result, a.T)


DTYPES = [
    "?",
    "i1",
    "S1",
    "f2",
    ">i2",
    "S2",
    "f4",
    ">f4",
    "U1",
    "f8",
    "c8",
    ">c8",
    "m8[s]",
    "M8[ns]",
    "S8",
    "c16",
    ">c16",
    "U4",
    [("x", "f4"), ("y", "i2"), ("z", "S2")],
    {"names": ["x"], "formats": ["u1"], "offsets": [2], "itemsize": 4},
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_dtype(dtype, device, rng):
    a = random_bits(rng, (21, 34), dtype)
    assert_same_bits(smemkern.transpose(a, device=device), a.T)
    assert_same_bits(smemkern.transpose(a[::-2, ::3], device=device), a[::-2, ::3].T)


def test_long_double(device, rng):
    a = rng.standard_normal((5, 6)).astype(np.longdouble)
    result = smemkern.transpose(a, device=device)
    assert result.dtype == a.dtype
    assert np.array_equal(result, a.T)


LAYOUTS = {
    "fortran": lambda x: np.asfortranarray(x),
    "reversed": lambda x: x[::-1, ::-1],
    "every other": lambda x: x[::2, ::2],
    "thin": lambda x: np.tile(x, (1, 30))[:, : x.shape[1]],
    "broadcast": lambda x: np.broadcast_to(x[0], x.shape),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "batch transposed": lambda x: np.stack([x, x + 1, x + 2]).transpose(2, 1, 0),
    "batch broadcast": lambda x: np.broadcast_to(x, (2, 3, *x.shape)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, device, rng):
    a = LAYOUTS[layout](rng.standard_normal((19, 23)))
    assert_same_bits(smemkern.transpose(a, device=device), a.swapaxes(-1, -2))


def test_list(device):
    assert_same_bits(
        smemkern.transpose([[1, 2, 3], [4, 5, 6]], device=device),
        np.array([[1, 4], [2, 5], [3, 6]]),
    )


def test_out_may_be_the_input(device, rng):
    a = rng.standard_normal((45, 45))
    before = a.copy()
    assert smemkern.transpose(a, out=a, device=device) is a
    assert_same_bits(a, before.T)


def test_out_of_any_stride(device, rng):
    a = rng.standard_normal((9, 7))
    memory = np.full((14, 18), 5.0)
    smemkern.transpose(a, out=memory[::-2, 1::2], device=device)
    assert_same_bits(memory[::-2, 1::2].copy(), a.T)
    assert np.all(memory[:, ::2] == 5)
    assert np.all(memory[::2] == 5)
