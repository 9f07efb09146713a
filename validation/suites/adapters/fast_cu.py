"""fast.cu: sums of integers, and products with wgmma and TMA.

The products are C = A B with A by rows, B and C by columns. Those whose tensor maps are in device
memory (kernels 2 to 5) have no reference here.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import smemkern

from suites.reference import Array, Launch, Name, case

SUITE = "fast.cu"
SHARED_BYTES = 227 << 10  # all that a block can have


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
    a, b = _operands(rng, m, n, k)
    expected, atol = _product(a, b)
    args = [m, n, k, a, b, np.zeros((n, m), ml_dtypes.bfloat16)]
    return Launch((n // bn, m // bm), threads, args, {5: expected}, 1e-2, atol)


@case(SUITE, "matmul.cu", "M[67]::matmulKernel[67]")
def persistent(name: Name, rng: np.random.Generator) -> Launch:
    """As many blocks as the sample has multiprocessors; each takes tiles in turn."""
    bm, bn, bk, threads, _, blocks = name.numbers()
    a, b = _operands(rng, 2 * bm, 2 * bn, 4 * bk)
    maps = [smemkern.TensorMap(x, (rows, bk), swizzle="128B") for x, rows in ((a, bm), (b, bn))]
    expected, atol = _product(a, b)
    args = [2 * bm, 2 * bn, 4 * bk, np.zeros(expected.shape, ml_dtypes.bfloat16), *maps]
    return Launch(blocks, threads, args, {3: expected}, 1e-2, atol, SHARED_BYTES)
