"""What smemkern raises beside Python's own TypeError, ValueError, MemoryError and KeyboardInterrupt."""

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
