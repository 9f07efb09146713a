"""Kernels that are wrong on purpose, each with the one mistake that its name says.

They run on the emulator, without a compiler, and are what docs/hazards.md shows:

>>> import smemkern.mistakes
>>> for mistake in smemkern.mistakes.rows():
...     print(mistake.name, [row.kind for row in mistake.trace().hazards])  # doctest: +SKIP
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from . import _core
from ._observe import Trace, trace


class Mistake(NamedTuple):
    """A kernel, and a launch of it that shows what is wrong."""

    name: str
    summary: str
    grid: int
    block: int
    elements: int  # of x and y
    takes_n: bool = False  # the kernel's last argument is the number of elements
    shared_bytes: int = 0

    @property
    def source(self) -> str:
        """The CUDA C."""
        return self._read("cu")

    @property
    def ptx(self) -> str:
        return self._read("ptx")

    def _read(self, kind: str) -> str:
        folder = _core.config()["kernels"]
        return Path(folder, "mistakes", f"{self.name}.{kind}").read_text(encoding="utf-8")

    def arguments(self) -> tuple[object, ...]:
        """x, y and, where the kernel takes it, their length."""
        x = np.arange(self.elements, dtype=np.float32)
        return (x, np.zeros_like(x), *((self.elements,) if self.takes_n else ()))

    def trace(self) -> Trace:
        """A run of it: .hazards says what is wrong."""
        kernel = _core.Kernel(self.ptx, self.name)
        arguments = self.arguments()
        return trace(kernel, self.grid, self.block, *arguments, shared_bytes=self.shared_bytes)

    def run(self) -> None:
        """A checked call.

        Raises
        ------
        HazardError
        """
        kernel = _core.Kernel(self.ptx, self.name, check=True)
        kernel(self.grid, self.block, *self.arguments(), shared_bytes=self.shared_bytes)


_ROWS = (
    Mistake("missing_barrier", "no barrier between store and load", 2, 64, 128),
    Mistake(
        "divergent_barrier", "a barrier in a branch that part of a warp takes", 1, 64, 40, True
    ),
    Mistake(
        "padded_over_limit",
        "a tile whose padding pushes it over the limit",
        *(1, 256, 241 * 241),
        shared_bytes=241 * 242 * 4,
    ),
    Mistake("uninitialised", "a read of shared memory that nobody wrote", 2, 64, 128),
    Mistake("out_of_bounds", "no test whether the thread has an element", 2, 64, 100, True),
    Mistake("missing_wait", "a copy to shared memory that nobody waits for", 2, 64, 128),
    Mistake("early_release", "a lane that frees a tile its warp still reads", 1, 96, 128),
    Mistake("unawaited_refill", "a copier that does not wait until its tile is free", 1, 96, 128),
    Mistake("wrong_bytes", "a barrier that is told elements, and counts bytes", 1, 64, 64),
)


def rows() -> tuple[Mistake, ...]:
    """All of them."""
    return _ROWS
