"""Cases of PTX that other compilers made: nvcc, Numba and Triton. How, stands beside it in ptx/.

nvcc_debug.ptx is local_array.cu by `nvcc -ptx -arch=compute_80 -G`; nvcc_lineinfo.ptx is
sort_bitonic.cu by `nvcc -ptx -arch=compute_75 -lineinfo`, instantiated for 128.
"""

import numpy as np

from .cases import EPS, case, one, sum_error


def _numba(array):
    """An array as Numba passes it: memory, parent, size, element, data, shape, strides."""
    return [None, None, array.size, array.itemsize, array, *array.shape, *array.strides]


def _fused(a, x, y):
    return (np.float64(a) * x + y).astype("f4")


@case("ptx/nvcc_debug.ptx")
def nvcc_debug(rng):
    x = rng.integers(0, 2**16, 200, dtype="u2")
    medians = np.zeros_like(x)
    want = np.median(np.stack([np.roll(x, -k) for k in range(9)]), axis=0).astype("u2")
    return one(None, 2, 128, [x, medians, 200], (medians, want))


@case("ptx/nvcc_lineinfo.ptx")
def nvcc_lineinfo(rng):
    keys, values = rng.permutation(256).astype("f4").reshape(2, 128), np.zeros((2, 128), "i4")
    values[:] = np.arange(128)
    order = np.argsort(keys, axis=1).astype("i4")
    return one(None, 2, 128, [keys, values], (keys, np.sort(keys, axis=1)), (values, order))


@case("ptx/numba_axpy.ptx")
def numba_axpy(rng):
    x, y = rng.standard_normal((2, 300)).astype("f4")
    a = np.float32(1.7)
    want = _fused(a, x, y)
    return one(None, 3, 128, [a, *_numba(x), *_numba(y)], (y, want))


@case("ptx/numba_block_sums.ptx")
def numba_block_sums(rng):
    x, sums = rng.standard_normal(250).astype("f4"), np.zeros(4, "f4")
    parts = np.r_[x, np.zeros(6, "f4")].reshape(4, 64)
    result = (sums, parts.sum(1, dtype="f8"), sum_error(parts))
    return one(None, 4, 64, [*_numba(x), *_numba(sums)], result)


@case("ptx/numba_histogram.ptx")
def numba_histogram(rng):
    x, bins = rng.integers(0, 1000, 2000, dtype="i4"), np.zeros(16, "i4")
    want = np.bincount(x % 16, minlength=16).astype("i4")
    return one(None, 3, 64, [*_numba(x), *_numba(bins)], (bins, want))


@case("ptx/numba_matmul.ptx")
def numba_matmul(rng):
    a, b = rng.standard_normal((13, 9)).astype("f4"), rng.standard_normal((9, 11)).astype("f4")
    c = np.zeros((13, 11), "f4")
    tolerance = 11 * EPS * (abs(a).astype("f8") @ abs(b))
    args = [*_numba(a), *_numba(b), *_numba(c)]
    return one(None, (2, 2), (8, 8), args, (c, a.astype("f8") @ b, tolerance))


def _triton(grid, args, *results, shared_bytes=0):
    """Four warps; the last two arguments point to scratch memory that these do not need."""
    return one(None, grid, 128, [*args, None, None], *results, shared_bytes=shared_bytes)


@case("ptx/triton_axpy.ptx")
def triton_axpy(rng):
    x, y = rng.standard_normal((2, 300)).astype("f4")
    a = np.float32(1.7)
    want = _fused(a, x, y)
    return _triton(3, [x, y, a, 300], (y, want))


@case("ptx/triton_softmax.ptx", same_bits=False)
def triton_softmax(rng):
    x = (4 * rng.standard_normal((5, 100))).astype("f4")
    y = np.zeros_like(x)
    e = np.exp(x - x.max(1, keepdims=True, initial=-np.inf).astype("f8"))
    want = e / e.sum(1, keepdims=True)
    return _triton(5, [x, y, 100], (y, want, (40 + 100) * 4 * EPS * want), shared_bytes=16)


@case("ptx/triton_scan.ptx")
def triton_scan(rng):
    x = rng.integers(-(2**31), 2**31, 201, dtype="i4")
    y = np.zeros_like(x)
    return _triton(1, [x, y, 201], (y, np.cumsum(x, dtype="i4")), shared_bytes=32)


@case("ptx/triton_transpose.ptx")
def triton_transpose(rng):
    x = rng.standard_normal((45, 70)).astype("f2")
    y = np.zeros((70, 45), "f2")
    return _triton((2, 3), [x, y, 45, 70], (y, x.T), shared_bytes=2048)


@case("ptx/triton_matmul.ptx")
def triton_matmul(rng):
    a, b = rng.standard_normal((35, 20)).astype("f4"), rng.standard_normal((20, 50)).astype("f4")
    c = np.zeros((35, 50), "f4")
    tolerance = 22 * EPS * (abs(a).astype("f8") @ abs(b))
    result = (c, a.astype("f8") @ b, tolerance)
    return _triton((3, 4), [a, b, c, 35, 50, 20], result, shared_bytes=4096)
