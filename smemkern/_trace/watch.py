"""Watches the calls of a block of code: each runs on the emulator, with counts and hazards.

csrc/module calls call() for every operation and Kernel while a watch is open. Calls from all
threads of the process are watched.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    from .observe import Trace

_DEVICE_MEMORY = (2, 13)  # DLPack's numbers of CUDA memory: kDLCUDA, kDLCUDAManaged


class Watch:
    """The calls that were made while a watch was open.

    Attributes
    ----------
    traces : list of Trace
        One per call on the emulator, in the order in which the calls ended.
    on_gpu : int
        The number of calls that ran on a GPU, which counts nothing.
    """

    def __init__(self, hazards: bool = True) -> None:
        self.hazards_wanted = hazards
        self.traces: list[Trace] = []
        self.on_gpu = 0

    @property
    def requests(self) -> int:
        """Requests to shared memory, of all calls."""
        return sum(trace.shared_requests for trace in self.traces)

    @property
    def wavefronts(self) -> int:
        """Wavefronts of shared memory, of all calls."""
        return sum(trace.shared_wavefronts for trace in self.traces)

    @property
    def sectors(self) -> int:
        """Sectors of global memory, of all calls."""
        return sum(row.sectors for trace in self.traces for row in trace.global_)

    @property
    def hazards(self) -> int:
        """The number of hazards, of all calls."""
        return sum(len(trace.hazards) for trace in self.traces)

    @property
    def conflict_factor(self) -> float:
        """The largest factor of any line; 1.0 if shared memory was not used."""
        rows = (row for trace in self.traces for row in trace.shared)
        return max((row.factor for row in rows), default=1.0)


_open: list[Watch] = []
_lock = threading.Lock()


@contextmanager
def watch(*, hazards: bool = True) -> Iterator[Watch]:
    """Watch all calls of smemkern in a `with` block: their counts and hazards.

    A call with device None and arrays in host memory runs on the emulator, also if there is a GPU.
    It returns and writes what it does without the watch; hazards do not raise. A call that names a
    GPU, or has arrays in a GPU's memory, runs there and is only counted in `on_gpu`. Calls in other
    processes are not seen.

    Parameters
    ----------
    hazards : bool
        Look for hazards, too, which takes longer.

    Yields
    ------
    Watch

    Examples
    --------
    >>> with smemkern.watch() as seen:
    ...     c = smemkern.gemm(a, b, variant="tiled")
    >>> seen.hazards, seen.conflict_factor
    (0, 1.0)
    """
    mine = Watch(hazards)
    with _lock:
        _open.append(mine)
        _core.watch(True)
    try:
        yield mine
    finally:
        with _lock:
            _open[:] = [one for one in _open if one is not mine]
            _core.watch(False)


def seen(trace: Trace) -> None:
    """Adds a trace to the open watches."""
    for one in list(_open):
        one.traces.append(trace)


def call(what: str | _core.Kernel, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """Makes a call while a watch is open, and returns what it returns."""
    __tracebackhide__ = True
    from .observe import _traced

    watches = list(_open)
    if not watches or _on_gpu(args, kw):
        for one in watches:
            one.on_gpu += 1
        return _core.observe(what, args, kw)[0]
    trace = _traced(what, args, kw, hazards=any(one.hazards_wanted for one in watches))
    if trace.incomplete:  # the fault raises, as it does without the watch
        raise _core.LaunchError(trace.hazards[-1].message)
    return trace.result


def _on_gpu(args: tuple[Any, ...], kw: dict[str, Any]) -> bool:
    device = kw.get("device")
    if kw.get("devices") is not None:
        return True
    if device is not None:
        return device != "emu"
    return any(_in_device_memory(one) for one in (*args, kw.get("out")))


def _in_device_memory(given: object) -> bool:
    where = getattr(given, "__dlpack_device__", None)
    if where is not None:
        return where()[0] in _DEVICE_MEMORY
    return hasattr(given, "__cuda_array_interface__")
