"""fast.cu: sums of integers, and products with wgmma and TMA.

The products are C = A B with A by rows, B and C by columns; the first has all by rows. Those whose
tensor maps are in device memory (kernels 2 to 5) have no reference here.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import smemkern
from suites.reference import Array, Launch, Name, case

SUITE = "fast.cu"
SHARED_BYTES = 224 << 10  # nearly all that a block can have


@case(SUITE, "sum.cu", "sumKernel[1-4]")
def total(name: Name, rng: np.random.Generator) -> Launch:
    """The first thread sets the sum to zero, before other blocks add if the hardware is kind."""
    block, batch = name.numbers()
    first = name.kernel.endswith("1")
    x = rng.integers(-1000, 1000, block * batch * (1 if first else 4) - 400).astype(np.int32)
    args = [x, np.zeros(1, np.int32), x.size if first else x.size // 4]
    return Launch(1, block, args, {1: x.sum(keepdims=True)}, 0, 0)


def _operands(rng: np.random.Generator, m: int, n: int, k: int) -> list[Array]:
    return [rng.standard_normal((rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, n)]


def _product(a: Array, b: Array) -> tuple[Array, float]:
    expected = b.astype(float) @ a.astype(float).T
    return expected, 1e-2 * float(np.abs(expected).max())


@case(SUITE, "matmul.cu", "sgemmWarptiling")
def warp_tiles(name: Name, rng: np.random.Generator) -> Launch:
    bm, bn, *_, threads = name.numbers()
    m, n, k = 256, 256, 64
    b, a = _operands(rng, n, m, k)
    expected, atol = _product(b, a)
    args = [m, n, k, a, np.ascontiguousarray(b.T), np.zeros((m, n), ml_dtypes.bfloat16)]
    return Launch((n // bn, m // bm), threads, args, {5: expected}, 1e-2, atol)


def _tensor_map(x: Array, rows: int, columns: int, dimensions: int) -> smemkern.TensorMap:
    """Tiles of rows x columns. From three dimensions on: columns, rows, tiles of columns, 1, 1."""
    if dimensions == 2:
        return smemkern.TensorMap(x, (rows, columns), swizzle="128B")
    tiles = x.reshape(x.shape[0], -1, columns).transpose(1, 0, 2)
    ones = (1,) * (dimensions - 3)
    box = (*ones, 1, rows, columns)
    return smemkern.TensorMap(tiles.reshape(*ones, *tiles.shape), box, swizzle="128B")


@case(SUITE, "matmul.cu", "M[6-9]::matmulKernel[6-9]")
def persistent(name: Name, rng: np.random.Generator) -> Launch:
    """As many blocks as the sample has multiprocessors; each takes tiles of groups of 16 x 8."""
    bm, bn, bk, threads, _, blocks, *_ = name.numbers()
    m, n, k = 16 * bm, 8 * bn, 2 * bk
    a, b = _operands(rng, m, n, k)
    dimensions = {"6": 2, "7": 5}.get(name.kernel[-1], 3)
    maps = [_tensor_map(x, rows, bk, dimensions) for x, rows in ((a, bm), (b, bn))]
    expected, atol = _product(a, b)
    args = [m, n, k, np.zeros(expected.shape, ml_dtypes.bfloat16), *maps]
    return Launch(blocks, threads, args, {3: expected}, 1e-2, atol, SHARED_BYTES)
