"""16-bit products of few rows or columns: kernels of their own, with the larger operand first."""

import numpy as np
import pytest

import smemkern
from checks import assert_gemm_into, assert_same_bits, launches, random_matrix

ROWS = [row for row in smemkern.variants("gemm") if row.name in ("fp16", "bf16")]
PER_ROW = pytest.mark.parametrize(
    ("row", "dtype"), [pytest.param(row, row.dtypes[0], id=row.name) for row in ROWS]
)
THIN = {"block_n": 8}
LAYOUTS = ("NN", "NT", "TN", "TT")


def of_layout(x, transposed):
    return np.asarray(x, order="F" if transposed else "C")


def call_of(rng, shape, layout, dtype):
    m, n, k = shape
    a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
    return of_layout(a, layout[0] == "T"), of_layout(b, layout[1] == "T")


@PER_ROW
@pytest.mark.parametrize("shape", [(32, 304), (304, 64), (1, 40), (16, 16), (48, 136)])
def test_have_kernels_of_their_own(row, dtype, shape):
    m, n = shape
    a, b = np.zeros((m, 256), dtype), np.zeros((256, n), dtype)
    for split in (1, 2):
        [launch] = launches(a, b, row, block_m=64, split=split, **THIN)
        assert "_thin" in launch["entry"]
        assert launch["cluster"] == (split if split > 1 else 0)


@PER_ROW
def test_the_planner_takes_them_where_there_is_much_to_read(row, dtype):
    """And other shapes have no such tiles, even if asked for."""
    k = 8192
    wide = np.zeros((k, 4096), dtype)
    assert "_thin" in launches(np.zeros((16, k), dtype), wide, row)[0]["entry"]
    assert "_thin" not in launches(np.zeros((65, k), dtype), wide, row, **THIN)[0]["entry"]


@PER_ROW
def test_random_calls(row, dtype, draw, device):
    """All layouts, rows that TMA cannot read, `out` between other elements, batches."""
    rng = np.random.default_rng(draw.getrandbits(64))
    for _ in range(30):
        few, many, k = (
            draw.randint(1, draw.choice([32, 64])),
            draw.randint(1, 500),
            draw.randint(1, 700),
        )
        if draw.random() < 0.5:
            few, many, k = (8 * -(-x // 8) for x in (few, many, k))
        m, n = (few, many) if draw.random() < 0.5 else (many, few)
        batch = (draw.randint(2, 4),) if draw.random() < 0.3 else ()
        a, b = random_matrix(rng, (*batch, m, k), dtype), random_matrix(rng, (*batch, k, n), dtype)
        if draw.random() < 0.5:
            a = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
        if draw.random() < 0.5:
            b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
        out = random_matrix(rng, (*batch, m, n + draw.choice([0, 3])), dtype)[..., :n]
        alpha, beta = draw.choice([(1, 0), (-1.5, 0.25)])
        chosen = {
            "block_m": draw.choice([64, 128, 192, 256]),
            "split": draw.choice([0, 1, 2, 5, 8, 9]),
        }
        assert_gemm_into(out, a, b, alpha, beta, row, device=device, **chosen, **THIN)


@PER_ROW
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_hazards_and_the_bits_of_other_tiles(row, dtype, layout, rng, draw):
    """Sums of a range are the same to the bit; other operands, whose sums are rounded alike."""
    few, many = draw.choice([1, 8, 19, 32, 43, 64]), draw.randint(65, 300)
    for m, n in ((few, many), (many, few)):
        a, b = call_of(rng, (m, n, 264), layout, dtype)
        split = draw.choice([1, 3])
        trace = smemkern.trace("gemm", a, b, variant=row.name, split=split, **THIN)
        assert trace.hazards == ()
        wide = smemkern.gemm(a, b, variant=row.name, device="emu", block_n=32, split=split)
        assert_same_bits(trace.result, wide)


@PER_ROW
@pytest.mark.parametrize("columns", [8, 16, 32, 64])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("split", [1, 4])
def test_no_conflicts(row, dtype, columns, swapped, split, rng):
    m, n = (columns, 256) if swapped else (256, columns)
    a, b = random_matrix(rng, (m, 512), dtype), random_matrix(rng, (512, n), dtype)
    trace = smemkern.trace("gemm", a, b, variant=row.name, split=split, **THIN)
    sums = [r for r in trace.shared if r.file in ("wgmma_thin.cuh", "split_k.cuh", "hopper.cuh")]
    assert {r.direction for r in sums} == {"read", "write"}
    assert [r for r in sums if r.wavefronts != r.ideal] == []


@PER_ROW
@pytest.mark.parametrize(("layout", "sectors"), [("NN", 64), ("NT", 8 * 4)])
def test_no_zeros_are_copied(row, dtype, layout, sectors):
    """8 columns of 64 k beside 64 rows, no more; a row of B has 16 bytes, which are in a sector."""
    a, b = np.zeros((64, 64), dtype), of_layout(np.zeros((64, 8), dtype), layout[1] == "T")
    trace = smemkern.trace("gemm", a, b, variant=row.name, block_m=64, split=1, **THIN)
    copies = [r for r in trace.global_ if r.op == "bulk"]
    assert sum(r.bytes for r in copies) == (64 + 8) * 128
    assert sum(r.sectors for r in copies) == 64 * 4 + sectors


@pytest.mark.parametrize(
    ("blocks", "most"), [(2, 66), (3, 39), (4, 30), (5, 22), (6, 17), (7, 15), (8, 15)]
)
def test_no_more_clusters_than_run_at_once(blocks, most):
    for tiles, clusters in ((most, blocks), (most + 1, 0)):
        a, b = np.zeros((64 * tiles, 64 * blocks), "f2"), np.zeros((64 * blocks, 8), "f2")
        [first, *_] = launches(a, b, ROWS[0], block_m=64, split=blocks, **THIN)
        assert first["cluster"] == clusters
