"""Cases of tensor cores: mma.sync with ldmatrix, and wmma."""

import numpy as np

from .cases import EPS, case, one


def _product(rng, name, cols_of_a_warp):
    M, N, K = 32, 48, 64
    A, B = rng.standard_normal((M, K)).astype("f2"), rng.standard_normal((K, N)).astype("f2")
    C = np.zeros((M, N), "f4")
    wide = A.astype("f8"), B.astype("f8")
    # Products are exact; tensor cores truncate sums, hence twice the error of rounding.
    tolerance = 2 * (K + 2) * EPS * (abs(wide[0]) @ abs(wide[1]))
    grid = (N // cols_of_a_warp, M // 16)
    return one(name, grid, 32, [A, B, C, N, K], (C, wide[0] @ wide[1], tolerance))


@case("mma_ldmatrix", same_bits=False)
def mma_ldmatrix(rng):
    return _product(rng, "mma_ldmatrix", 8)


@case("wmma_gemm", same_bits=False)
def wmma_gemm(rng):
    return _product(rng, "wmma_gemm", 16)
