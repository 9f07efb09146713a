"""The exceptions of smemkern. It also raises Python's own TypeError, ValueError and MemoryError."""

from ._core import (
    CompileError,
    DriverTooOldError,
    Error,
    HazardError,
    KernelImageError,
    LaunchError,
    NoDeviceError,
    UnsupportedInstructionError,
)

__all__ = [
    "CompileError",
    "DriverTooOldError",
    "Error",
    "HazardError",
    "KernelImageError",
    "LaunchError",
    "NoDeviceError",
    "UnsupportedInstructionError",
]


def __dir__() -> list[str]:
    return sorted(__all__)
