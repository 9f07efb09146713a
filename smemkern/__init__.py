"""smemkern: the shared-memory laboratory for CUDA.

Every way to move tiles through shared memory is a kernel that runs from NumPy: on an NVIDIA GPU
(device "cuda"), or where there is none on a PTX emulator (device "emu") that counts what the
hardware would count.

>>> import numpy as np, smemkern
>>> a, b = np.random.rand(123, 77), np.random.rand(77, 211)
>>> c = smemkern.gemm(a, b, variant="swizzle")
>>> smemkern.trace("gemm", a, b, variant="conflicted")  # doctest: +SKIP
"""

from os.path import dirname as _dirname

from . import _core
from ._core import (
    CompileError,
    DriverTooOldError,
    Error,
    HazardError,
    Kernel,
    KernelImageError,
    LaunchError,
    NoDeviceError,
    UnsupportedInstructionError,
    __version__,
    gemm,
    probe,
    transpose,
)
from ._devices import Device, devices, show_config
from ._hazards import Hazard
from ._observe import Trace, _measure, trace
from ._profile import Profile, profile
from ._registry import Param, Variant, variants
from ._rows import GlobalRow, Request, SharedRow

_core.configure(images=f"{_dirname(__file__)}/images", kernels=f"{_dirname(__file__)}/kernels")

__all__ = [
    "CompileError",
    "Device",
    "DriverTooOldError",
    "Error",
    "GlobalRow",
    "Hazard",
    "HazardError",
    "Kernel",
    "KernelImageError",
    "LaunchError",
    "NoDeviceError",
    "Param",
    "Profile",
    "Request",
    "SharedRow",
    "Trace",
    "UnsupportedInstructionError",
    "Variant",
    "__version__",
    "_measure",
    "devices",
    "gemm",
    "probe",
    "profile",
    "show_config",
    "trace",
    "transpose",
    "variants",
]
