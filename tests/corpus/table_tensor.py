"""Cases of tensor cores (mma.sync with ldmatrix, wmma, wgmma) and of tensor copies."""

import numpy as np

import smemkern

from .cases import EPS, case, one


def _product(rng, name, rows, columns, threads=32, shape=(32, 48, 64)):
    """A block of the grid does rows x columns of the result."""
    M, N, K = shape
    A, B = rng.standard_normal((M, K)).astype("f2"), rng.standard_normal((K, N)).astype("f2")
    C = np.zeros((M, N), "f4")
    wide = A.astype("f8"), B.astype("f8")
    # Products are exact; tensor cores truncate sums, hence twice the error of rounding.
    tolerance = 2 * (K + 2) * EPS * (abs(wide[0]) @ abs(wide[1]))
    grid = (N // columns, M // rows)
    return one(name, grid, threads, [A, B, C, N, K], (C, wide[0] @ wide[1], tolerance))


@case("mma_ldmatrix", same_bits=False)
def mma_ldmatrix(rng):
    return _product(rng, "mma_ldmatrix", 16, 8)


@case("wmma_gemm", same_bits=False)
def wmma_gemm(rng):
    return _product(rng, "wmma_gemm", 16, 16)


@case("wgmma_gemm", options=("-arch=compute_90a",), same_bits=False)
def wgmma_gemm(rng):
    return _product(rng, "wgmma_gemm", 64, 64, threads=128, shape=(128, 192, 128))


@case("tma_tile_copy", options=("-arch=compute_90",))
def tma_tile_copy(rng):
    rows, columns, tile = 37, 156, (16, 32)
    x = rng.standard_normal((rows, columns)).astype("f4")
    y = np.zeros_like(x)
    scale = np.float32(1.7)
    maps = [smemkern.TensorMap(array, tile) for array in (x, y)]
    blocks, tiles = -(-rows // tile[0]), -(-columns // tile[1])
    return one("tma_tile_copy<16, 32>", blocks, 64, [*maps, scale, tiles], (y, scale * x))
