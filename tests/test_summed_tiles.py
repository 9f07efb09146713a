"""Tiles of 16-bit wgmma rows: a cluster adds their ranges of K, or a second launch does."""

import numpy as np
import pytest

import smemkern
from checks import assert_gemm_into, assert_same_bits, launches, random_matrix

ROWS = [row for row in smemkern.variants("gemm") if row.name in ("fp16", "bf16")]
PER_ROW = pytest.mark.parametrize(
    ("row", "dtype"), [pytest.param(row, row.dtypes[0], id=row.name) for row in ROWS]
)
MOST_COLUMNS = {64: 128, 128: 256}  # of tiles that clusters add, by rows


def tile(block_m, block_n, split, swapped=1, multicast=1, multicast_a=1):
    return {
        **{"block_m": block_m, "block_n": block_n, "split": split},
        **{"swapped": swapped, "multicast": multicast, "multicast_a": multicast_a},
    }


def of_layout(x, transposed):
    return np.asarray(x, order="F" if transposed else "C")


@PER_ROW
@pytest.mark.parametrize(
    ("block_m", "block_n", "kernel"),
    [(64, 32, "summed"), (64, 128, "summed"), (128, 32, "summed"), (128, 256, "summed")]
    + [(64, 144, ""), (128, 144, ""), (128, 272, ""), (192, 32, ""), (256, 32, "")],
)
def test_kernels(row, dtype, block_m, block_n, kernel):
    a, b = np.zeros((256, 1024), dtype), np.zeros((1024, 288), dtype)
    first, *more = launches(a, b, row, **tile(block_m, block_n, 3))
    assert (first["cluster"], len(more)) == ((3, 0) if kernel else (0, 1))
    assert first["entry"] == f"gemm_{row.name}{f'_{kernel}' if kernel else ''}_b"


@PER_ROW
@pytest.mark.parametrize(
    ("shape", "more"),
    [
        ((256, 256), {"split": 9}),  # blocks of a cluster
        ((256, 256), {"split": 3, "multicast": 4}),  # 12 blocks, of which 4 share tiles
        ((64 * 41, 64), {"split": 3}),  # clusters of 3: more than run at once
        ((256, 512), {"block_m": 128, "block_n": 256, "split": 5}),  # more sums than room for them
    ],
)
def test_other_calls_have_a_second_launch(row, dtype, shape, more):
    a, b = np.zeros((shape[0], 1024), dtype), np.zeros((1024, shape[1]), dtype)
    first, second = launches(a, b, row, **(tile(64, 64, 2) | more))
    assert first["cluster"] == more.get("multicast", 0)
    assert second["entry"] == f"gemm_{row.name}_reduce"


@PER_ROW
@pytest.mark.parametrize(("split", "below", "beside"), [(2, 2, 2), (3, 2, 1), (4, 1, 2), (2, 1, 4)])
def test_blocks_that_share_tiles_add_parts_too(row, dtype, split, below, beside):
    a, b = np.zeros((256, 1024), dtype), np.zeros((1024, 512), dtype)
    (only,) = launches(a, b, row, **tile(128, 64, split, 1, below, beside))
    assert only["cluster"] == split * below * beside
    assert only["grid"][:2] == (2 // below * 8 // beside, split * below * beside)


@PER_ROW
def test_random_calls(row, dtype, draw, device):
    """All layouts, rows that TMA cannot read, `out` between other elements, batches."""
    rng = np.random.default_rng(draw.getrandbits(64))
    for _ in range(16):
        block_m = draw.choice(list(MOST_COLUMNS))
        block_n = draw.randrange(32, MOST_COLUMNS[block_m] + 1, 16)
        block_n += block_n % 32 if block_n > 128 else 0
        split, multicast = draw.randint(2, 8), draw.choice([1, 1, 2, 4])
        fits = block_n % (8 * multicast) == 0
        below, beside = draw.choice([(multicast, 1), (1, multicast)] if fits else [(1, multicast)])
        params = tile(block_m, block_n, split, draw.choice([1, 2]), below, beside)
        large = draw.randint(1, (1 + below) * block_m + 9)
        small = draw.randint(65, 130 + beside * block_n)
        m, n = (small, large) if params["swapped"] == 2 else (large, small)
        k = draw.randint(1, 700)
        if draw.random() < 0.5:
            m, n, k = (8 * -(-x // 8) for x in (m, n, k))
        batch = (draw.randint(2, 3),) if draw.random() < 0.3 else ()
        a, b = random_matrix(rng, (*batch, m, k), dtype), random_matrix(rng, (*batch, k, n), dtype)
        layout = draw.choice(["NN", "NT", "TN", "TT"])
        if not batch:
            a, b = of_layout(a, layout[0] == "T"), of_layout(b, layout[1] == "T")
        wide = random_matrix(rng, (*batch, m, n + 3), dtype)
        out = wide[..., 1:-2] if draw.random() < 0.5 else wide[..., :-3]
        alpha, beta = draw.choice([(1, 0), (-1.5, 0.25)])
        print(params, m, n, k, layout, batch)
        assert_gemm_into(out, a, b, alpha, beta, row, device=device, **params)


@PER_ROW
@pytest.mark.parametrize("swapped", [1, 2])
@pytest.mark.parametrize(
    ("block_m", "block_n", "sharing"),
    [(64, 64, (1, 1)), (64, 64, (1, 2)), (64, 112, (2, 1)), (128, 48, (2, 1)), (128, 48, (1, 1))]
    + [(128, 128, (1, 2)), (128, 128, (2, 1)), (128, 224, (1, 1))],
)
def test_no_hazards_and_the_bits_of_two_launches(
    row, dtype, swapped, block_m, block_n, sharing, rng
):
    """Clusters of more than 8 blocks do not add parts; a launch adds them in the same order."""
    m, n = (200, 136) if swapped == 1 else (136, 200)
    a, b = random_matrix(rng, (m, 520), dtype), random_matrix(rng, (520, n), dtype)
    words = tile(block_m, block_n, 4, swapped, *sharing)
    trace = smemkern.trace("gemm", a, b, variant=row.name, **words)
    assert trace.hazards == () and len(launches(a, b, row, **words)) == 1
    others = words | {"multicast": 1, "multicast_a": 4}
    assert_same_bits(trace.result, smemkern.gemm(a, b, variant=row.name, device="emu", **others))


@PER_ROW
@pytest.mark.parametrize("swapped", [1, 2])
@pytest.mark.parametrize(
    ("block_m", "block_n", "split", "below"),
    [(64, 64, 4, 1), (64, 80, 4, 1), (64, 128, 4, 2), (128, 64, 4, 1)]
    + [(128, 96, 3, 2), (128, 128, 2, 1), (128, 192, 2, 2), (128, 256, 4, 1)],
)
def test_no_conflicts(row, dtype, swapped, block_m, block_n, split, below, rng):
    m, n = (2 * block_m, 2 * block_n) if swapped == 1 else (2 * block_n, 2 * block_m)
    a, b = random_matrix(rng, (m, 512), dtype), random_matrix(rng, (512, n), dtype)
    words = tile(block_m, block_n, split, swapped, below)
    trace = smemkern.trace("gemm", a, b, variant=row.name, **words)
    sums = [r for r in trace.shared if r.file in ("wgmma_thin.cuh", "split_k.cuh", "hopper.cuh")]
    assert {r.direction for r in sums} == {"read", "write"}
    assert [r for r in sums if r.wavefronts != r.ideal] == []
