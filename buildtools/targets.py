"""What a build makes: for which GPUs machine code, and which images.

$SMEMKERN_CUDA_ARCHS says it. Everything is made where the result may go elsewhere, and by default
what this machine runs: machine code for its GPUs, and without any the PTX that the emulator runs.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Collection
from dataclasses import dataclass

from .toolkit import Assembler

VARIABLE = "SMEMKERN_CUDA_ARCHS"
# By binary compatibility these run on every GPU of compute capability 8.x, 9.0, 10.x and 12.x.
ALL = ("80", "90a", "100", "120")
OLDEST = 80

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


class TargetError(ValueError):
    """$SMEMKERN_CUDA_ARCHS cannot be satisfied."""


@dataclass(frozen=True)
class Targets:
    architectures: tuple[str, ...]  # of the machine code
    native: bool = False

    @property
    def emulator_only(self) -> bool:
        """Of each image its newest PTX, and no images whose parameters are tuned for a GPU."""
        return self.native and not self.architectures

    def __str__(self) -> str:
        code = ", ".join(f"sm_{arch}" for arch in self.architectures) or "PTX only"
        return f"{code}, for this machine" if self.native else code


def number(architecture: str) -> int:
    return int(architecture.rstrip("af"))


def wants_machine_code() -> bool:
    """Whether the build needs ptxas and fatbinary; fat binaries of PTX alone need the latter."""
    return not _is_native(_given()) or bool(_capabilities())


def read(assembler: Assembler | None) -> Targets:
    """The targets in $SMEMKERN_CUDA_ARCHS, as far as ptxas knows them."""
    text, known = _given(), assembler.architectures if assembler else frozenset()
    if _is_native(text):
        return Targets(_of_these_gpus(known), native=True)
    if text.lower() == "all":
        return Targets(tuple(arch for arch in ALL if arch in known))
    if text.lower() == "none" or assembler is None:
        return Targets(())
    return Targets(_listed(text, assembler))


def _given() -> str:
    return os.environ.get(VARIABLE, "native").strip()


def _is_native(text: str) -> bool:
    return text.lower() == "native"


def _listed(text: str, assembler: Assembler) -> tuple[str, ...]:
    wanted = tuple(
        dict.fromkeys(re.sub(r"sm_?|\.", "", w) for w in re.split(r"[;,\s]+", text) if w)
    )
    if not wanted:
        raise TargetError(
            f'{VARIABLE} is empty; give a list ("90a", "80;90a;120"), "native", "all" or "none"'
        )
    for arch in wanted:
        if arch not in assembler.architectures:
            known = ", ".join(sorted(assembler.architectures, key=lambda a: (number(a), a)))
            raise TargetError(
                f"{VARIABLE}={text}: {assembler.ptxas} does not support {arch!r}; it supports "
                f"{known}"
            )
        if number(arch) < OLDEST:
            raise TargetError(
                f"{VARIABLE}={text}: {arch} is too old; the kernels need {OLDEST} or newer"
            )
    return wanted


def _of_these_gpus(known: Collection[str]) -> tuple[str, ...]:
    """The architectures of this machine's GPUs. The driver compiles PTX for those that ptxas does
    not know."""
    found = dict.fromkeys(f"{major}{minor}" for major, minor in _capabilities())
    names = [f"{arch}a" if f"{arch}a" in ALL else arch for arch in found]
    return tuple(arch for arch in names if arch in known and number(arch) >= OLDEST)


def _capabilities() -> list[tuple[int, int]]:
    """The compute capabilities of the GPUs that the driver shows, if there is a driver."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count, value = ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return []

    def attribute(which: int, device: int) -> int:
        return 0 if cuda.cuDeviceGetAttribute(ctypes.byref(value), which, device) else value.value

    return [(attribute(_MAJOR, device), attribute(_MINOR, device)) for device in range(count.value)]
