"""What tests share: whether there is a GPU, and comparisons that a NaN cannot slip through, with
tolerances from K and the precision."""

import numpy as np

import smemkern

HAS_GPU = any(d.name.startswith("cuda") for d in smemkern.devices())


def assert_gemm(result, a, b, alpha=1.0, beta=0.0, c=None):
    """|result - exact| <= (K + 2) eps (|alpha| |A||B| + |beta C|), element by element.

    That bounds any order of summation, with or without fused multiply-adds. `exact` is computed in
    more precision than the inputs have.
    """
    wide = np.float64 if np.result_type(a, b) == np.float32 else np.longdouble
    exact = alpha * np.matmul(a, b, dtype=wide, casting="unsafe")
    size = abs(alpha) * np.matmul(abs(a), abs(b), dtype=wide, casting="unsafe")
    if c is not None:
        exact = exact + beta * c.astype(wide)
        size = size + abs(beta * c.astype(wide))
    expected = np.result_type(a, b).newbyteorder("=")
    assert result.dtype == expected
    assert np.shape(result) == np.shape(exact)
    error = abs(result.astype(wide) - exact)
    tolerance = (np.shape(a)[-1] + 2) * np.finfo(expected).eps * size
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
