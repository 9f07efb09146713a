"""The tile sizes of the 16-bit wgmma rows that the table lists, also those that only a
build for a GPU compiles ahead: values of random problems, and blocks with several tiles each."""

import random

import ml_dtypes
import numpy as np
import pytest

import smemkern
from buildtools import registry
from checks import ROOT, assert_gemm, assert_same_bits, random_matrix

pytestmark = pytest.mark.usefixtures("nvrtc")

DTYPES = {"fp16": "f2", "bf16": ml_dtypes.bfloat16}
ROWS = {row.name: row for row in registry.read(ROOT / "csrc" / "kernels") if row.name in DTYPES}
SETS = [
    pytest.param(name, dict(values), id=f"{name}-{'-'.join(f'{k}{v}' for k, v in values.items())}")
    for name, row in ROWS.items()
    for values in row.prebuilt
]
EACH = pytest.mark.parametrize(("variant", "values"), SETS)
BLOCKS = 132  # of the emulator's device
MOST_COLUMNS = {64: 192, 128: 320, 192: 192, 256: 128}  # of a tile, by its rows
ROW = {row.name: row for row in smemkern.variants("gemm")}
BY_TMA = [ROW[row.name] for row in registry.read(ROOT / "csrc" / "kernels") if row.wgmma]


def matrix(rng, draw, shape, dtype):
    """In one of the layouts that a kernel reads in place, or packs."""
    x = random_matrix(rng, shape, dtype)
    layout = draw.choice(["rows", "columns", "odd"])
    if layout == "columns":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == "odd":
        wide = np.zeros((*shape[:-1], shape[-1] + 1), x.dtype)
        wide[..., :-1] = x
        return wide[..., :-1]
    return x


@EACH
@pytest.mark.parametrize("aligned", [True, False])
def test_random_problems(variant, values, aligned, device, rng):
    """Batches with a broadcast operand, alpha, beta, split-K; K of a part of a step, and 0."""
    seed = int(rng.integers(2**32))
    draw, row = random.Random(seed), ROW[variant]
    for _ in range(4):
        m, n, k = (draw.choice([draw.randint(1, 70), draw.randint(1, 400)]) for _ in range(3))
        if aligned:
            m, n, k = (8 * -(-x // 8) for x in (m, n, k))
        k = draw.choice([k, k, k, 0 if not aligned else 64])
        batch = draw.choice([(), (3,), (2, 2)])
        a = matrix(rng, draw, (*batch, m, k), DTYPES[variant])
        b = matrix(rng, draw, (*(batch if draw.random() < 0.6 else ()), k, n), DTYPES[variant])
        c = random_matrix(rng, (*batch, m, n), DTYPES[variant])
        alpha, beta = draw.choice([(1.0, 0.0), (0.5, -2.0)])
        out = c.copy() if beta else np.full_like(c, np.nan)
        widths = ROW[variant].params["block_n"].legal
        most = MOST_COLUMNS[values["block_m"]]
        words = {
            **values,
            "block_n": draw.choice([n for n in widths if n <= most]),
            "split": draw.choice([0, 1, 1, 3]),
        }
        print(f"seed {seed}: {batch} {m} x {n} x {k}, {words}")
        smemkern.gemm(
            a, b, variant=variant, alpha=alpha, beta=beta, out=out, device=device, **words
        )
        assert_gemm(out, a, b, alpha=alpha, beta=beta, c=c if beta else None, row=row)


@pytest.mark.parametrize(
    ("variant", "values", "split"),
    [
        pytest.param(*of_fp16.values, 1 + n % 2, id=f"{of_fp16.id}-{1 + n % 2}")
        for n, of_fp16 in enumerate(p for p in SETS if p.values[0] == "fp16")
    ],
)
def test_several_tiles_per_block(variant, values, split, rng):
    """Matrices of 2 x 3 tiles, the last column narrow, and more of them than blocks. No hazards,
    and the bits of each matrix alone."""
    blocks = BLOCKS * (2 if values["block_m"] == 64 else 1)
    batch = blocks // 6 // split + 1
    columns = int(rng.integers(3, MOST_COLUMNS[values["block_m"]] // 16 + 1)) * 16
    values = {**values, "block_n": columns}
    m, n = values["block_m"] + 3, 2 * columns + int(rng.integers(1, columns // 2 + 1))
    print(f"{columns} columns, {n} in all")
    a = random_matrix(rng, (batch, m, 70), DTYPES[variant])
    b = random_matrix(rng, (batch, 70, n), DTYPES[variant])
    trace = smemkern.trace("gemm", a, b, variant=variant, **{**values, "split": split})
    assert len(trace.hazards) == 0
    for z in (0, batch // 2, batch - 1):
        alone = smemkern.gemm(
            a[z], b[z], variant=variant, device="emu", **{**values, "split": split}
        )
        assert_same_bits(trace.result[z], alone)
    assert_gemm(trace.result[-1], a[-1], b[-1], row=ROW[variant])


@pytest.mark.parametrize("columns", [272, 288, 304, 320])
@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("swapped", [1, 2])
def test_more_columns_than_an_instruction_has(columns, layout, swapped, device, rng):
    """Two tiles side by side and a part of one; rows of C between others, which stay."""
    m, n, k = 136, 2 * columns + 24, 200
    if swapped == 2:
        m, n = n, m
    a, b = random_matrix(rng, (m, k), "f2"), random_matrix(rng, (k, n), "f2")
    a, b = (np.asfortranarray(x) if c == "T" else x for x, c in zip((a, b), layout, strict=True))
    wide = random_matrix(rng, (m, n + 16), "f2")
    around = wide.copy()
    words = {"block_n": columns, "swapped": swapped, "split": 1, "multicast": 1, "multicast_a": 1}
    out = wide[:, 8:-8]
    smemkern.gemm(a, b, variant="fp16", out=out, device=device, **words)
    assert_gemm(out, a, b, row=ROW["fp16"])
    around[:, 8:-8] = out
    assert_same_bits(wide, around)


@pytest.mark.parametrize("columns", [48, 80, 144, 304])
@pytest.mark.parametrize("swapped", [1, 2])
def test_a_tile_stores_and_reads_nothing_of_its_neighbours(columns, swapped, rng):
    """Half a box of C is the last of a tile with an odd number of 16 columns."""
    m, n = (3 * columns, 128) if swapped == 2 else (128, 3 * columns)
    a, b = random_matrix(rng, (m, 64), "f2"), random_matrix(rng, (64, n), "f2")
    words = {"block_n": columns, "swapped": swapped, "split": 1, "multicast": 1, "multicast_a": 1}
    trace = smemkern.trace("gemm", a, b, variant="fp16", **words)
    assert trace.hazards == ()
    stored = sum(r.bytes for r in trace.global_ if r.direction == "write")
    assert stored == 2 * m * n
    c = random_matrix(rng, (m, n), "f2")
    trace = smemkern.trace("gemm", a, b, variant="fp16", out=c.copy(), beta=2, **words)
    assert trace.hazards == ()
    assert_gemm(trace.result, a, b, alpha=1, beta=2, c=c, row=ROW["fp16"])


@pytest.mark.parametrize("n", [54, 77, 131])
@pytest.mark.parametrize("row", BY_TMA, ids=lambda row: row.name)
def test_a_row_that_ends_within_16_bytes(row, n, device, rng):
    """TMA would store past the end of C; on the emulator that is an error."""
    [dtype] = row.dtypes
    a, b = random_matrix(rng, (1, 40), dtype), random_matrix(rng, (40, n), dtype)
    whole = {"block_n": 32} if dtype.endswith("16") else {}  # else its kernel has no TMA stores
    assert_gemm(smemkern.gemm(a, b, variant=row.name, device=device, **whole), a, b, row=row)


@pytest.mark.parametrize("columns", [1, 40, 64, 65])
def test_full_tiles_come_before_narrow_ones(columns, rng):
    """40 rows of 4 full tiles and a narrow one, on 80 blocks: the bits of whole columns."""
    a = random_matrix(rng, (40 * 128, 40), "f2")
    b = random_matrix(rng, (40, 5 * 128), "f2")
    words = {"variant": "fp16", "device": "emu", "split": 1, "block_n": 128}
    whole = smemkern.gemm(a, b, **words)
    part = np.ascontiguousarray(b[:, : 4 * 128 + columns])
    assert_same_bits(smemkern.gemm(a, part, **words), whole[:, : part.shape[1]].copy())


def launches(batch, shape, **keywords):
    (m, n, k), lead = shape, (batch,) if batch > 1 else ()
    a, b = np.zeros((*lead, m, k), "f2"), np.zeros((*lead, k, n), "f2")
    planned = smemkern._core.plan("gemm", (a, b), {"variant": "fp16", "device": "emu", **keywords})
    return [(launch["entry"], launch["grid"]) for launch in planned["launches"]]


def test_blocks_go_over_the_batch():
    """As many as balance the tiles over the multiprocessors; other launches have a grid for it."""
    words = {"split": 1, "block_n": 256, "multicast": 1, "multicast_a": 1, "swapped": 1}
    assert launches(40, (512, 512, 64), **words) == [("gemm_fp16_b", (107, 1, 1))]  # 320 tiles
    assert launches(3, (64, 64, 64), **words) == [("gemm_fp16_b", (3, 1, 1))]
    words |= {"split": 2, "block_n": 128}
    pack, product, sums = launches(40, (512, 512, 127), **words)
    assert pack[1][2] == sums[1][2] == 40
    assert product == ("gemm_fp16_b", (128, 1, 1))  # 1280 tiles


def test_a_large_batch_has_several_launches():
    assert [grid for _, grid in launches(65535 + 70, (8, 8, 8), split=1)] == [
        (132, 1, 1),
        (132, 1, 1),
    ]


def test_small_tiles_have_two_blocks_per_multiprocessor():
    tiles = {"split": 1, "block_m": 64, "multicast": 1, "multicast_a": 1}
    assert launches(1, (64 * 20, 128 * 10, 64), **tiles, block_n=128)[0][1] == (200, 1, 1)
    assert launches(1, (64 * 20, 96 * 5, 64), **tiles, block_n=96)[0][1] == (100, 1, 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"block_m": 192, "block_n": 224}, "more than the registers hold"),
        ({"block_m": 64, "block_n": 224}, "more than the registers hold"),
        ({"block_m": 256, "block_n": 144}, "more than the registers hold"),
        ({"block_n": 40}, "block_n = 40"),
        ({"block_n": 336}, "block_n = 336"),
        ({"block_n": 144, "multicast": 4}, "copy multiples of 8"),
    ],
)
def test_what_does_not_fit(values, message):
    x = np.zeros((8, 8), "f2")
    with pytest.raises(ValueError, match=message):
        smemkern.gemm(x, x, variant="fp16", device="emu", **values)


@pytest.mark.parametrize("name", [row.name for row in smemkern.variants("gemm")])
@pytest.mark.parametrize(
    ("batch", "shape"), [((0,), (5, 3, 0)), ((3, 0), (1, 1, 8)), ((2,), (0, 4, 4))]
)
def test_nothing_to_compute(name, batch, shape):
    """Empty batches, also without a K, whose number of matrices is a divisor nowhere."""
    m, n, k = shape
    [row] = [row for row in smemkern.variants("gemm") if row.name == name]
    dtype = "float32" if row.dtypes[0] == "bfloat16" else row.dtypes[0]
    if dtype not in row.dtypes:
        pytest.importorskip("ml_dtypes")
        dtype = "bfloat16"
    a, b = np.zeros((*batch, m, k), dtype), np.zeros((*batch, k, n), dtype)
    assert smemkern.gemm(a, b, variant=name, device="emu").shape == (*batch, m, n)
