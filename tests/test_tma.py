"""gemm's `tma`: what is planned before it; it differs from `pipelined` by its copies alone."""

import numpy as np
import pytest

import smemkern
from checks import random_matrix

LIE = {  # how an operand lies in memory
    "rows": lambda x: x,
    "columns": np.asfortranarray,
    "unaligned": lambda x: np.pad(x, ((0, 0), (1, 2)))[:, 1:-2],
    "backwards": lambda x: np.ascontiguousarray(x[::-1])[::-1],
}
SHAPES = [(128, 128, 32), (256, 192, 160), (129, 132, 36), (67, 65, 33), (5, 300, 1)]


@pytest.mark.parametrize("of_b", LIE)
@pytest.mark.parametrize("of_a", LIE)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_same_bits_as_pipelined(shape, of_a, of_b, device, rng):
    m, n, k = shape
    a, b = random_matrix(rng, (m, k), "f4"), random_matrix(rng, (k, n), "f4")
    result = smemkern.gemm(LIE[of_a](a), LIE[of_b](b), variant="tma", device=device)
    assert np.array_equal(result, smemkern.gemm(a, b, variant="pipelined", device=device))


@pytest.mark.parametrize("params", [{"stages": 2}, {"block_m": 64}, {"block_n": 64}], ids=str)
def test_rings_and_tiles(params, device, rng, nvrtc):
    a, b = random_matrix(rng, (200, 300), "f4"), random_matrix(rng, (300, 136), "f4")
    result = smemkern.gemm(a, b, variant="tma", device=device, **params)
    assert np.array_equal(result, smemkern.gemm(a, b, variant="pipelined", device=device))


@pytest.mark.parametrize("of_b", LIE)
@pytest.mark.parametrize("of_a", LIE)
def test_no_hazards_and_no_conflicts(of_a, of_b, rng):
    """The ring goes round twice; an edge in every direction."""
    a, b = random_matrix(rng, (132, 260), "f4"), random_matrix(rng, (260, 136), "f4")
    found = smemkern.trace("gemm", LIE[of_a](a), LIE[of_b](b), variant="tma")
    assert found.hazards == ()
    of_kernel = [row for row in found.shared if row.file != "wgmma_pack.cuh"]
    assert {row.op for row in of_kernel} == {"load", "bulk"}
    assert all(row.wavefronts == row.ideal for row in of_kernel)


@pytest.mark.parametrize("beta", [0.0, -0.5])
def test_batches_and_the_matrix_before(beta, device, rng):
    a, b = random_matrix(rng, (3, 130, 40), "f4"), random_matrix(rng, (40, 70), "f4")
    old = random_matrix(rng, (3, 130, 70), "f4")
    outs = [old.copy(), old.copy()]
    for variant, out in zip(("tma", "pipelined"), outs, strict=True):
        smemkern.gemm(a, b, alpha=1.5, beta=beta, out=out, variant=variant, device=device)
    assert np.array_equal(*outs)


LAUNCHES = {
    ("rows", "rows"): ["gemm_tma"],
    ("columns", "rows"): ["gemm_tma_pack", "gemm_tma"],
    ("rows", "columns"): ["gemm_tma_pack", "gemm_tma"],
    ("rows", "unaligned"): ["gemm_tma_pack", "gemm_tma"],
    ("unaligned", "backwards"): ["gemm_tma_pack", "gemm_tma"],
}


@pytest.mark.parametrize(("of_a", "of_b"), LAUNCHES)
def test_what_goes_before(of_a, of_b):
    x = np.ones((64, 64), "f4")
    planned = smemkern._core.plan("gemm", (LIE[of_a](x), LIE[of_b](x)), {"variant": "tma"})
    assert [launch["entry"] for launch in planned["launches"]] == LAUNCHES[of_a, of_b]
