"""smemkern: the shared-memory laboratory for CUDA.

Each technique for moving tiles through shared memory is a kernel that takes NumPy arrays. It runs
on an NVIDIA GPU (device "cuda") or on a PTX emulator (device "emu"), which needs no GPU and counts
what the hardware's counters would count.

>>> import numpy as np, smemkern
>>> a, b = np.random.rand(123, 77), np.random.rand(77, 211)
>>> c = smemkern.gemm(a, b, variant="swizzle")
>>> smemkern.trace("gemm", a, b, variant="conflicted")  # doctest: +SKIP
"""

from importlib import import_module as _import_module
from os.path import dirname as _dirname
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import _core
from ._banks.request import Request
from ._core import (
    CompileError,
    DriverTooOldError,
    Error,
    HazardError,
    Kernel,
    KernelImageError,
    LaunchError,
    NoDeviceError,
    Surface,
    TensorMap,
    Texture,
    UnsupportedInstructionError,
    __version__,
    gemm,
    probe,
    transpose,
)
from ._device.devices import Device, devices, show_config
from ._trace.hazards import Hazard
from ._trace.observe import Trace, _measure, check, trace
from ._trace.rows import GlobalRow, SharedRow
from ._trace.watch import Watch, watch
from ._variants.registry import Param, Variant, variants

if _TYPE_CHECKING:
    from . import banks, coalescing, dask, plot, widgets
    from ._device.architectures import architectures
    from ._device.ceilings import ceilings
    from ._device.occupancy import occupancy
    from ._device.transfer import empty_cache, last_transfer
    from ._judge.judge import Judgement, judge
    from ._performance.bench import bench
    from ._performance.profile import Profile, profile
    from ._performance.roofline import roofline
    from ._replay.replay import Replay, replay
    from ._variants.choices import choices

_core.configure(images=f"{_dirname(__file__)}/images", kernels=f"{_dirname(__file__)}/kernels")

# Imported on first use: they are slow to import, and running kernels does not need them.
_MODULES = ("banks", "coalescing", "dask", "plot", "widgets")
_FUNCTIONS = {
    "architectures": "_device.architectures",
    "bench": "_performance.bench",
    "ceilings": "_device.ceilings",
    "choices": "_variants.choices",
    "Judgement": "_judge.judge",
    "Profile": "_performance.profile",
    "empty_cache": "_device.transfer",
    "judge": "_judge.judge",
    "last_transfer": "_device.transfer",
    "occupancy": "_device.occupancy",
    "profile": "_performance.profile",
    "Replay": "_replay.replay",
    "replay": "_replay.replay",
    "roofline": "_performance.roofline",
}


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    if name not in _FUNCTIONS:
        raise AttributeError(f"module 'smemkern' has no attribute {name!r}")
    found = getattr(_import_module(f".{_FUNCTIONS[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "CompileError",
    "Device",
    "DriverTooOldError",
    "Error",
    "GlobalRow",
    "Hazard",
    "HazardError",
    "Judgement",
    "Kernel",
    "KernelImageError",
    "LaunchError",
    "NoDeviceError",
    "Param",
    "Profile",
    "Replay",
    "Request",
    "SharedRow",
    "Surface",
    "TensorMap",
    "Texture",
    "Trace",
    "UnsupportedInstructionError",
    "Variant",
    "Watch",
    "__version__",
    "_measure",
    "architectures",
    "banks",
    "bench",
    "ceilings",
    "check",
    "choices",
    "coalescing",
    "dask",
    "devices",
    "empty_cache",
    "gemm",
    "judge",
    "last_transfer",
    "occupancy",
    "plot",
    "probe",
    "profile",
    "replay",
    "roofline",
    "show_config",
    "trace",
    "transpose",
    "variants",
    "watch",
    "widgets",
]
