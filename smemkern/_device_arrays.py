"""What is asked of the library that a device array is from, where no protocol answers."""

from __future__ import annotations

import sys
from typing import Any

DEFAULT_STREAM = (
    1  # the legacy one, which orders itself after what other libraries queue by default
)


def library_of(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def current_stream(array: Any) -> int:
    """The stream that the array's library uses now, for arrays that can only be asked by DLPack:
    what it queued there is done before our work, and our work before what it queues next."""
    library = library_of(array)
    if library == "torch":
        return int(sys.modules["torch"].cuda.current_stream(array.device).cuda_stream)
    if library == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return DEFAULT_STREAM


def empty(like: Any, shape: tuple[int, ...]) -> Any:
    """A new array of the same library, type and device, where arrays have no method `new_empty`.

    Raises
    ------
    TypeError
        If the library's arrays cannot be written, or it is not known here.
    """
    library = library_of(like)
    if library == "cupy":
        cupy = sys.modules["cupy"]
        with like.device:
            return cupy.empty(shape, like.dtype)
    if library == "numba":
        return sys.modules["numba"].cuda.device_array(shape, like.dtype)
    raise TypeError(
        f"arrays of {library} cannot be made here; pass one to write to as out=, or pass arrays of "
        "CuPy, PyTorch or Numba"
    )
