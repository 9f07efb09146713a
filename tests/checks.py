"""What tests share: whether there is a GPU, and comparisons that a NaN cannot slip through, with
tolerances from K and the precision."""

import ml_dtypes
import numpy as np

import smemkern

HAS_GPU = any(d.name.startswith("cuda") for d in smemkern.devices())


def precision(dtype):
    """numpy.finfo, of bfloat16 too."""
    if np.dtype(dtype).name == "bfloat16":
        return ml_dtypes.finfo(dtype)
    return np.finfo(dtype)


def assert_gemm(result, a, b, alpha=1.0, beta=0.0, c=None, row=None):
    """|result - exact| <= (K + 2) eps (|alpha| |A||B| + |beta C|), element by element.

    That bounds any order of summation, with or without fused multiply-adds, and tensor cores, which
    truncate where others round. eps is that of the sums: of 16-bit types it is float32's, and then
    the result is rounded once. A row of the table whose products have fewer bits says so.
    `exact` is computed in more precision than the inputs have.
    """
    expected = np.result_type(a, b).newbyteorder("=")
    single = expected.itemsize <= 4
    wide = np.float64 if single else np.longdouble
    a, b = a.astype(wide), b.astype(wide)
    exact = alpha * np.matmul(a, b)
    size = abs(alpha) * np.matmul(abs(a), abs(b))
    products = 2.0**-row.product_bits * size if row is not None and row.product_bits else 0
    if c is not None:
        exact = exact + beta * c.astype(wide)
        size = size + abs(beta * c.astype(wide))
    assert result.dtype == expected
    assert np.shape(result) == np.shape(exact)
    error = abs(result.astype(wide) - exact)
    tolerance = (np.shape(a)[-1] + 2) * np.finfo("f4" if single else "f8").eps * size + products
    if expected.itemsize == 2:
        last = precision(expected)
        tolerance = tolerance + float(last.eps) * abs(exact) + float(last.smallest_subnormal)
    good = error <= tolerance  # False where anything is NaN
    assert np.all(good), f"{np.count_nonzero(~good)} of {good.size} elements are off"


def assert_same_bits(result, expected):
    """Equal shape, dtype and bytes; NaNs with their payload."""
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    raw = f"V{result.itemsize}"  # a copy of a structured array may leave its padding out
    assert result.view(raw).tobytes() == expected.view(raw).tobytes()


def random_matrix(rng, shape, dtype):
    return rng.standard_normal(shape).astype(dtype)
