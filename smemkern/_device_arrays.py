"""What is asked of the library that a device array is from, where no protocol answers.

Libraries that reuse memory in the order of the stream that we work on need nothing: what a call
still uses is used before it. JAX has an order of its own. So what a call uses of its arrays is held
until the kernels have ended, and a result becomes JAX's by DLPack, whose stream waits for them.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from . import _core

DEFAULT_STREAM = (
    1  # the legacy one, which orders itself after what other libraries queue by default
)


_KNOWN = {"torch": "torch", "cupy": "cupy", "numba": "numba", "jax": "jax", "jaxlib": "jax"}


def library_of(array: Any) -> str:
    """Also of a type that is derived from the library's."""
    names = [kind.__module__.partition(".")[0] for kind in type(array).__mro__]
    return next((_KNOWN[name] for name in names if name in _KNOWN), names[0])


def terms(array: Any) -> tuple[int, bool, bool]:
    """Of arrays that can only be asked by DLPack: the stream that their library uses now (what it
    queued there is done before our work, and our work before what it queues next), whether it
    frees memory in the order of that stream, and whether its arrays may be written."""
    library = library_of(array)
    if library == "torch":
        stream = sys.modules["torch"].cuda.current_stream(array.device).cuda_stream
        return int(stream), True, True
    if library == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr), True, True
    return DEFAULT_STREAM, False, library != "jax"


class Unsettled:
    """A new array that its library does not know to be written; by DLPack it will."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.moment: Any = None

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        if self.moment is not None:
            _core.moment_before(self.moment, stream)
        return self.array.__dlpack__(stream=stream, **options)


def empty(like: Any, shape: tuple[int, ...], ordinal: int) -> Any:
    """A new array of the same library, type and device, where arrays have no method `new_empty`.

    Raises
    ------
    TypeError
        If the library is not known here, and no namespace of the array API standard.
    """
    library = library_of(like)
    if library == "cupy":
        cupy = sys.modules["cupy"]
        with like.device:
            return cupy.empty(shape, like.dtype)
    if library == "numba":
        cuda = sys.modules["numba"].cuda
        with cuda.gpus[ordinal]:
            return cuda.device_array(shape, like.dtype)
    if library == "jax":
        make = sys.modules["jax"].numpy.empty
        return Unsettled(make(shape, dtype=like.dtype, device=like.device))
    if hasattr(like, "__array_namespace__"):
        make = like.__array_namespace__().empty
        return make(shape, dtype=like.dtype, device=like.device)
    raise TypeError(
        f"arrays of {library} cannot be made here; pass one to write to as out=, or pass arrays of "
        "CuPy, PyTorch, JAX or Numba"
    )


_held: list[tuple[Any, list[Any]]] = []  # moments, and what is used until then
_lock = threading.Lock()


def _hold(moment: Any, used: list[Any]) -> None:
    over: list[Any] = []
    with _lock:
        entries = [*_held, (moment, used)]
        _held.clear()
        for entry in entries:
            (over if _core.moment_has_passed(entry[0]) else _held).append(entry)
    over.clear()  # without the lock: what is let go of may call anything


def settle(written: Any, used: list[Any], ordinal: int, stream: int) -> Any:
    """Holds what kernels queued on the stream use; the result as the caller is to have it."""
    moment = _core.moment(ordinal, stream)
    _hold(moment, [*used, written])
    if not isinstance(written, Unsettled):
        return written
    written.moment = moment
    return sys.modules["jax"].dlpack.from_dlpack(written)
