"""Products and transposes of dask arrays, chunk by chunk with smemkern's kernels.

The graphs are dask.array's own blockwise graphs. So they run on threads, processes or clusters, and
dask recomputes chunks of workers that are lost. Each chunk is a call of smemkern.gemm or
smemkern.transpose on the worker that holds it. NumPy chunks are copied to the worker's GPU and
back, or run on the emulator if it has none. CuPy chunks stay on their GPU.

Chunks along K are not gathered. Each pair of chunks gives a partial product, and a reduction tree
adds these. So a worker needs memory for only a few chunks, whatever K is. Partial products of
16-bit types are added in float32 and rounded once.

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

_INSTALL = "smemkern.dask needs dask: pip install '.[dask]' in the clone"


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
        Shapes (..., M, K) and (..., K, N), or 1-D; batches are broadcast. Both have NumPy chunks
        or both have CuPy chunks. If their chunks along K or a batch differ, both are split at the
        boundaries of either.
    variant, accuracy, alpha, **params
        For the product of each pair of chunks; see smemkern.gemm.
    split_every : int, optional
        The number of partial products that one task of the reduction over K adds, at least 2. None:
        dask's setting, by default 4. A larger number gives a tree of fewer levels, whose tasks need
        more memory.
    device : str, optional
        The device on the workers, see smemkern.gemm. "cuda" is the first GPU visible to a worker.

    Returns
    -------
    dask.array.Array
        (..., M, N), chunked like a's rows and b's columns; NumPy or CuPy chunks like a and b.

    Raises
    ------
    ImportError
        If dask is not installed.
    TypeError, ValueError
        At once, before any task runs: for types, shapes and parameters that smemkern.gemm rejects,
        for arguments that are not dask arrays, and for chunks of unknown size.
    """
    da = _dask_array()
    _check_arrays("gemm", a=a, b=b)
    _check_shapes(a, b)
    if split_every is not None and operator.index(split_every) < 2:
        raise ValueError(f"split_every must be 2 or more, not {split_every}")
    options: dict[str, Any] = {"variant": variant, "alpha": alpha, **params}
    if variant == "auto" or accuracy != "float32":
        options["accuracy"] = accuracy
    empty = [np.empty((0, 0), x.dtype) for x in (a, b)]  # checks arguments without running a kernel
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
    """A lazy copy with the last two axes swapped; each chunk is transposed in memory.

    Parameters
    ----------
    a : dask.array.Array of elements of 1, 2, 4, 8 or 16 bytes
        Shape (..., M, N), with NumPy chunks or CuPy chunks.
    variant, **params
        For the transpose of each chunk; see smemkern.transpose.
    device : str, optional
        The device on the workers; see smemkern.transpose.

    Returns
    -------
    dask.array.Array
        (..., N, M), with the transposed chunks of a.

    Raises
    ------
    ImportError
        If dask is not installed.
    TypeError, ValueError
        At once, before any task runs: for arguments that smemkern.transpose rejects, for an
        argument that is not a dask array, and for chunks of unknown size.
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


# ---- tasks: module-level functions, so that workers can unpickle them by name ----


def _product(a: Any, b: Any, options: dict[str, Any]) -> Any:
    """A partial product, (..., m, 1, n). The axis of length 1 numbers the chunks along K."""
    return _core.gemm(a, b, **options)[..., np.newaxis, :]


def _transposed(a: Any, options: dict[str, Any]) -> Any:
    return _core.transpose(a, **options)


def _unchanged(partial: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    return partial


def _added(partials: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of a list, in float32 or wider. Does not modify its inputs, as dask requires."""
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


# ---- checks before any task runs ----


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
                f"{op}: {name} must be a dask array, not {type(x).__name__}; create one with "
                f"dask.array.from_array({name}, chunks=...)"
            )
        if any(math.isnan(extent) for extents in x.chunks for extent in extents):
            raise ValueError(
                f"{op}: {name} has chunks of unknown size {x.chunks}; "
                f"call {name}.compute_chunk_sizes() first"
            )
        kinds[name] = type(x._meta)
        if kinds[name] is not np.ndarray and not hasattr(x._meta, "__cuda_array_interface__"):
            raise TypeError(
                f"{op}: {name} must have chunks of NumPy or CuPy, not of type "
                f"{_full_name(kinds[name])}; {name}.map_blocks(numpy.asarray) converts them"
            )
    if len(set(kinds.values())) > 1:
        given = " and ".join(f"{name}'s are {_full_name(kind)}" for name, kind in kinds.items())
        raise TypeError(
            f"{op}: chunks must be of one type, but {given}; map_blocks(cupy.asarray) copies them "
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
    """An empty array of the type of `like`'s chunks, from which dask infers the result's type."""
    from dask.array.utils import meta_from_array

    return meta_from_array(like._meta, ndim=ndim, dtype=dtype)
