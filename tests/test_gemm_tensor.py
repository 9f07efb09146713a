"""What is particular to GEMM by wgmma: rounding, scales, and what goes before the product."""

import ml_dtypes
import numpy as np
import pytest

import smemkern
from checks import assert_gemm, random_matrix

SCALED = ["tf32x3", "fp16x3", "fp16x3_guarded", "fp16x1"]


def to_tf32(x):
    """To nearest; no ties occur in random numbers."""
    bits = x.view(np.uint32).astype(np.uint64) + 0x1000
    return (bits & 0xFFFFE000).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [64, 67], ids=["aligned", "odd"])
def test_tf32_rounds_to_nearest(side, order, n, device, rng):
    """By TMA, by the packed copy's TMA, and in registers: all the same."""
    x = np.asarray(random_matrix(rng, (n, n), "f4"), order=order)
    one = np.eye(n, dtype="f4")
    operands = (x, one) if side == "a" else (one, x)
    result = smemkern.gemm(*operands, variant="tf32", device=device)
    assert np.array_equal(result, to_tf32(np.ascontiguousarray(x)))


@pytest.mark.parametrize("swapped", [1, 2])
@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [64, 67], ids=["aligned", "odd"])
def test_tf32_ties(swapped, side, order, n, device, rng):
    """Half-way between two numbers of tf32, and next to it: both operands round to even, the second
    by its tensor map. The transposes' second operand is A."""
    kept = rng.integers(1 << 10, 1 << 11, (n, n))  # 11 bits; an odd and an even last one
    halves = kept + rng.choice([0.5 - 2**-13, 0.5, 0.5 + 2**-13], (n, n))
    scale = 2.0 ** rng.integers(-30, 20, (n, n)) * rng.choice([-1, 1], (n, n))
    x = np.asarray(halves * scale, order=order, dtype="f4")
    assert np.array_equal(x, halves * scale)
    one = np.eye(n, dtype="f4")
    operands = (x, one) if side == "a" else (one, x)
    result = smemkern.gemm(*operands, variant="tf32", device=device, swapped=swapped)
    assert np.array_equal(result, np.rint(halves) * scale)


@pytest.mark.parametrize(
    ("of_a", "of_b"),
    [(1e-36, 1), (1e-40, 1e35), (1e37, 1e-3), (1e-3, 1e37), (1e-30, 1e30), (1e18, 1e18)],
)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("variant", SCALED)
def test_any_scale(variant, of_a, of_b, order, device, rng):
    """As accurate as without; denormals have fewer bits, but all that they have."""
    a = np.asarray((rng.standard_normal((70, 40)) * of_a).astype("f4"), order=order)
    b = np.asarray((rng.standard_normal((40, 66)) * of_b).astype("f4"), order=order)
    row = next(r for r in smemkern.variants("gemm") if r.name == variant)
    result = smemkern.gemm(a, b, variant=variant, device=device)
    assert_gemm(result, a, b, row=row)


@pytest.mark.parametrize("variant", SCALED)
def test_rows_and_columns_of_different_scales(variant, device, rng):
    a = random_matrix(rng, (70, 2100), "f4") * np.exp2(rng.integers(-60, 60, (70, 1))).astype("f4")
    b = random_matrix(rng, (2100, 66), "f4") * np.exp2(rng.integers(-60, 60, (1, 66))).astype("f4")
    row = next(r for r in smemkern.variants("gemm") if r.name == variant)
    for left, right in ((a, b), (np.asfortranarray(a), np.asfortranarray(b))):
        assert_gemm(smemkern.gemm(left, right, variant=variant, device=device), a, b, row=row)


CLUSTERS = [
    (2, 2, 1),
    (70, 70, 300),
    (300, 260, 700),
    (40, 33, 6000),
    (33, 9, 60001),
    (570, 3, 8003),
]


@pytest.mark.parametrize(("m", "n", "k"), CLUSTERS)
@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("variant", SCALED)
def test_rows_that_a_cluster_packs(variant, odd, m, n, k, device, rng):
    """MN-major operands of few and many rows, and of more k than the blocks of a cluster keep."""

    def operand(rows):
        x = np.full((k, rows + odd), np.nan, "f4")[:, :rows]
        x[:] = random_matrix(rng, (k, rows), "f4") * np.exp2(rng.integers(-60, 60, rows))
        return x

    a, b = operand(m), operand(n)
    row = next(r for r in smemkern.variants("gemm") if r.name == variant)
    assert_gemm(smemkern.gemm(a.T, b, variant=variant, device=device), a.T, b, row=row)


LAUNCHES = {  # of A, B: row-major, transposed ("F"), or off 16-byte boundaries
    ("tf32x3", "C", "C"): "_pack _b",
    ("tf32x3", "C", "F"): "_pack ",
    ("fp16x3", "F", "C"): "_pack _b",
    ("fp16x3", "C", "odd"): "_pack _b",
    ("fp16x3_guarded", "C", "F"): "_pack ",
    ("fp16x3_guarded", "F", "odd"): "_pack _b",
    ("fp16x1", "C", "C"): "_pack ",
    ("fp16x1", "C", "F"): "_pack ",
    ("fp16x1", "F", "odd"): "_pack ",
}


@pytest.mark.parametrize(("variant", "of_a", "of_b"), LAUNCHES)
def test_what_goes_before(variant, of_a, of_b):
    def lie(how):
        wide = np.ones((64, 65), "f4")
        return wide[:, :64] if how == "odd" else np.asarray(wide[:, :64].copy(), order=how)

    planned = smemkern._core.plan("gemm", (lie(of_a), lie(of_b)), {"variant": variant})
    got = [launch["entry"] for launch in planned["launches"]]
    assert got == [f"gemm_{variant}{end}" for end in LAUNCHES[variant, of_a, of_b].split(" ")]


@pytest.mark.parametrize("of_b", "CF")
@pytest.mark.parametrize("columns", [1, 8, 63, 64, 65, 257, 263, 320, 321])
@pytest.mark.parametrize("variant", ["fp16", "bf16"])
def test_narrow_tiles(variant, columns, of_b, device, rng):
    """Tiles at the right edge make fewer columns: the same bits as those of whole tiles."""
    dtype = "f2" if variant == "fp16" else ml_dtypes.bfloat16
    a, b = (rng.standard_normal(s).astype("f4").astype(dtype) for s in ((130, 200), (200, 512)))
    whole = smemkern.gemm(a, b, variant=variant, device=device, split=1)
    part = np.asarray(b[:, :columns].copy(), order=of_b)
    out = np.full((130, columns), 7, dtype)
    result = smemkern.gemm(a, part, variant=variant, device=device, split=1, out=out)
    assert result.tobytes() == whole[:, :columns].tobytes()


@pytest.mark.parametrize(
    ("columns", "blocks"),
    [(4096, 128), (4097, 128), (4224, 128), (4225, 109), (256, 32), (300, 64)],
)
def test_narrow_tiles_are_no_wave_of_their_own(columns, blocks):
    a, b = np.zeros((4095, 8), "f2"), np.zeros((8, columns), "f2")
    tile = {"block_n": 256, "split": 1, "swapped": 1, "multicast": 1, "multicast_a": 1}
    keywords = {"variant": "fp16", "device": "emu", **tile}
    planned = smemkern._core.plan("gemm", (a, b), keywords)
    assert planned["launches"][-1]["grid"] == (blocks, 1, 1)
