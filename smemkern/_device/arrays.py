"""Library-specific handling of device arrays, for what no protocol covers.

A library that reuses memory in the order of our stream needs nothing: the reuse comes after our
kernels. JAX reuses memory without ordering it against our streams. So a call holds references to
its JAX arrays until its kernels have finished. It returns its result through DLPack, which makes
JAX's stream wait for the kernels.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from .. import _core

# The legacy default stream, which waits for work that other libraries queue on theirs by default.
DEFAULT_STREAM = 1


_KNOWN = {"torch": "torch", "cupy": "cupy", "numba": "numba", "jax": "jax", "jaxlib": "jax"}


def library_of(array: Any) -> str:
    """The name of the library of an array, also if its type is a subclass of the library's."""
    names = [kind.__module__.partition(".")[0] for kind in type(array).__mro__]
    return next((_KNOWN[name] for name in names if name in _KNOWN), names[0])


def stream_info(array: Any) -> tuple[int, bool, bool]:
    """(current stream, stream-ordered, writable) of an array that supports only DLPack.

    The current stream is the one that the array's library uses now. Work that we queue on it runs
    after the library's earlier work and before its later work. Stream-ordered: the library frees
    memory in the order of that stream. Writable: its arrays may be written.
    """
    library = library_of(array)
    if library == "torch":
        stream = sys.modules["torch"].cuda.current_stream(array.device).cuda_stream
        return int(stream), True, True
    if library == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr), True, True
    return DEFAULT_STREAM, False, library != "jax"


class PendingArray:
    """A new JAX array that our kernels still write.

    Importing it by DLPack makes the consumer's stream wait for the event recorded after them.
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self.event: Any = None

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        if self.event is not None:
            _core.stream_wait_event(self.event, stream)
        return self.array.__dlpack__(stream=stream, **options)


def empty(like: Any, shape: tuple[int, ...], ordinal: int) -> Any:
    """A new array of the same library, type and device, for arrays without a method `new_empty`.

    Raises
    ------
    TypeError
        If the library is unknown and does not implement the array API standard.
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
        return PendingArray(make(shape, dtype=like.dtype, device=like.device))
    if hasattr(like, "__array_namespace__"):
        make = like.__array_namespace__().empty
        return make(shape, dtype=like.dtype, device=like.device)
    raise TypeError(
        f"smemkern cannot create arrays of {library}; pass the array to write as out=, or pass "
        "arrays of CuPy, PyTorch, JAX or Numba"
    )


_held: list[tuple[Any, list[Any]]] = []  # events, and the objects used until they complete
_lock = threading.Lock()


def _hold(event: Any, used: list[Any]) -> None:
    complete: list[Any] = []
    with _lock:
        entries = [*_held, (event, used)]
        _held.clear()
        for entry in entries:
            (complete if _core.event_query(entry[0]) else _held).append(entry)
    complete.clear()  # outside the lock: destructors may run arbitrary code


def finalize(written: Any, used: list[Any], ordinal: int, stream: int) -> Any:
    """Keeps what the queued kernels use alive until they finish; returns the caller's result."""
    event = _core.event_record(ordinal, stream)
    _hold(event, [*used, written])
    if not isinstance(written, PendingArray):
        return written
    written.event = event
    return sys.modules["jax"].dlpack.from_dlpack(written)
