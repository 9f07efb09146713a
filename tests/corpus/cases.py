"""What a kernel of the corpus is run with and what has to come out: the parts of the tables.

A case is a function of a random generator that returns Work: launches, and arrays beside what
NumPy says they must hold afterwards. Tolerances are absolute and come from eps and the length of a
sum, as an array where the elements differ; 0 means equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).parent
EPS = float(np.finfo(np.float32).eps)
EPS64 = float(np.finfo(np.float64).eps)


class Launch(NamedTuple):
    name: str | None  # as C++ names the kernel; of PTX None, the only one
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    args: Sequence[Any]
    shared_bytes: int = 0


class Result(NamedTuple):
    got: Any  # one of the arguments, after the launches, or what makes an array of it
    want: np.ndarray
    tolerance: Any = 0.0


class Work(NamedTuple):
    launches: list[Launch]
    results: list[Result]


class Case(NamedTuple):
    name: str
    file: Path
    make: Callable[[np.random.Generator], Work]
    options: tuple[str, ...]  # --fmad=false where ptxas would else fuse a product and a difference
    same_bits: bool  # on both devices: no approximate instruction, no order that a race decides


CASES: list[Case] = []


def case(
    file: str, *, label: str = "", options: tuple[str, ...] = (), same_bits: bool = True
) -> Callable[[Callable[..., Work]], Callable[..., Work]]:
    """Enters a function into the table, under the name of its source (.cu unless said)."""

    def enter(make: Callable[..., Work]) -> Callable[..., Work]:
        path = HERE / (file if file.endswith(".ptx") else f"{file}.cu")
        name = f"{path.stem}-{label}" if label else path.stem
        CASES.append(Case(name, path, make, options, same_bits))
        return make

    return enter


def one(name, grid, block, args, *results, shared_bytes=0) -> Work:
    """One launch. A result is (array, reference) or (array, reference, tolerance)."""
    launch = Launch(name, grid, block, args, shared_bytes)
    return Work([launch], [Result(*result) for result in results])


def sum_error(terms: np.ndarray, axis: int = -1, eps: float = EPS) -> np.ndarray:
    """Bounds the rounding of a sum of rounded terms, in any order."""
    return (np.shape(terms)[axis] + 2) * eps * np.abs(terms).sum(axis=axis, dtype=np.float64)
