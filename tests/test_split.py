"""K cut into parts by the rows that can: the same product, whatever the number of parts."""

import itertools

import numpy as np
import pytest

import smemkern
from checks import SKINNY, assert_gemm, assert_same_bits, random_matrix

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


SPLITS = [1, 2, 3, 7]


@EACH
@pytest.mark.parametrize(("m", "n", "k"), [(64, 48, 512), (65, 130, 515), (1, 1, 999), (3, 5, 40)])
def test_parts(row, dtype, m, n, k, device, rng, draw):
    """Also of a K that has fewer steps than that."""
    a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
    for split in SPLITS if device == "cuda" else draw.sample(SPLITS, 1):
        result = smemkern.gemm(a, b, variant=row.name, split=split, device=device)
        assert_gemm(result, a, b, row=row)
        again = smemkern.gemm(a, b, variant=row.name, split=split, device=device)
        assert_same_bits(again, result)


@EACH
def test_many_parts(row, dtype, device, rng, draw):
    """Several threads share them."""
    split = draw.choice([8, 19, 50])
    k = 64 * split
    a, b = random_matrix(rng, (17, k), dtype), random_matrix(rng, (k, 23), dtype)
    result = smemkern.gemm(a, b, variant=row.name, split=split, device=device)
    assert_gemm(result, a, b, row=row)
    if split == 50:
        trace = smemkern.trace("gemm", a, b, variant=row.name, split=split)
        assert len(trace.hazards) == 0
        assert_same_bits(
            trace.result, smemkern.gemm(a, b, variant=row.name, split=split, device="emu")
        )


@EACH
@pytest.mark.parametrize("of_a", ["C", "F", "odd"])
def test_layouts(row, dtype, of_a, device, rng, draw):
    of_b = draw.choice(["C", "F", "odd"])
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


def planned(row, m, n, k, batch=(), **params):
    """Of arrays of which only the first element exists."""
    dtype = np.dtype(row.dtypes[0])
    one = np.zeros(1, dtype)

    def matrix(*shape):
        size = dtype.itemsize
        strides = (*(0 for _ in shape[2:]), shape[-1] * size, size)
        return np.lib.stride_tricks.as_strided(one, shape, strides)

    arrays = matrix(*batch, m, k), matrix(k, n)
    return smemkern._core.plan("gemm", arrays, {"variant": row.name, **params})


def parts(row, *shape, **params):
    return planned(row, *shape, **params)["launches"][-1]["args"]["split"]


def step(row):
    """K of a step: 128 bytes of what the tensor core reads."""
    return 64 if "16" in row.name else 16 if row.name == "fp64" else 32


MULTIPROCESSORS = 132  # the emulator's, an H200's
# Rows that wait for memory count otherwise: test_skinny.py, test_gemv.py.
ROW = pytest.mark.parametrize(
    "row", [row for row in ROWS if row.name not in SKINNY], ids=lambda row: row.name
)


@ROW
def test_few_tiles_and_long_k_fill_the_machine(row):
    shared = {"mma_fp16": 2, "mma_bf16": 2, "sliced_k": 3}.get(row.name, 1)  # blocks of 128 threads
    least = 1 if row.name == "sliced_k" else shared  # whose tiles are a quarter as large
    waves = 2 if "multicast" in row.params else 1  # of fitted times the least may be that of two
    assert 100 * shared <= parts(row, 16, 16, 1 << 20) <= MULTIPROCESSORS * shared * waves
    assert 25 * least <= parts(row, 64, 64, 1 << 20) <= MULTIPROCESSORS * shared * waves


@ROW
def test_tiles_that_fill_the_machine_are_whole(row):
    """132 tiles of up to 256 x 256, or many; one small tile is not worth a launch."""
    assert parts(row, 12 * 256, 11 * 256, 4096) == 1
    assert parts(row, 8192, 8192, 65536) == 1
    assert parts(row, 8, 8, step(row)) == 1


@ROW
def test_a_part_has_a_step(row):
    for k in (0, 1, step(row), 5 * step(row) + 1):
        steps = -(-k // step(row))
        assert parts(row, 8, 8, k, split=1000) == max(steps, 1)
        assert parts(row, 8, 8, k) <= max(steps, 1)


@ROW
def test_more_work_never_has_fewer_parts(row):
    """But of fitted times, of tiles with any number of columns, the least may be that of somewhat
    fewer and longer parts."""
    found = [parts(row, 128, 128, 1 << e) for e in range(4, 24)]
    fewer = 0.75 if "multicast" in row.params else 1
    assert all(now >= fewer * before for before, now in itertools.pairwise(found))
    assert found[0] == 1


def test_parts_as_they_were_measured_to_be_best():
    """On an H200, 64 x 64 tiles: more where blocks wait for elements that come one by one. The
    measurements had two launches for all, except of 256 x 256 x 2048: 6 parts in clusters take as
    long as 16."""
    [row] = [row for row in ROWS if row.name == "mma_tf32x3"]
    small = {"block_m": 64, "block_n": 64, "warp_m": 32}
    best = {
        **{(33, 4096, 511): [4], (63, 4095, 511): [2, 4, 6], (64, 4096, 512): [2, 4, 6]},
        **{(128, 2048, 256): [1, 2], (512, 512, 4096): [4, 5, 6, 8], (509, 511, 4095): [4, 5, 6]},
        **{(777, 888, 999): [2], (1024, 1024, 1024): [1], (2048, 300, 1000): [2, 3, 4]},
        **{(64, 64, 16384): range(64, 133), (256, 256, 2048): [6, 8, *range(9, 25)]},
    }
    found = {shape: parts(row, *shape, **small) for shape in best}
    assert {shape: n for shape, n in found.items() if n not in best[shape]} == {}


@ROW
def test_batches_are_tiles(row):
    one, many = parts(row, 32, 32, 1 << 16), parts(row, 32, 32, 1 << 16, batch=(33,))
    assert 2 <= many <= one // 8
    assert parts(row, 32, 32, 1 << 16, batch=(264,)) == 1


@ROW
def test_what_parts_add_to_a_plan(row):
    """Room for the sums, in rows of whole 16 bytes, and a launch that adds them up."""
    tile = (
        {"swapped": 1, "multicast": 1, "multicast_a": 1, "block_n": 96}
        if "multicast" in row.params
        else {}
    )
    split = 9 if tile else 3  # more than a cluster adds
    whole, cut = (planned(row, 100, 71, 4096, batch=(5,), split=n, **tile) for n in (1, split))
    sum_bytes = 8 if row.dtypes[0] == "float64" else 4
    pitch = 72
    room = split * 5 * 100 * pitch * sum_bytes
    assert cut["workspace"] - whole["workspace"] == -(-room // 256) * 256
    before, last = cut["launches"][:-1], cut["launches"][-1]
    assert [x["entry"] for x in before] == [x["entry"] for x in whole["launches"]]
    assert last["entry"] == f"gemm_{row.name}_reduce"
    threads = 100 * pitch * sum_bytes // 16
    assert last["grid"] == (-(-threads // last["block"][0]), 1, 5)
    assert before[-1]["grid"][0] == split * whole["launches"][-1]["grid"][0]


@ROW
def test_split_is_no_part_of_the_image(row):
    images = {planned(row, 100, 60, 4096, split=n)["image"] for n in (0, 1, 5)}
    assert len(images) == 1
    assert "split" not in images.pop()


@ROW
def test_split_out_of_range(row):
    with pytest.raises(ValueError, match=r"split = 1025 is not legal.*0\.\.1024"):
        planned(row, 8, 8, 8, split=1025)
