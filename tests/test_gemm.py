"""gemm against numpy.matmul: every variant, every dtype, shapes that do not fit the tiles."""

import numpy as np
import pytest

import smemkern
from checks import assert_gemm, random_matrix

ROWS = [pytest.param(row, id=row.name) for row in smemkern.variants("gemm")]
CASES = [
    pytest.param(row, dtype, id=f"{row.name}-{dtype}")
    for row in smemkern.variants("gemm")
    for dtype in row.dtypes
]
SHAPES = [  # M, N, K
    (1, 1, 1),
    (1, 130, 33),
    (130, 1, 33),
    (3, 5, 257),
    (17, 19, 23),
    (31, 33, 65),
    (64, 64, 64),
    (64, 68, 36),
    (127, 131, 67),
    (128, 128, 32),
    (129, 65, 31),
]


@pytest.mark.parametrize(("row", "dtype"), CASES)
@pytest.mark.parametrize("shape", [(150, 270, 70), (152, 272, 72), (24, 300, 80), (300, 24, 80)])
@pytest.mark.parametrize("layout", ["NN", "TT"])
def test_a_block_reads_no_other_tiles_of_the_result(row, dtype, shape, layout, rng):
    """With beta: what it adds to is its own, since others write theirs at any time."""
    m, n, k = shape
    a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
    a, b = (np.asfortranarray(x) if c == "T" else x for x, c in zip((a, b), layout, strict=True))
    c = random_matrix(rng, (m, n), dtype)
    trace = smemkern.trace("gemm", a, b, variant=row.name, out=c.copy(), alpha=2, beta=-0.5)
    assert trace.hazards == ()
    assert_gemm(trace.result, a, b, alpha=2, beta=-0.5, c=c, row=row)


@pytest.mark.parametrize(("row", "dtype"), CASES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_every_variant(row, dtype, shape, device, rng):
    m, n, k = shape
    a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
    before = a.copy(), b.copy()
    result = smemkern.gemm(a, b, variant=row.name, device=device)
    assert_gemm(result, a, b, row=row)
    assert result.flags.c_contiguous
    assert np.array_equal(a, before[0])
    assert np.array_equal(b, before[1])


@pytest.mark.parametrize(("row", "dtype"), CASES)
@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (0, 0, 0), (0, 4, 0), (5, 4, 0)])
def test_empty(row, dtype, shape, device):
    m, n, k = shape
    a, b = np.ones((m, k), dtype), np.ones((k, n), dtype)
    result = smemkern.gemm(a, b, variant=row.name, device=device)
    assert result.shape == (m, n)
    assert np.all(result == 0)
    out = np.full((m, n), 3, dtype)
    assert smemkern.gemm(a, b, out=out, beta=2, variant=row.name, device=device) is out
    assert np.all(out == (6 if k == 0 else out))


@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_alpha_and_beta(row, dtype, device, rng):
    a, b = random_matrix(rng, (33, 45), dtype), random_matrix(rng, (45, 70), dtype)
    c = random_matrix(rng, (33, 70), dtype)
    out = c.copy()
    result = smemkern.gemm(a, b, out=out, alpha=-1.5, beta=0.25, variant=row.name, device=device)
    assert result is out
    assert_gemm(out, a, b, -1.5, 0.25, c, row=row)


@pytest.mark.parametrize("beta", [0.0, 1e-50, 5e-324])
@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_beta_zero_does_not_read_out(row, dtype, beta, device, rng):
    """Zero in the matrices' own precision: 1e-50 is none in float64, and NaN goes through."""
    a, b = random_matrix(rng, (20, 30), dtype), random_matrix(rng, (30, 70), dtype)
    out = np.full((20, 70), np.nan, dtype)
    smemkern.gemm(a, b, out=out, beta=beta, variant=row.name, device=device)
    if np.dtype(dtype).type(beta) != 0:
        assert np.isnan(out).all()
        return
    assert_gemm(out, a, b, row=row)


@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_nan_and_infinity_go_through(row, dtype, device, rng):
    a, b = random_matrix(rng, (70, 40), dtype), random_matrix(rng, (40, 70), dtype)
    a[3, 5], a[10, 0], b[7, 66] = np.nan, np.inf, -np.inf
    result = smemkern.gemm(a, b, variant=row.name, device=device)
    with np.errstate(invalid="ignore"):
        expected = a @ b
    for test in (np.isnan, np.isposinf, np.isneginf):
        assert np.array_equal(test(result), test(expected))


@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_rows_apart_and_unaligned(row, dtype, device, rng):
    """Slices of wider arrays are read in place, where no 16-byte access is aligned."""
    a = random_matrix(rng, (67, 50), dtype)[:, 3:40]
    b = random_matrix(rng, (37, 91), dtype)[:, 1:78]
    assert_gemm(smemkern.gemm(a, b, variant=row.name, device=device), a, b, row=row)


@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_batch(row, dtype, device, rng):
    a, b = random_matrix(rng, (3, 18, 20), dtype), random_matrix(rng, (3, 20, 35), dtype)
    assert_gemm(smemkern.gemm(a, b, variant=row.name, device=device), a, b, row=row)


LEGAL_SETS = [
    pytest.param(row, name, value, id=f"{row.name}-{name}{value}")
    for row in smemkern.variants("gemm")
    for name, param in row.params.items()
    for value in sorted({param.legal[0], param.legal[-1]})
]


@pytest.mark.parametrize(("row", "name", "value"), LEGAL_SETS)
def test_parameters(row, name, value, device, rng, nvrtc):
    """Both ends of every range, compiled where the build did not."""
    dtype = row.dtypes[-1]
    a, b = random_matrix(rng, (37, 41), dtype), random_matrix(rng, (41, 75), dtype)
    try:
        result = smemkern.gemm(a, b, variant=row.name, device=device, **{name: value})
    except ValueError as error:
        assert name in str(error)  # it does not go with the others' defaults
    else:
        assert_gemm(result, a, b, row=row)


STRIDED = [  # how one of the operands lies
    pytest.param(lambda x: x, id="rows"),
    pytest.param(lambda x: np.ascontiguousarray(x.T).T, id="columns"),
    pytest.param(lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1], id="backwards"),
    pytest.param(lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3], id="apart"),
]


@pytest.mark.parametrize("shape", [(96, 136, 72), (65, 131, 67)], ids=["whole", "odd"])
@pytest.mark.parametrize("of_b", STRIDED)
@pytest.mark.parametrize("of_a", STRIDED)
@pytest.mark.parametrize(("row", "dtype"), [c for c in CASES if c.values[0].strides != "rows"])
def test_any_strides(row, dtype, of_a, of_b, shape, device, rng):
    """Where the kernel reads views as they are, it has to read them rightly; batches too."""
    m, n, k = shape
    a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
    result = smemkern.gemm(of_a(a), of_b(b), variant=row.name, device=device)
    assert_gemm(result, a, b, row=row)


@pytest.mark.parametrize(("row", "dtype"), [c for c in CASES if c.values[0].min_sm >= 90])
def test_more_tiles_than_multiprocessors(row, dtype, device, rng):
    """Blocks that stay go from tile to tile, their ring with them."""
    m = 128 * 135 + 3
    a, b = random_matrix(rng, (m, 70), dtype), random_matrix(rng, (70, 24), dtype)
    result = smemkern.gemm(a, b, variant=row.name, device=device)
    assert_gemm(result, a, b, row=row)


# ---- shapes and strides: the same code for all variants


LAYOUTS = {
    "plain": lambda x: x,
    "fortran": lambda x: np.asfortranarray(x),
    "reversed rows": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "reversed columns": lambda x: np.ascontiguousarray(x[:, ::-1])[:, ::-1],
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every third column": lambda x: np.repeat(x, 3, axis=1)[:, ::3],
    "thin slice of a wide array": lambda x: np.tile(x, (1, 40))[:, : x.shape[1]],
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "unaligned": lambda x: unaligned(x),
    "list": lambda x: x.tolist(),
    "matrix": lambda x: np.matrix(x),
    "broadcast rows": lambda x: np.broadcast_to(x[0], x.shape),
    "broadcast columns": lambda x: np.broadcast_to(x[:, :1], x.shape),
}


def unaligned(x):
    memory = np.empty(x.nbytes + 1, np.uint8)
    view = memory[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    assert not view.flags.aligned
    return view


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("layout_b", LAYOUTS)
@pytest.mark.parametrize("layout_a", LAYOUTS)
def test_layouts(layout_a, layout_b, device, rng):
    a = LAYOUTS[layout_a](rng.standard_normal((13, 21)))
    b = LAYOUTS[layout_b](rng.standard_normal((21, 18)))
    for array in (a, b):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    result = smemkern.gemm(a, b, device=device)
    assert type(result) is np.ndarray
    assert_gemm(result, np.asarray(a), np.asarray(b))


SIGNATURES = [
    ((5,), (5,)),
    ((5,), (5, 3)),
    ((4, 5), (5,)),
    ((0,), (0,)),
    ((0,), (0, 3)),
    ((5,), (2, 5, 3)),
    ((2, 4, 5), (5,)),
    ((2, 4, 5), (5, 3)),
    ((4, 5), (2, 5, 3)),
    ((2, 4, 5), (2, 5, 3)),
    ((1, 4, 5), (2, 5, 3)),
    ((2, 1, 4, 5), (3, 5, 6)),
    ((2, 1, 4, 5), (1, 3, 5, 6)),
    ((2, 3, 4, 5), (2, 3, 5, 6)),
    ((0, 4, 5), (5, 6)),
    ((0, 4, 5), (1, 5, 6)),
    ((2, 0, 4, 5), (1, 5, 6)),
    ((2, 3, 4, 0), (0, 6)),
    ((1,) * 30 + (4, 5), (5, 6)),
]


@pytest.mark.parametrize(("shape_a", "shape_b"), SIGNATURES)
def test_shapes_as_matmul(shape_a, shape_b, device, rng):
    a, b = rng.standard_normal(shape_a), rng.standard_normal(shape_b)
    result = smemkern.gemm(a, b, device=device)
    assert type(result) is type(np.matmul(a, b))
    assert_gemm(result, a, b)


def strided_batches(rng):
    whole = rng.standard_normal((4, 6, 7, 9))
    return {
        "every other": whole[::2, ::3],
        "reversed": whole[::-1, ::-1],
        "transposed": whole.transpose(1, 0, 2, 3),
        "fortran": np.asfortranarray(whole),
        "inner broadcast": np.broadcast_to(whole[:, :1], whole.shape),
        "outer broadcast": np.broadcast_to(whole[:1], whole.shape),
        "all broadcast": np.broadcast_to(whole[0, 0], whole.shape),
        "broadcast and packed": np.broadcast_to(whole[:, :1, :, ::-1], whole.shape),
        "matrices at the wrong end": whole.transpose(2, 3, 0, 1),
    }


@pytest.mark.parametrize("name", strided_batches(np.random.default_rng(0)))
def test_strided_batches(name, device, rng):
    a = strided_batches(rng)[name]
    k = a.shape[-1]
    for b in (rng.standard_normal((k, 8)), rng.standard_normal((a.shape[1], k, 8))):
        assert_gemm(smemkern.gemm(a, b, device=device), a, b)
    c = a.swapaxes(-1, -2)
    assert_gemm(smemkern.gemm(a, c, device=device), a, c)


def test_more_matrices_than_a_grid_is_deep(device, rng):
    a, b = rng.standard_normal((65537, 1, 1)), rng.standard_normal((65537, 1, 1))
    assert_gemm(smemkern.gemm(a, b, variant="naive", device=device), a, b)


@pytest.mark.parametrize("dtypes", [("f4", "f8"), ("f8", "f4"), (">f4", "f4"), (">f8", ">f4")])
def test_promotion_as_result_type(dtypes, device, rng):
    a = rng.standard_normal((6, 7)).astype(dtypes[0])
    b = rng.standard_normal((7, 8)).astype(dtypes[1])
    assert_gemm(smemkern.gemm(a, b, device=device), a, b)


# ---- out


@pytest.mark.parametrize("operand", ["a", "b"])
def test_out_may_be_an_input(operand, device, rng):
    a, b = rng.standard_normal((40, 40)), rng.standard_normal((40, 40))
    before = {"a": a.copy(), "b": b.copy()}
    out = {"a": a, "b": b}[operand]
    assert smemkern.gemm(a, b, out=out, device=device) is out
    assert_gemm(out, before["a"], before["b"])


def test_out_may_overlap_an_input(device, rng):
    memory = rng.standard_normal((60, 30))
    a, b, out = memory[:30], rng.standard_normal((30, 30)), memory[15:45]
    before = memory.copy()
    smemkern.gemm(a, b, out=out, alpha=2, beta=-1, device=device)
    assert_gemm(out, before[:30], b, 2, -1, before[15:45])
    assert np.array_equal(memory[:15], before[:15])
    assert np.array_equal(memory[45:], before[45:])


def test_out_of_any_stride(device, rng):
    a, b = rng.standard_normal((9, 8)), rng.standard_normal((8, 7))
    memory = np.full((18, 14), 5.0)
    smemkern.gemm(a, b, out=memory[::-2, 1::2], device=device)
    assert_gemm(memory[::-2, 1::2].copy(), a, b)
    assert np.all(memory[:, ::2] == 5)
    assert np.all(memory[::2] == 5)


@pytest.mark.parametrize("beta", [0, 0.5])
@pytest.mark.parametrize("dtype", ["f2", "f8", ">f4", "bfloat16", "c8", "O", "i4", "?"])
def test_out_is_cast_as_by_matmul(dtype, beta, device, rng):
    a, b = rng.standard_normal((13, 8), np.float32), rng.standard_normal((8, 11), np.float32)
    out, expected = np.full((13, 11), 2, dtype), np.full((13, 11), 2, dtype)
    product = smemkern.gemm(a, b, device=device, out=np.full((13, 11), 2, np.float32), beta=beta)
    try:
        np.matmul(a, b, out=expected)
        possible = beta == 0 or np.can_cast(out.dtype, np.float32, "same_kind")
    except TypeError:
        possible = False
    if possible:
        assert smemkern.gemm(a, b, out=out, beta=beta, device=device) is out
        assert np.array_equal(out, product.astype(dtype))
    else:
        with pytest.raises(TypeError, match=f"out has dtype {out.dtype}, the result has float32"):
            smemkern.gemm(a, b, out=out, beta=beta, device=device)
        assert np.array_equal(out, np.full((13, 11), 2, dtype))


def test_out_of_no_dimensions(device):
    out = np.array(4.0)
    assert smemkern.gemm([1.0, 2.0], [3.0, 4.0], out=out, beta=0.5, device=device) is out
    assert out == 13


def test_out_keeps_its_class(device):
    class Mine(np.ndarray):
        pass

    out = np.zeros((2, 2)).view(Mine)
    assert smemkern.gemm(np.eye(2), np.eye(2), out=out, device=device) is out
    assert np.array_equal(out, np.eye(2))
