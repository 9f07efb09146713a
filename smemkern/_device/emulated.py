"""The device that programs see under `smemkern run`: a GPU's attributes, as its driver states them.

Limits come from the table of architectures. Multiprocessors and clocks come from the table of
published ceilings, sizes of memory and L2 from the same documents. Attributes have the numbers
of CUdevice_attribute in cuda.h.
"""

from __future__ import annotations

from typing import NamedTuple

from . import architectures
from .architectures import KIB, architecture
from .published_ceilings import PUBLISHED, Published, _key

MEMORY = {  # GiB, and KiB of L2
    "V100": (16, 6 * KIB),
    "T4": (16, 4 * KIB),
    "A100 40GB": (40, 40 * KIB),
    "A100": (80, 40 * KIB),
    "A10": (24, 6 * KIB),
    "RTX 3090": (24, 6 * KIB),
    "L4": (24, 48 * KIB),
    "L40S": (48, 96 * KIB),
    "RTX 4090": (24, 72 * KIB),
    "RTX 5090": (32, 96 * KIB),
    "H100": (80, 50 * KIB),
    "H100 PCIe": (80, 50 * KIB),
}

# The same of every GPU: X dimension of blocks and grids, textures, features. A feature that is
# missing here is 0: not supported.
_COMMON = {
    1: architectures.THREADS_PER_BLOCK,
    2: 1024,  # of blocks: x, y, z
    3: 1024,
    4: 64,
    5: 2**31 - 1,  # of grids: x, y, z
    6: 65535,
    7: 65535,
    8: architectures.SHARED_PER_BLOCK_DEFAULT,
    9: 64 * KIB,  # constant memory
    10: architectures.WARP,
    11: 2**31 - 1,  # pitch of copies
    14: 512,  # alignment of textures
    15: 1,  # copies overlap kernels
    19: 1,  # host memory can be mapped
    21: 131072,  # textures in 1, 2, 3 dimensions
    22: 131072,
    23: 65536,
    24: 16384,
    25: 16384,
    26: 16384,
    27: 32768,  # ... of layers, and their number
    28: 32768,
    29: 2048,
    30: 512,  # alignment of surfaces
    31: 1,  # concurrent kernels
    33: 1,  # PCI bus
    40: 3,  # copy engines
    41: 1,  # unified addresses
    42: 32768,  # textures of layers in 1 dimension, and their number
    43: 2048,
    44: 1,  # tex2Dgather
    51: 32,  # alignment of a texture's pitch
    52: 32768,  # cubemaps, those of layers, and their number
    53: 32768,
    54: 2046,
    55: 32768,  # surfaces in 1, 2, 3 dimensions
    56: 131072,
    57: 65536,
    58: 16384,
    59: 16384,
    60: 16384,
    61: 32768,  # ... of layers, and cubemaps, as of textures
    62: 2048,
    63: 32768,
    64: 32768,
    65: 2048,
    66: 32768,
    67: 32768,
    68: 2046,
    69: 2**28,  # textures in linear memory: in 1 dimension; in 2, and their pitch
    70: 131072,
    71: 65000,
    72: 2097120,
    73: 32768,  # mipmaps in 2 dimensions, and in 1
    74: 32768,
    77: 32768,
    78: 1,  # stream priorities
    79: 1,  # L1 caches global and local memory
    80: 1,
    83: 1,  # managed memory
    89: 1,  # concurrent access to it
    90: 1,  # compute preemption
    95: 1,  # cooperative launches
    99: 1,  # cuMemHostRegister
    102: 1,  # virtual memory
    115: 1,  # memory pools, of the device and of the host
    142: 1,
    144: 1,
    125: 1,  # events of other processes
}


class EmulatedDevice(NamedTuple):
    name: str
    arch: str
    memory: int  # bytes
    attributes: dict[int, int]

    def described(self) -> str:
        """The form that csrc/driver/state.c reads."""
        listed = ",".join(f"{key}={value}" for key, value in sorted(self.attributes.items()))
        return f"{self.name};{self.memory};{listed}"


def names() -> list[str]:
    """The values of --gpu."""
    return [_key(row.name) for row in PUBLISHED]


def emulated_device(name: str) -> EmulatedDevice:
    """The device of a name such as "h100", or the first one of an architecture such as "sm_80".

    Raises
    ------
    ValueError
        If it is not in the table.
    """
    row = _row(name)
    if row is None:
        raise ValueError(f"--gpu {name!r} is not known; there are: {', '.join(names())}")
    lanes = architecture(row.arch)
    memory, l2 = MEMORY[row.name]
    major, minor = lanes.compute_capability
    own = {
        12: lanes.registers,  # per block
        13: int(row.boost * 1000),  # kHz
        16: row.multiprocessors,
        38: l2 * KIB,
        39: lanes.threads,
        75: major,
        76: minor,
        81: lanes.shared_per_sm,
        82: lanes.registers,
        87: lanes.fp32_lanes // lanes.fp64_lanes if lanes.fp64_lanes else 0,
        97: lanes.shared_per_block,
        106: lanes.blocks,
        111: lanes.shared_reserved,
        120: int(lanes.compute_capability >= (9, 0)),  # clusters
    }
    return EmulatedDevice(f"NVIDIA {row.name}", row.arch, memory << 30, _COMMON | own)


def _row(name: str) -> Published | None:
    for row in PUBLISHED:
        if _key(row.name) == _key(name):
            return row
    try:
        arch = architecture(name).sm
    except ValueError:
        return None
    return next((row for row in PUBLISHED if row.arch == arch), None)
