"""Deliberately wrong kernels. Each has one mistake, after which it is named.

They run on the emulator and need no compiler. docs/hazards.md shows their hazards:

>>> import smemkern.mistakes
>>> for mistake in smemkern.mistakes.rows():
...     print(mistake.name, [row.kind for row in mistake.trace().hazards])  # doctest: +SKIP
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from . import _core
from ._trace.observe import Trace, trace


class Mistake(NamedTuple):
    """A kernel with a mistake, and a launch that reveals it."""

    name: str
    summary: str
    grid: int
    block: int
    elements: int  # of x and y
    takes_n: bool = False  # the kernel's last argument is the number of elements
    shared_bytes: int = 0

    @property
    def source(self) -> str:
        """The kernel's CUDA C source."""
        return self._read("cu")

    @property
    def ptx(self) -> str:
        return self._read("ptx")

    def _read(self, kind: str) -> str:
        folder = _core.config()["kernels"]
        return Path(folder, "mistakes", f"{self.name}.{kind}").read_text(encoding="utf-8")

    def arguments(self) -> tuple[object, ...]:
        """x, y and, if the kernel takes it, their length."""
        x = np.arange(self.elements, dtype=np.float32)
        return (x, np.zeros_like(x), *((self.elements,) if self.takes_n else ()))

    def trace(self) -> Trace:
        """Run it on the emulator; the result's .hazards list the mistake."""
        kernel = _core.Kernel(self.ptx, self.name)
        arguments = self.arguments()
        return trace(kernel, self.grid, self.block, *arguments, shared_bytes=self.shared_bytes)

    def run(self) -> None:
        """Call it with check=True.

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
        "a tile whose padding exceeds the shared-memory limit",
        *(1, 256, 241 * 241),
        shared_bytes=241 * 242 * 4,
    ),
    Mistake("uninitialised", "a read of shared memory that was never written", 2, 64, 128),
    Mistake("out_of_bounds", "no bounds check of the thread's index", 2, 64, 100, True),
    Mistake("missing_wait", "an asynchronous copy to shared memory without a wait", 2, 64, 128),
    Mistake("early_release", "a lane that releases a tile its warp still reads", 1, 96, 128),
    Mistake("unawaited_refill", "a producer that does not wait for a free tile", 1, 96, 128),
    Mistake("wrong_bytes", "an mbarrier that expects elements instead of bytes", 1, 64, 64),
)


def rows() -> tuple[Mistake, ...]:
    """All kernels with mistakes."""
    return _ROWS
