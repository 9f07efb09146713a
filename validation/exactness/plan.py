"""Assigns patterns to launches, and splits the count of a launch into those of its patterns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .operations import Operation
from .patterns import draw

WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
HARDWARE = "l1tex__data_pipe_lsu_wavefronts_mem_shared{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"

# By kind of operation: the SASS-level counters whose sum is its count, and the hardware counters.
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
    repeats: list[int]  # per pattern: 1, base, base * base, ...

    def digits(self, total: float) -> list[int]:
        """The count of each pattern: the digits of the sum."""
        out = []
        for repeat in reversed(self.repeats):
            out.append(int(total // repeat))
            total -= out[-1] * repeat
        return out[::-1]


def sass_metrics(kind: str) -> list[str]:
    return [WAVEFRONTS.format(op) for op in SASS[kind]]


def hardware_metrics(operation: Operation) -> list[str]:
    """Hardware counters: the first is the count, the others are subtracted from it."""
    if operation.space == "global":
        plain = {"load": "ld", "store": "st"}.get(operation.kind)
        return [SECTORS.format(plain or ("red" if "_red_" in operation.name else "atom"))]
    if operation.kind == "copy_async":
        return []  # no hardware counter includes all of these writes
    return [HARDWARE.format(""), HARDWARE.format("_op_misc")]


def launches(operation: Operation, seed: int, count: int) -> list[Launch]:
    """An atomic can cost hundreds of wavefronts, any other operation less than 64."""
    repeats = [1, 1024] if operation.kind == "atomic" else [1, 64, 4096]
    patterns = draw(operation, seed, count)
    step = len(repeats)
    return [
        Launch(operation, patterns[k : k + step], repeats[: len(patterns[k : k + step])])
        for k in range(0, count, step)
    ]
