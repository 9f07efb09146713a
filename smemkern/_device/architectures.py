"""The resources of a multiprocessor (SM) of each architecture, on which the models are based.

Sources, by the letters in each row:

G   CUDA C++ Programming Guide 13.0, "Compute Capabilities": technical specifications, the shared
    memory section of each architecture, and the table of arithmetic throughput.
O   cuda_occupancy.h of the CUDA Toolkit 13.0: block limits, allocation units, carve-outs.
T   libcu++'s arch_traits.h (NVIDIA/cccl): shared memory, threads and blocks per SM.
W   NVIDIA's white paper or tuning guide of the architecture: unified cache, arithmetic lanes.
M   measured: cuDeviceGetAttribute and timing on one H200.

A field is None if no source states it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .._render.document import Table
from .._render.rows import Rows

KIB = 1024


class Architecture(NamedTuple):
    """One compute capability. Sizes are in bytes; quantities are per SM unless noted otherwise."""

    sm: str  # "sm_90"
    name: str
    devices: tuple[str, ...]  # examples
    l1_and_shared: int  # the memory that L1 cache and shared memory share
    shared_per_sm: int
    shared_per_block: int  # the maximum, after opting in
    shared_reserved: int  # per block, by the driver
    shared_unit: int  # a block's shared memory is rounded up to a multiple of it
    carveouts: tuple[int, ...]  # possible sizes of the shared part
    warps: int
    blocks: int
    registers: int  # of 32 bits
    fp32_lanes: int  # fused multiply-adds per clock
    fp64_lanes: int | None
    source: str

    @property
    def compute_capability(self) -> tuple[int, int]:
        return divmod(int(self.sm[3:]), 10)

    @property
    def threads(self) -> int:
        return self.warps * WARP


# The same on all architectures (G, O).
WARP = 32
THREADS_PER_BLOCK = 1024
SHARED_PER_BLOCK_DEFAULT = 48 * KIB  # without opting in; also the limit of static shared memory
REGISTERS_PER_THREAD = 255
REGISTER_UNIT = 256  # a warp's registers are rounded up to a multiple of it
PARTITIONS = 4  # warp schedulers, each with a quarter of the registers
BANKS, BANK_BYTES = 32, 4

_VOLTA = (0, 8, 16, 32, 64, 96)
_TURING = (32, 64)
_A100 = (0, 8, 16, 32, 64, 100, 132, 164)
_SMALL = (0, 8, 16, 32, 64, 100)
_HOPPER = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)


def _row(
    sm: int,
    name: str,
    devices: str,
    unified: int,
    carveouts: tuple[int, ...],
    warps: int,
    blocks: int,
    fp32: int,
    fp64: int | None,
    source: str,
) -> Architecture:
    """Takes sizes in KiB. From sm_80 on the driver reserves 1 KiB of shared memory per block."""
    reserved = KIB if sm >= 80 else 0
    largest = carveouts[-1] * KIB
    return Architecture(
        f"sm_{sm}",
        name,
        tuple(devices.split(", ")),
        unified * KIB,
        largest,
        largest - reserved,
        reserved,
        128 if sm >= 80 else 256,
        tuple(size * KIB for size in carveouts),
        warps,
        blocks,
        65536,
        fp32,
        fp64,
        source,
    )


_TABLE = {
    row.sm: row
    for row in (
        _row(70, "Volta", "V100", 128, _VOLTA, 64, 32, 64, 32, "G O T W"),
        _row(72, "Volta", "Jetson Xavier", 128, _VOLTA, 64, 32, 64, None, "G O"),
        _row(75, "Turing", "T4, RTX 2080 Ti", 96, _TURING, 32, 16, 64, 2, "G O T W"),
        _row(80, "Ampere", "A100, A30", 192, _A100, 64, 32, 64, 32, "G O T W"),
        _row(86, "Ampere", "A10, A40, RTX 3090, RTX A6000", 128, _SMALL, 48, 16, 128, 2, "G O T W"),
        _row(87, "Ampere", "Jetson Orin", 192, _A100, 48, 16, 128, None, "G O T"),
        _row(89, "Ada", "L4, L40, L40S, RTX 4090", 128, _SMALL, 48, 24, 128, 2, "G O T W"),
        _row(90, "Hopper", "H100, H200, GH200", 256, _HOPPER, 64, 32, 128, 64, "G O T W M"),
        _row(100, "Blackwell", "B100, B200, GB200", 256, _HOPPER, 64, 32, 128, 64, "G O T"),
        _row(103, "Blackwell", "B300, GB300", 256, _HOPPER, 64, 32, 128, None, "G O T"),
        _row(110, "Blackwell", "Jetson Thor", 256, _HOPPER, 48, 24, 128, None, "G O T"),
        _row(120, "Blackwell", "RTX 5090, RTX PRO 6000", 128, _SMALL, 48, 24, 128, 2, "G O T W"),
        _row(121, "Blackwell", "GB10", 128, _SMALL, 48, 24, 128, 2, "G O T"),
    )
}
_ALIASES = {101: 110}  # CUDA 12 called compute capability 11.0 10.1


def _plain(device: str) -> str:
    return re.sub(r"^(nvidia|geforce|tesla)|[\s-]", "", device.lower())


_DEVICES = {_plain(device): row.sm for row in _TABLE.values() for device in row.devices}


def capability(arch: str | int | tuple[int, int]) -> int:
    """For example 90, from "sm_90", "sm_90a", "compute_90", "9.0", 90, (9, 0) or "H200"."""
    __tracebackhide__ = True
    number = None
    if isinstance(arch, tuple) and len(arch) == 2 and all(type(part) is int for part in arch):
        number = 10 * arch[0] + arch[1]
    elif isinstance(arch, int) and not isinstance(arch, bool):
        number = arch
    elif isinstance(arch, str):
        dotted = re.fullmatch(r"(\d+)\.(\d)", arch)
        named = re.fullmatch(r"(?:sm_|compute_)?(\d{2,3})[af]?", arch)
        if dotted:
            number = 10 * int(dotted[1]) + int(dotted[2])
        elif named:
            number = int(named[1])
        elif _plain(arch) in _DEVICES:
            number = int(_DEVICES[_plain(arch)][3:])
    else:
        raise TypeError(f"arch should be a string such as 'sm_90', not {type(arch).__name__}")
    if number is None:
        raise ValueError(
            f"arch {arch!r} is not known; write it as 'sm_90', '9.0', 90 or (9, 0), or name one of "
            f"the devices that smemkern.architectures() lists"
        )
    return _ALIASES.get(number, number)


def architecture(arch: str | int | tuple[int, int]) -> Architecture:
    """The row of one architecture. Raises ValueError, listing the known ones, if there is none."""
    __tracebackhide__ = True
    row = _TABLE.get(f"sm_{capability(arch)}")
    if row is None:
        raise ValueError(f"arch {arch!r} is not in the table; there are: {', '.join(_TABLE)}")
    return row


class Architectures(Rows[Architecture]):
    """All rows; printed with the most important fields, in KiB."""

    __slots__ = ()

    def _table(self) -> Table:
        header = "sm name devices l1+shared shared/SM /block warps blocks fp32 fp64".split()
        lines = [
            (
                row.sm,
                row.name,
                ", ".join(row.devices),
                *(b // KIB for b in (row.l1_and_shared, row.shared_per_sm, row.shared_per_block)),
                *(row.warps, row.blocks, row.fp32_lanes),
                "?" if row.fp64_lanes is None else row.fp64_lanes,
            )
            for row in self
        ]
        return Table(header, lines)


def architectures() -> Architectures:
    """The resources of a multiprocessor of each architecture.

    Returns
    -------
    Architectures
        Rows ordered by compute capability, sm_70 to sm_121. Fields are in bytes and printed in KiB.
        `source` names a row's sources by letters, which smemkern/_device/architectures.py explains.

    Examples
    --------
    >>> import smemkern
    >>> [row.shared_per_block // 1024 for row in smemkern.architectures() if row.sm == "sm_90"]
    [227]
    """
    return Architectures(_TABLE.values())
