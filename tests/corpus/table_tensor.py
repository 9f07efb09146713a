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


# C++'s name of an element, of one in memory, and of a sum; dtypes of the latter two.
_HALF = ("__half", "__half", "float", "f2", "f4")
_HALF_SUMS = ("__half", "__half", "__half", "f2", "f2")
_BYTES = ("signed char", "signed char", "int", "i1", "i4")
_TF32 = ("precision::tf32", "float", "float", "f4", "f4")
_DOUBLE = ("double", "double", "double", "f8", "f8")


def _wmma_case(label, shape, types, rows):
    """rows: of A, B and C, whether they lie by rows."""

    @case("wmma_shapes", label=label, same_bits=False)
    def wmma_shapes(rng):
        (M, N, K), (element, stored, total, factor, sum_) = shape, types
        # Small integers: products and sums are exact in each of the types.
        A, B, C = (rng.integers(-3, 4, s).astype("i8") for s in ((M, K), (K, N), (M, N)))
        given = [
            np.ascontiguousarray(x if by_rows else x.T).astype(dtype)
            for x, by_rows, dtype in zip((A, B, C), rows, (factor, factor, sum_), strict=True)
        ]
        want = A @ B + C
        want = np.ascontiguousarray(want if rows[2] else want.T).astype(sum_)
        flags = ", ".join(str(int(by_rows)) for by_rows in rows)
        name = f"wmma_shapes<{M}, {N}, {K}, {element}, {stored}, {total}, {flags}>"
        return one(name, 1, 32, given, (given[2], want))


_SQUARE, _TALL, _FLAT = (16, 16, 16), (32, 8, 16), (8, 32, 16)
for _label, *_form in [
    ("half", _SQUARE, _HALF, (True, True, True)),
    ("half-columns", _SQUARE, _HALF, (False, False, False)),
    ("half-sums", _SQUARE, _HALF_SUMS, (True, False, True)),
    ("half-sums-columns", _FLAT, _HALF_SUMS, (False, True, False)),
    ("half-tall", _TALL, _HALF, (False, True, True)),
    ("half-flat", _FLAT, _HALF, (True, False, False)),
    ("bytes", _SQUARE, _BYTES, (True, False, True)),
    ("bytes-columns", _SQUARE, _BYTES, (False, True, False)),
    ("bytes-tall", _TALL, _BYTES, (True, True, True)),
    ("bytes-flat", _FLAT, _BYTES, (False, False, False)),
    ("tf32", (16, 16, 8), _TF32, (True, True, True)),
    ("tf32-columns", (16, 16, 8), _TF32, (False, False, False)),
    ("double", (8, 8, 4), _DOUBLE, (True, True, True)),
    ("double-columns", (8, 8, 4), _DOUBLE, (False, False, False)),
]:
    _wmma_case(_label, *_form)


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
