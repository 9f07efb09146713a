"""Products and transposes of dask arrays, a chunk at a time by smemkern's kernels.

This adds no scheduler: the graphs are dask.array's own blockwise ones, so that they run wherever
dask does, on threads, on processes or on a cluster, and what a lost worker held is made again.
Each chunk is a call of smemkern.gemm or smemkern.transpose on the worker that holds it: chunks of
NumPy go to that worker's GPU and back, or to the emulator where it has none; chunks of CuPy stay
on their GPU.

K is not gathered. Each pair of chunks makes a partial product, and a tree adds those, so that a
worker needs memory for a few chunks whatever K is. Partial products of 16 bits are added in
float32 and rounded once.

>>> import dask.array as da, smemkern.dask  # doctest: +SKIP
>>> a, b = da.random.random((500, 300), chunks=99), da.random.random((300, 400), chunks=99)
>>> c = smemkern.dask.gemm(a, b, variant="swizzle").compute()  # doctest: +SKIP
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from . import _core

_INSTALL = "smemkern.dask needs dask: pip install 'smemkern[dask]'"


def gemm(
    a: Any,
    b: Any,
    *,
    variant: str = "auto",
    accuracy: str = "float32",
    alpha: float = 1.0,
    split_every: int | None = None,
    device: str | None = None,
    **params: int,
) -> Any:
    """alpha * (a @ b), lazily, with the shapes of numpy.matmul.

    Parameters
    ----------
    a, b : dask.array.Array of float32, float64, float16 or bfloat16
        Shapes (..., M, K) and (..., K, N), or 1-D; batches are broadcast. Both of NumPy chunks or
        both of CuPy chunks. Where chunks of K or of a batch differ, both are cut at the edges of
        either.
    variant, accuracy, alpha, **params
        As of smemkern.gemm, for the product of each pair of chunks.
    split_every : int, optional
        How many partial products one task of the tree over K adds, 2 or more; otherwise dask's
        setting, which is 4 unless it was changed. More make a tree of fewer levels, whose tasks
        need more memory.
    device : str, optional
        As of smemkern.gemm, on the workers: "cuda" is the first GPU that a worker sees.

    Returns
    -------
    dask.array.Array
        (..., M, N), in chunks of a's rows and b's columns, of NumPy or of CuPy as a and b are.

    Raises
    ------
    ImportError
        dask is not installed.
    TypeError, ValueError
        At once, before anything runs: what smemkern.gemm refuses of these types, shapes and
        parameters; arguments that are no dask arrays; chunks of unknown size.
    """
    da = _dask_array()
    _check_arrays("gemm", a=a, b=b)
    _check_shapes(a, b)
    if split_every is not None and operator.index(split_every) < 2:
        raise ValueError(f"split_every must be 2 or more, not {split_every}")
    options: dict[str, Any] = {"variant": variant, "alpha": alpha, **params}
    if variant == "auto" or accuracy != "float32":
        options["accuracy"] = accuracy
    empty = [np.empty((0, 0), x.dtype) for x in (a, b)]  # no kernel runs, and the rest is checked
    dtype = _core.gemm(*empty, device="emu", **options).dtype

    left = a[np.newaxis, :] if a.ndim == 1 else a
    right = b[:, np.newaxis] if b.ndim == 1 else b
    batch = max(left.ndim, right.ndim) - 2
    rows, k, columns = range(batch, batch + 3)
    partial = da.blockwise(
        _product,
        (*range(batch), rows, k, columns),
        left,
        (*range(batch - left.ndim + 2, batch), rows, k),
        right,
        (*range(batch - right.ndim + 2, batch), k, columns),
        adjust_chunks={k: 1},
        token="smemkern-gemm",
        dtype=dtype,
        meta=_meta(a, batch + 3, dtype),
        options=options | {"device": device},
    )
    product = da.reduction(
        partial,
        _unchanged,
        _summed,
        combine=_added,
        axis=k,
        split_every=split_every,
        concatenate=False,
        name="smemkern-gemm-sum",
        dtype=dtype,
        meta=_meta(a, batch + 2, dtype),
    )
    if a.ndim == 1:
        product = product[..., 0, :]
    return product[..., 0] if b.ndim == 1 else product


def transpose(a: Any, *, variant: str = "auto", device: str | None = None, **params: int) -> Any:
    """The last two axes swapped, lazily, each chunk in memory.

    Parameters
    ----------
    a : dask.array.Array of elements of 1, 2, 4, 8 or 16 bytes
        Shape (..., M, N), of NumPy chunks or of CuPy chunks.
    variant, **params
        As of smemkern.transpose, for each chunk.
    device : str, optional
        As of smemkern.transpose, on the workers.

    Returns
    -------
    dask.array.Array
        (..., N, M), its chunks those of a, transposed.

    Raises
    ------
    ImportError
        dask is not installed.
    TypeError, ValueError
        At once, before anything runs: what smemkern.transpose refuses; an argument that is no dask
        array; chunks of unknown size.
    """
    da = _dask_array()
    _check_arrays("transpose", a=a)
    options: dict[str, Any] = {"variant": variant, **params}
    dtype = _core.transpose(np.empty((0,) * a.ndim, a.dtype), device="emu", **options).dtype
    *batch, rows, columns = range(a.ndim)
    return da.blockwise(
        _transposed,
        (*batch, columns, rows),
        a,
        (*batch, rows, columns),
        token="smemkern-transpose",
        dtype=dtype,
        meta=_meta(a, a.ndim, dtype),
        options=options | {"device": device},
    )


# ---- tasks: functions of this module, so that workers find them by name ----


def _product(a: Any, b: Any, options: dict[str, Any]) -> Any:
    """A partial product, (..., m, 1, n): its place among those along K is the axis of length 1."""
    return _core.gemm(a, b, **options)[..., np.newaxis, :]


def _transposed(a: Any, options: dict[str, Any]) -> Any:
    return _core.transpose(a, **options)


def _unchanged(partial: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    return partial


def _added(partials: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of a list, in float32 at least. What tasks were given is not theirs to change."""
    if not isinstance(partials, list):
        return partials
    first, *others = partials
    if not others:
        return first
    total = np.add(first, others[0], dtype=np.result_type(first.dtype, np.float32))
    for other in others[1:]:
        np.add(total, other, out=total)
    return total


def _summed(partials: Any, axis: tuple[int, ...], keepdims: bool, dtype: Any) -> Any:
    total = _added(partials, axis, True).astype(dtype, copy=False)
    return total if keepdims else total.squeeze(axis)


# ---- what is refused before anything runs ----


def _dask_array() -> Any:
    try:
        import dask.array
    except ImportError as error:
        raise ImportError(_INSTALL) from error
    return dask.array


def _check_arrays(op: str, **arrays: Any) -> None:
    da = _dask_array()
    kinds = {}
    for name, x in arrays.items():
        if not isinstance(x, da.Array):
            raise TypeError(
                f"{op}: {name} must be a dask array, not {type(x).__name__}: "
                f"dask.array.from_array({name}, chunks=...) makes one"
            )
        if any(math.isnan(extent) for extents in x.chunks for extent in extents):
            raise ValueError(
                f"{op}: {name} has chunks of unknown size {x.chunks}; "
                f"{name}.compute_chunk_sizes() finds them out"
            )
        kinds[name] = type(x._meta)
        if kinds[name] is not np.ndarray and not hasattr(x._meta, "__cuda_array_interface__"):
            raise TypeError(
                f"{op}: {name} has chunks of type {_full_name(kinds[name])}; chunks of NumPy or "
                f"CuPy are taken: {name}.map_blocks(numpy.asarray) makes them"
            )
    if len(set(kinds.values())) > 1:
        given = " and ".join(f"{name}'s are {_full_name(kind)}" for name, kind in kinds.items())
        raise TypeError(
            f"{op}: chunks must be of one type, but {given}; map_blocks(cupy.asarray) moves them "
            "to the GPU"
        )


def _check_shapes(a: Any, b: Any) -> None:
    for name, x in (("a", a), ("b", b)):
        if x.ndim == 0:
            raise ValueError(f"gemm: {name} has 0 dimensions where at least 1 is needed")
    k = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != k:
        raise ValueError(
            f"gemm: a of shape {a.shape} has {a.shape[-1]} columns, b of shape {b.shape} has {k} "
            "rows; they must be the same"
        )
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"gemm: the batch dimensions of a {a.shape} and b {b.shape} could not be broadcast "
            "together"
        ) from None


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _meta(like: Any, ndim: int, dtype: Any) -> Any:
    """An empty array of the kind of `like`'s chunks: what dask knows a result by."""
    from dask.array.utils import meta_from_array

    return meta_from_array(like._meta, ndim=ndim, dtype=dtype)
