"""The ceilings of common GPUs as NVIDIA publishes them: peaks, which a kernel does not reach.

Matrix rates are those of dense operands with float32 sums. float32 and float64 are two FLOPs per
lane and clock at boost; they agree with the documents. Shared memory is 128 bytes per SM and clock
(CUDA C++ Programming Guide, "Compute Capabilities").
"""

from __future__ import annotations

from typing import NamedTuple

from .architectures import architecture
from .ceilings import Ceilings


class Published(NamedTuple):
    name: str
    arch: str
    multiprocessors: int
    boost: float  # MHz
    memory: float  # GB/s
    float64_matrix: float | None  # these three in TFLOP/s
    tf32_matrix: float | None
    half_matrix: float  # float16; bfloat16 from sm_80 on
    source: str


PUBLISHED = (
    Published("V100", "sm_70", 80, 1530, 900, None, None, 125, "Tesla V100 white paper, SXM2"),
    Published("T4", "sm_75", 40, 1590, 320, None, None, 65, "Turing white paper"),
    Published("A100 40GB", "sm_80", 108, 1410, 1555, 19.5, 156, 312, "A100 white paper, SXM4"),
    Published("A100", "sm_80", 108, 1410, 2039, 19.5, 156, 312, "A100 data sheet, SXM4, 80 GB"),
    Published("A10", "sm_86", 72, 1695, 600, None, 62.5, 125, "A10 data sheet"),
    Published("RTX 3090", "sm_86", 82, 1695, 936, None, 35.6, 71.2, "GA102 white paper"),
    Published("L4", "sm_89", 58, 2040, 300, None, 60, 121, "L4 data sheet"),
    Published("L40S", "sm_89", 142, 2520, 864, None, 183, 362, "L40S data sheet"),
    Published("RTX 4090", "sm_89", 128, 2520, 1008, None, 82.6, 165.2, "Ada white paper"),
    Published(
        "RTX 5090", "sm_120", 170, 2407, 1792, None, 104.8, 209.5, "RTX Blackwell white paper"
    ),
    Published("H100", "sm_90", 132, 1980, 3352, 67, 494.7, 989.4, "H100 data sheet, SXM5"),
    Published("H100 PCIe", "sm_90", 114, 1755, 2039, 51.2, 378, 756, "H100 white paper, PCIe"),
)


def _key(name: str) -> str:
    """ "NVIDIA GeForce RTX 4090", "rtx4090" and "RTX 4090" are one name."""
    words = name.lower().replace("-", " ").replace("_", " ").split()
    return "".join(word for word in words if word not in ("nvidia", "geforce", "tesla"))


def published_ceilings(name: str) -> Ceilings | None:
    """None: the GPU is not in the table."""
    row = next((row for row in PUBLISHED if _key(row.name) == _key(name)), None)
    if row is None:
        return None
    lanes = architecture(row.arch)
    clocks = row.multiprocessors * row.boost * 1e6
    compute = {"float32": 2 * lanes.fp32_lanes * clocks}
    if lanes.fp64_lanes:
        compute["float64"] = 2 * lanes.fp64_lanes * clocks
    matrix = {
        "float64 matrix": row.float64_matrix,
        "tf32 matrix": row.tf32_matrix,
        "bfloat16 matrix": row.half_matrix if lanes.compute_capability >= (8, 0) else None,
        "float16 matrix": row.half_matrix,
    }
    return Ceilings(
        device=f"NVIDIA {row.name}",
        arch=row.arch,
        multiprocessors=row.multiprocessors,
        clock=row.boost * 1e6,
        compute=compute | {unit: rate * 1e12 for unit, rate in matrix.items() if rate},
        memory=row.memory * 1e9,
        shared=128 * clocks,
        pcie=None,
        source=f"published peaks, not measured: NVIDIA's {row.source}",
    )
