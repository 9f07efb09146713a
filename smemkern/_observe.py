"""Runs that report: what the hardware would count (trace), and how long it took (_measure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from ._table import Right, table

if TYPE_CHECKING:
    import numpy as np


class SharedRow(NamedTuple):
    """One instruction on shared memory, summed over all warps."""

    line: int  # of the CUDA source; of the PTX where it has no line information
    op: str  # "load", "store", "atomic", "copy_async"
    width: int  # bytes a lane
    requests: int  # warp instructions
    wavefronts: int  # what they cost
    ideal: int  # the fewest that their bytes could have cost
    worst: int  # wavefronts of the worst request
    file: str | None
    machine_requests: int  # the same two after ptxas joined neighbouring loads into wider ones
    machine_wavefronts: int

    @property
    def exact(self) -> bool:
        """Whether its rule gave the hardware's count in every comparison (docs/exactness.md).

        Of atomics most do; those that are loops in machine code depend on values, so none is
        called exact here.
        """
        return self.op in ("load", "store", "ldmatrix", "stmatrix")

    @property
    def factor(self) -> float:
        """Wavefronts for each that was needed: 1.0 is free of conflicts."""
        return self.wavefronts / self.ideal if self.ideal else 1.0


class GlobalRow(NamedTuple):
    """One instruction on global memory, summed over all warps."""

    line: int
    op: str
    width: int
    requests: int
    sectors: int  # of 32 bytes, that were moved
    ideal: int  # the fewest that could have held the bytes
    file: str | None


class Trace:
    """What a run on the emulator counted.

    Attributes
    ----------
    result
        What the operation returned.
    shared : tuple of SharedRow
    global_ : tuple of GlobalRow
    instructions : dict
        Warp instructions by opcode.
    warp_instructions : int
        Their sum.
    barriers : int
        Arrivals of warps at block barriers.
    """

    def __init__(self, result: object, raw: tuple[Any, ...]) -> None:
        sites, self.instructions, self.warp_instructions, self.barriers = raw
        self.result = result
        self.shared = tuple(
            SharedRow(line, op, width, requests, wavefronts, ideal, worst, file, *machine)
            for shared, file, line, op, width, requests, wavefronts, ideal, worst, *machine in sites
            if shared
        )
        self.global_ = tuple(
            GlobalRow(line, op, width, requests, sectors, ideal, file)
            for shared, file, line, op, width, requests, sectors, ideal, *_ in sites
            if not shared
        )

    @property
    def shared_requests(self) -> int:
        return sum(row.requests for row in self.shared)

    @property
    def shared_wavefronts(self) -> int:
        return sum(row.wavefronts for row in self.shared)

    @property
    def conflict_factor(self) -> float:
        """Shared wavefronts for each that was needed; nan where shared memory was not used."""
        ideal = sum(row.ideal for row in self.shared)
        return self.shared_wavefronts / ideal if ideal else float("nan")

    def __repr__(self) -> str:
        parts = []
        if self.shared:
            rows = [(_place(r), *r[1:7], Right(f"{r.factor:.2f}")) for r in self.shared]
            parts.append(table(("shared", *SharedRow._fields[1:7], "factor"), rows))
        if self.global_:
            sites = [(_place(r), *r[1:6]) for r in self.global_]
            parts.append(table(("global", *GlobalRow._fields[1:6]), sites))
        most = sorted(self.instructions.items(), key=lambda item: -item[1])
        lines = [f"{self.warp_instructions} warp instructions, {self.barriers} barrier arrivals"]
        lines += [f"{count:>12}  {opcode}" for opcode, count in most[:8]]
        if len(most) > 8:
            lines.append(f"{sum(count for _, count in most[8:]):>12}  in {len(most) - 8} others")
        parts.append("\n".join(lines))
        return "\n\n".join(parts)


def _place(row: SharedRow | GlobalRow) -> str:
    return f"{row.file or 'line'}:{row.line}"


def trace(what: str | _core.Kernel, *args: Any, **kw: Any) -> Trace:
    """Run something on the emulator and count.

    Parameters
    ----------
    what : "gemm", "transpose", "probe" or Kernel
    *args, **kw
        As for the operation, or for calling the Kernel.

    Returns
    -------
    Trace
        Exact counts, by the rules that Nsight Compute's counters of the same names confirm.

    Raises
    ------
    ValueError
        If there is no such operation, or `device` asks for a GPU.

    Examples
    --------
    >>> t = smemkern.trace("gemm", a, b, variant="conflicted")  # doctest: +SKIP
    >>> max(t.shared, key=lambda row: row.worst)  # doctest: +SKIP
    """
    result, _times, raw = _core.observe(what, args, kw, trace=True)
    assert raw is not None
    return Trace(result, raw)


def _measure(
    op: str | _core.Kernel, *args: Any, repeat: int = 5, **kw: Any
) -> tuple[np.ndarray[Any, Any], list[float]]:
    """Run an operation once, then `repeat` times more under the clock: (result, [ms, ...]).

    Private; for the demo and for benchmarks/. The milliseconds are the device's own: CUDA events
    around the launches, without transfers; the wall clock of the launches on "emu".

    _measure("gemm", a, b, variant="tiled", device="cuda", repeat=20, tile=16)
    """
    result, times, _raw = _core.observe(op, args, kw, repeat=repeat)
    return result, times
