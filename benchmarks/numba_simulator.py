"""Times `tiled` on Numba's CUDA simulator, for comparison in benchmarks/emulator.py.

    NUMBA_ENABLE_CUDASIM=1 python benchmarks/numba_simulator.py 64

Prints the seconds of one product of n x n fp32 matrices: the minimum of a few runs. n must be a
multiple of TILE, and small: the simulator runs one Python thread per CUDA thread.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numba import cuda, float32

TILE = 16


@cuda.jit
def tiled(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), float32)
    b_tile = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    total = float32(0)
    for k in range(0, a.shape[1], TILE):
        a_tile[y, x] = a[row, k + x]
        b_tile[y, x] = b[k + y, column]
        cuda.syncthreads()
        for j in range(TILE):
            total += a_tile[y, j] * b_tile[j, x]
        cuda.syncthreads()
    c[row, column] = total


def main(n: int, repeat: int = 3) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((n, n), dtype="f4") for _ in range(2))
    best = float("inf")
    for _ in range(repeat):
        c = np.full((n, n), np.nan, "f4")
        started = time.perf_counter()
        tiled[(n // TILE, n // TILE), (TILE, TILE)](a, b, c)
        best = min(best, time.perf_counter() - started)
        error = abs(c - a.astype("f8") @ b).max()
        if not error < 1e-3:
            raise SystemExit(f"the simulator's product is wrong by {error}")
    print(best)


if __name__ == "__main__":
    main(int(sys.argv[1]))
