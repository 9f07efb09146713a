"""Products that are computed as the product of the transposes, whose tiles are stored so."""

import numpy as np
import pytest

import smemkern
from checks import assert_gemm_into, assert_same_bits, launches, random_matrix

ROWS = [row for row in smemkern.variants("gemm") if "swapped" in row.params]
PER_ROW = pytest.mark.parametrize(
    ("row", "dtype"), [pytest.param(row, row.dtypes[0], id=row.name) for row in ROWS]
)
LAYOUTS = ("NN", "NT", "TN", "TT")
SWAPPED = {"swapped": 2}


def matrix_of(rng, shape, dtype, transposed):
    if not transposed:
        return random_matrix(rng, shape, dtype)
    *batch, m, n = shape
    return random_matrix(rng, (*batch, n, m), dtype).swapaxes(-1, -2)


def narrowest(row, block_m):
    return 64 if (row.name, block_m) == ("tf32", 128) else 32


def widest(row, block_m):
    return 2 * block_m if row.name == "tf32" else {64: 192, 192: 192, 256: 128}.get(block_m, 256)


@PER_ROW
def test_random_calls(row, dtype, draw, device):
    """All layouts and tiles, rows that TMA cannot read or write, K ranges, batches."""
    rng = np.random.default_rng(draw.getrandbits(64))
    for _ in range(30):
        most = draw.choice([(400, 400, 500), (16, 300, 900), (300, 16, 900)])
        m, n, k = (draw.randint(1, x) for x in most)
        if draw.random() < 0.5:
            m, n, k = (8 * -(-x // 8) for x in (m, n, k))
        batch = (draw.randint(2, 4),) if draw.random() < 0.3 else ()
        a = matrix_of(rng, (*batch, m, k), dtype, draw.random() < 0.5)
        b = matrix_of(rng, (*batch, k, n), dtype, draw.random() < 0.5)
        out = random_matrix(rng, (*batch, m, n + draw.choice([0, 3])), dtype)[..., :n]
        alpha, beta = draw.choice([(1, 0), (-1.5, 0.25)])
        block_m = draw.choice(row.params["block_m"].legal)
        chosen = {
            "block_m": block_m,
            "block_n": draw.choice(
                [0, *range(narrowest(row, block_m), widest(row, block_m) + 1, 32)]
            ),
            "swapped": draw.choice([0, 1, 2, 2]),
            "split": draw.choice([0, 1, 2, 5]),
            "multicast": draw.choice([0, 1, 2, 4]),
            "multicast_a": draw.choice([0, 1, 2]),
        }
        assert_gemm_into(out, a, b, alpha, beta, row, device=device, **chosen)


@PER_ROW
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("split", [1, 3])
def test_no_hazards_no_conflicts_and_the_same_bits(row, dtype, layout, split, rng, draw):
    """Sums have the same order, so a product and that of the transposes agree to the bit."""
    m, n, k = draw.randint(65, 300), draw.randint(65, 300), 328
    m, n = (8 * -(-x // 8) for x in (m, n))
    a = matrix_of(rng, (m, k), dtype, layout[0] == "T")
    b = matrix_of(rng, (k, n), dtype, layout[1] == "T")
    block_n = draw.choice([narrowest(row, 128), 96, 128])
    trace = smemkern.trace("gemm", a, b, variant=row.name, split=split, block_n=block_n, **SWAPPED)
    assert trace.hazards == ()
    # Where C's edge cuts a tile, some lanes add no sums of a cluster: see test_summed_tiles.
    stages = [r for r in trace.shared if r.file != "split_k.cuh"]
    assert [r for r in stages if r.wavefronts != r.ideal] == []
    plain = smemkern.gemm(a, b, variant=row.name, device="emu", split=split, block_n=64, swapped=1)
    assert_same_bits(trace.result, plain)


@PER_ROW
def test_blocks_have_rows_of_the_transpose(row, dtype):
    """`block_m` columns of C, `block_n` rows: 3 times 5 tiles."""
    a, b = np.zeros((160, 64), dtype), np.zeros((64, 5 * 128), dtype)
    for swapped in (2, 1):
        *_, launch = launches(
            *(a, b, row) if swapped == 2 else (b.T, a.T, row),
            **{"block_m": 128, "block_n": 64, "split": 1, "swapped": swapped},
            **{"multicast": 1, "multicast_a": 1},
        )
        assert launch["grid"][0] == 3 * 5
        assert ("_swapped" in launch["entry"]) == (swapped == 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tf32_packs_a_second_operand_that_is_not_k_major(layout, draw):
    """Of a large product the planner swaps if that spares it the launch."""
    [row] = [row for row in ROWS if row.name == "tf32"]
    m, n, k = (64 * draw.randint(8, 16) for _ in range(3))
    a, b = np.zeros((m, k), "f4"), np.zeros((k, n), "f4")
    a, b = a if layout[0] == "N" else a.T.copy().T, b if layout[1] == "N" else b.T.copy().T
    for swapped, packs in ((1, layout[1] == "N"), (2, layout[0] == "T")):
        entries = [one["entry"] for one in launches(a, b, row, split=1, swapped=swapped)]
        first_is_mn_major = layout[0] == "T" if swapped == 1 else layout[1] == "N"
        assert entries[:-1] == ["gemm_tf32_pack"] * packs
        assert ("_swapped" in entries[-1]) == (swapped == 2)
        assert entries[-1].endswith("_a") == first_is_mn_major
    chosen = launches(a, b, row, split=1)
    assert len(chosen) == (2 if layout == "TN" else 1)


@pytest.mark.parametrize("swapped", [1, 2])
def test_tiles_of_16_columns_are_only_of_results_that_fit(swapped):
    """Not of K = 0 either: other tiles would store over their neighbours."""
    [row] = [row for row in ROWS if row.name == "tf32"]
    tile = {"block_m": 64, "block_n": 16, "swapped": swapped}
    for n, k, columns in ((16, 8, 16), (17, 8, 32), (16, 0, 32), (100, 0, 32)):
        m = n if swapped == 2 else 300
        a, b = np.zeros((m, k), "f4"), np.zeros((k, 300 if swapped == 2 else n), "f4")
        *_, last = launches(a, b, row, split=1, **tile)
        assert f"gemm_tf32_{columns}" in last["entry"]


@PER_ROW
def test_a_result_that_tma_can_store_is_stored_by_it(row, dtype, rng):
    """64 columns per box; with odd rows by elements, to the same values."""
    a, b = random_matrix(rng, (72, 64), dtype), random_matrix(rng, (64, 136), dtype)
    trace = smemkern.trace("gemm", a, b, variant=row.name, **SWAPPED, split=1)
    assert any(r.op == "bulk" and r.direction == "write" for r in trace.global_)
    odd = np.zeros((72, 137), dtype)[:, :136]
    smemkern.gemm(a, b, variant=row.name, device="emu", out=odd, **SWAPPED, split=1)
    assert_same_bits(odd, trace.result)
