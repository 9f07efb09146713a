"""What gemm and transpose ask of the library that a device array is from."""

from __future__ import annotations

import sys
from typing import Any

DEFAULT_STREAM = (
    1  # the legacy one, which orders itself after what other libraries queue by default
)


def library_of(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def current_stream(array: Any) -> int:
    """The stream that the array's library uses now: what it queued there is done before our work,
    and our work before what it queues next."""
    library = library_of(array)
    if library == "torch":
        return int(sys.modules["torch"].cuda.current_stream(array.device).cuda_stream)
    if library == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return DEFAULT_STREAM


def empty(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A new array of the same library on the same device; dtype is NumPy's.

    Raises
    ------
    TypeError
        If the library's arrays cannot be written, or it is not known here.
    """
    library = library_of(like)
    if library == "torch":
        torch = sys.modules["torch"]
        same = dtype.kind == "V" or like.element_size() == dtype.itemsize
        type_ = like.dtype if same else getattr(torch, dtype.name)
        return torch.empty(shape, dtype=type_, device=like.device)
    if library == "cupy":
        cupy = sys.modules["cupy"]
        with like.device:
            return cupy.empty(shape, like.dtype if dtype.kind == "V" else dtype)
    if library == "numba":
        cuda = sys.modules["numba"].cuda

        return cuda.device_array(shape, like.dtype if dtype.kind == "V" else dtype)
    raise TypeError(
        f"arrays of {library} cannot be made here; pass one to write to as out=, or pass arrays of "
        "CuPy, PyTorch or Numba"
    )
