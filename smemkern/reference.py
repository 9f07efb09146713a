"""NumPy reference implementations of each operation, which the kernels are checked against.

Variants of an operation differ in how they move data, not in their result. So all variants of gemm
share one reference, and so do those of transpose. Each probe has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray[Any, Any]

LANES = 32


def gemm(
    a: ArrayLike,
    b: ArrayLike,
    *,
    out: Array | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> Any:
    """alpha * (a @ b) + beta * out."""
    product = alpha * np.matmul(a, b)
    if out is None:
        return product
    out[...] = product if beta == 0 else product + beta * out
    return out


def gemm_bound(
    a: Array,
    b: Array,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    c: Array | None = None,
    product_bits: int | None = None,
    in_norm: bool = False,
) -> tuple[Array, Array]:
    """The exact result of gemm, and a bound of the rounding error of each element.

    (K + 2) eps (|alpha| |A||B| + |beta C|) bounds every summation order, with or without fused
    multiply-adds. It also covers tensor cores, which truncate instead of rounding. eps is that of
    the accumulator: float32's for 16-bit types, whose result is rounded once more. Products with
    fewer bits add 2^-bits |A||B|. `in_norm`: element (i, j) of |A||B| is the norm of row i of A
    times that of column j of B, which is more. `bound_keywords` has both of a variant.

    Returns
    -------
    exact, bound : ndarray
        float64 for inputs of up to 32 bits, else numpy.longdouble.
    """
    dtype = np.result_type(a, b)
    single = dtype.itemsize <= 4
    wide = np.float64 if single else np.longdouble
    a, b = a.astype(wide), b.astype(wide)
    exact = alpha * np.matmul(a, b)
    size = abs(alpha) * (_norms(a, b) if in_norm else np.matmul(abs(a), abs(b)))
    products = 0.0 if product_bits is None else 2.0**-product_bits * size
    if c is not None:
        exact, size = exact + beta * c.astype(wide), size + abs(beta * c.astype(wide))
    bound = (a.shape[-1] + 2) * np.finfo(np.float32 if single else np.float64).eps * size + products
    if dtype.itemsize == 2:
        last = _precision(dtype)
        bound = bound + float(last.eps) * abs(exact) + float(last.smallest_subnormal)
    return exact, bound


def bound_keywords(row: Any) -> dict[str, Any]:
    """The keywords of gemm_bound for results of a row of the registry.

    ozaki2 is accurate in norm. So is a row of fp16 terms, but its 2^-product_bits |A||B| has room
    for what small elements of N(0, 1) lose.
    """
    bits = row.product_bits or None
    return {"product_bits": bits, "in_norm": row.accuracy == "norm" and bits is None}


def _norms(a: Array, b: Array) -> Array:
    """The norm of each row of a times that of each column of b."""
    rows = np.sqrt(np.sum(a * a, axis=-1, keepdims=True))
    columns = np.sqrt(np.sum(b * b, axis=max(-2, -b.ndim), keepdims=True))
    return np.asarray(np.matmul(rows, columns))


def _precision(dtype: np.dtype[Any]) -> Any:
    if dtype.name != "bfloat16":
        return np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)


def transpose(a: ArrayLike, *, out: Array | None = None) -> Array:
    """The last two axes swapped."""
    result = np.ascontiguousarray(np.swapaxes(a, -1, -2))
    if out is None:
        return result
    out[...] = result
    return out


# ---- probes


def stride_read(x: Array, *, stride: int = 1) -> Array:
    """Lane l reads word l * stride of 64 * 32 words. Words beyond the end of x are 0."""
    words = np.zeros(64 * LANES, np.float32)
    words[: len(x)] = x[: len(words)]
    return words[stride * np.arange(LANES)]


def broadcast(x: Array, *, word: int = 0) -> Array:
    """All lanes read one word, which is 0 if it is beyond the end of x."""
    value = x[word] if word < len(x) else 0
    return np.full(LANES, value, np.float32)


def copy_async(x: Array) -> Array:
    """Twice x."""
    return 2 * x


def pipeline_async(x: Array, *, stages: int = 3) -> Array:
    """x * x + 1, rounded once like a fused multiply-add."""
    return (x.astype(np.float64) ** 2 + 1).astype(np.float32)


def large_shared(x: Array, *, kib: int = 96) -> Array:
    """Reverses each chunk of kib KiB; the last chunk may be shorter."""
    chunk = kib * 1024 // x.itemsize
    chunks = [x[i : i + chunk][::-1] for i in range(0, len(x), chunk)]
    return np.concatenate(chunks) if chunks else x.copy()


def coalescing(x: Array, *, stride: int = 1) -> Array:
    """Lane l reads word l * stride."""
    return x[stride * np.arange(LANES)]


def coalescing_random(x: Array, *, seed: int = 0) -> Array:
    """Lane l reads word hash(seed, l) mod n; the hash is MurmurHash3's finalizer."""
    h = np.uint32(seed) * np.uint64(0x9E3779B9) + np.arange(LANES, dtype=np.uint64)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = h & 0xFFFFFFFF
        h = (h ^ (h >> shift)) * np.uint64(factor)
    words: Array = x[(h & 0xFFFFFFFF) % np.uint64(len(x))]
    return words


_probes: dict[str, Callable[..., Array]] = {
    function.__name__: function
    for function in (
        *(stride_read, broadcast, copy_async, pipeline_async, large_shared),
        *(coalescing, coalescing_random),
    )
}


def probe(x: ArrayLike, *, variant: str = "stride_read", **params: int) -> Array:
    """The result of the probe of that name for x."""
    return _probes[variant](np.asarray(x), **params)


def twin(op: str, variant: str) -> Callable[..., Any]:
    """The NumPy reference of a variant."""
    if op == "gemm":
        return gemm
    return transpose if op == "transpose" else _probes[variant]
