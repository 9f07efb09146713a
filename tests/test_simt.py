"""gemm's `simt`: whole tiles, aligned or not, and blocks that move inwards at an edge."""

import numpy as np
import pytest

import smemkern

SHAPES = [
    (256, 128, 32),
    (256, 128, 33),
    (257, 131, 20),
    (300, 260, 16),
    (511, 129, 1),
    (256, 128, 0),
]


@pytest.mark.parametrize("offset", [0, 1], ids=["aligned", "unaligned"])
@pytest.mark.parametrize("beta", [0.0, -0.5])
@pytest.mark.parametrize("params", [{}, {"block_m": 64}], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_whole_tiles(rng, shape, params, beta, offset):
    m, n, k = shape
    a = rng.standard_normal((m, k + 4), dtype=np.float32)[:, offset : offset + k]
    b = rng.standard_normal((k, n + 4), dtype=np.float32)[:, offset : offset + n]
    old = rng.standard_normal((m, n), dtype=np.float32)
    out = old.copy()
    smemkern.gemm(a, b, beta=beta, out=out, variant="simt", device="emu", **params)
    exact, bound = smemkern.reference.gemm_bound(a, b, beta=beta, c=old)
    assert np.all(np.abs(out - exact) <= bound)
