"""sliced_k, small_k and direct on shapes, pitches and offsets that are drawn at random."""

import random

import numpy as np
import pytest

import smemkern
from checks import assert_gemm, random_matrix
from rows import parameter_sets

CASES = [
    pytest.param(row, dtype, id=f"{row.name}-{dtype}")
    for row in smemkern.variants("gemm")
    if row.name in ("sliced_k", "small_k", "direct")
    for dtype in row.dtypes
]


def operand(rng, draw, batch, rows, columns, dtype):
    """Random matrices in rows or columns of wider ones, which are NaN elsewhere."""
    swapped = draw.random() < 0.5
    size = (columns, rows) if swapped else (rows, columns)
    before, after = draw.choice([0, 0, 1, 2, 3, 8]), draw.choice([0, 0, 1, 5, 8])
    wide = np.full((batch, size[0] + 2, before + size[1] + after), np.nan, dtype)
    part = wide[:, 1:-1, before : before + size[1]]
    part[...] = random_matrix(rng, part.shape, dtype)
    return part.swapaxes(1, 2) if swapped else part


def sizes(draw):
    shape = [draw.randint(1, draw.choice([4, 20, 150])) for _ in range(3)]
    if draw.random() < 0.3:
        shape[2] = draw.randint(1, 700)
    return [16 * -(-n // 16) for n in shape] if draw.random() < 0.4 else shape


@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_drawn_at_random(row, dtype):
    seed = random.SystemRandom().randrange(1 << 30)
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    for number in range(12):
        m, n, k = sizes(draw)
        batch = draw.choice([1, 1, 3])
        a, b = operand(rng, draw, batch, m, k, dtype), operand(rng, draw, batch, k, n, dtype)
        wide = random_matrix(rng, (batch, m + 1, n + draw.choice([0, 1, 2, 8])), dtype)
        out, before = wide[:, :m, :n], wide.copy()
        alpha, beta = draw.choice([(1.0, 0.0), (-1.5, 0.25)])
        options = dict(draw.choice(parameter_sets(row)))
        if row.name == "sliced_k":
            options["split"] = draw.choice([0, 1, 3])
        print(f"seed {seed}, call {number}: {batch} x {m} x {n} x {k}, {options}, beta {beta}")
        print(f"strides {a.strides} {b.strides} {out.strides}")
        smemkern.gemm(
            a, b, out=out, alpha=alpha, beta=beta, variant=row.name, device="emu", **options
        )
        assert_gemm(out, a, b, alpha, beta, before[:, :m, :n], row=row)
        before[:, :m, :n] = out
        assert wide.tobytes() == before.tobytes()


@pytest.mark.parametrize(("row", "dtype"), CASES)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_no_k(row, dtype, beta, rng):
    a, b = np.empty((37, 0), dtype), np.empty((0, 41), dtype)
    out = random_matrix(rng, (37, 41), dtype)
    before = out.copy()
    smemkern.gemm(a, b, out=out, beta=beta, variant=row.name, device="emu")
    assert_gemm(out, a, b, 1.0, beta, before, row=row)
