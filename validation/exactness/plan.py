"""Which patterns go into one launch, and how their counts are told apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .operations import Operation
from .patterns import draw

WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
HARDWARE = "l1tex__data_pipe_lsu_wavefronts_mem_shared{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"

# Of each kind of operation: the SASS-level counters that add up to it, and the hardware's own.
SASS = {
    "load": ["ld"],
    "store": ["st"],
    "ldmatrix": ["ldsm"],
    "stmatrix": ["stsm"],
    "atomic": ["atom", "ld"],
    "copy_async": ["ldgsts"],
}


@dataclass
class Launch:
    operation: Operation
    table: np.ndarray  # (patterns, 2, 32)
    repeats: list[int]  # of each pattern: 1, base, base * base

    def digits(self, total: float) -> list[int]:
        """The patterns' own counts out of their sum."""
        out = []
        for repeat in reversed(self.repeats):
            out.append(int(total // repeat))
            total -= out[-1] * repeat
        return out[::-1]


def sass_metrics(kind: str) -> list[str]:
    return [WAVEFRONTS.format(op) for op in SASS[kind]]


def hardware_metrics(operation: Operation) -> list[str]:
    """The first one counts, the others are to be subtracted."""
    if operation.space == "global":
        plain = {"load": "ld", "store": "st"}.get(operation.kind)
        return [SECTORS.format(plain or ("red" if "_red_" in operation.name else "atom"))]
    if operation.kind == "copy_async":
        return []  # no counter of the hardware sees all of these writes
    return [HARDWARE.format(""), HARDWARE.format("_op_misc")]


def launches(operation: Operation, seed: int, count: int) -> list[Launch]:
    """An atomic can cost hundreds of wavefronts, anything else less than 64."""
    repeats = [1, 1024] if operation.kind == "atomic" else [1, 64, 4096]
    patterns = draw(operation, seed, count)
    step = len(repeats)
    return [
        Launch(operation, patterns[k : k + step], repeats[: len(patterns[k : k + step])])
        for k in range(0, count, step)
    ]
