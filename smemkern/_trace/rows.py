"""The rows of a trace, each with its worst request."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._banks.request import Request
from .._banks.wavefronts import LANES
from .._render.document import Node, Table
from .._render.rows import Rows, factor

if TYPE_CHECKING:
    from .machine_code import Machine


class SharedRow(NamedTuple):
    """One source line's operation on shared memory, summed over all warps.

    A line of an inlined function has a row for each place from which it was called.
    """

    line: int  # of the CUDA source, or of the PTX if that has no line information
    # "load", "store", "atomic", "copy_async", "ldmatrix", "stmatrix", "bulk", "matrix"; and
    # "remote_load", "remote_store", "remote_atomic": shared memory of the cluster's other blocks
    op: str
    width: int  # bytes per lane
    requests: int  # warp instructions
    wavefronts: int  # their cost
    ideal: int  # the fewest wavefronts that could serve their bytes
    worst: int  # wavefronts of the worst request
    file: str | None
    bytes: int = 0  # accessed by active lanes
    direction: str = "read"  # "read", "write", "both"
    callers: tuple[tuple[str | None, int], ...] = ()  # (file, line) of the calls, innermost first
    worst_request: Request | None = None  # the first that cost `worst`
    machine_requests: int = 0  # requests after ptxas merges adjacent accesses into vectors
    machine_wavefronts: int = 0  # wavefronts after ptxas merges adjacent accesses into vectors
    machine_ideal: int = 0  # Nsight Compute's ideal of these (docs/exactness.md)
    machine_source: str = "model"  # of the last three: "model", or "machine code" (models.md)

    @property
    def exact(self) -> bool:
        """Whether the rule matched the hardware's count in every comparison (docs/exactness.md).

        False for all atomics: most match, but those compiled to loops depend on the values.
        """
        return self.op in ("load", "store", "ldmatrix", "stmatrix", "matrix")

    @property
    def factor(self) -> float:
        """Wavefronts / ideal: 1.0 is free of conflicts."""
        return self.wavefronts / self.ideal if self.ideal else 1.0

    @property
    def machine_factor(self) -> float:
        """The same after ptxas merges accesses."""
        return self.machine_wavefronts / self.machine_ideal if self.machine_ideal else 1.0

    @property
    def joined(self) -> bool:
        """Whether the machine code's accesses are others than those of the PTX."""
        machine = self.machine_requests, self.machine_wavefronts
        return machine != (self.requests, self.wavefronts)

    def __repr__(self) -> str:
        return _short(self)


class GlobalRow(NamedTuple):
    """One source line's operation on global memory, summed over all warps."""

    line: int
    op: str  # "load", "store", "atomic", "copy_async", "bulk", "texture"
    width: int
    requests: int
    sectors: int  # of 32 bytes, moved; of a multicast, by each block that receives them
    ideal: int  # the fewest sectors that could hold the bytes
    file: str | None
    worst: int = 0  # sectors of the worst request
    bytes: int = 0  # a multicast's once
    direction: str = "read"
    callers: tuple[tuple[str | None, int], ...] = ()
    worst_request: Request | None = None

    def __repr__(self) -> str:
        return _short(self)


def _short(row: SharedRow | GlobalRow) -> str:
    """All fields but the worst request, which is shown separately."""
    facts = ", ".join(f"{k}={v!r}" for k, v in row._asdict().items() if k != "worst_request")
    return f"{type(row).__name__}({facts})"


def base_name(file: str | None) -> str | None:
    """The name without its folders: in line information NVRTC prepends the working directory."""
    return None if file is None else PurePath(file).name


_WIDEST = 72  # characters of a place in a table


def place(row: SharedRow | GlobalRow) -> str:
    """A row's line and its callers, such as "common.cuh:21 < gemm_tiled.cu:32"."""
    places = [(row.file, row.line), *row.callers]
    parts = [f"{file}:{line}" if file else f"PTX line {line}" for file, line in places]
    whole = " < ".join(parts)
    if len(whole) <= _WIDEST:
        return whole
    ends = [parts[0], "...", parts[-1]] if len(parts) > 2 else parts
    return " < ".join(_cut(part) for part in ends)


def _cut(part: str, most: int = 40) -> str:
    """A place whose file has a long name, by the end of that name."""
    return part if len(part) <= most else f"...{part[3 - most :]}"


class SharedRows(Rows[SharedRow]):
    """A trace's rows of shared memory, shown with their cost and conflict factor."""

    __slots__ = ()

    def _table(self) -> Table:
        rows = [(place(r), *r[1:7], factor(r.wavefronts, r.ideal)) for r in self]
        return Table(("shared", *SharedRow._fields[1:7], "factor"), rows)

    @property
    def source(self) -> str:
        """Where the numbers as joined are from, in half a sentence."""
        read = sum(row.machine_source == "machine code" for row in self)
        if read == 0:
            return "by a model"
        return f"by the machine code in {read} of {len(self)} rows" + ", else by a model" * (
            read < len(self)
        )

    def joined_table(self, every: bool = False) -> list[Node]:
        """The rows whose accesses ptxas joins, or all, as a table of one or no node."""
        rows = [
            (
                *(place(r), r.op, r.width),
                *(r.machine_requests, r.machine_wavefronts, r.machine_ideal),
                factor(r.machine_wavefronts, r.machine_ideal),
                r.machine_source,
            )
            for r in self
            if r.joined or every
        ]
        names = "as joined", "op", "width", "requests", "wavefronts", "ideal", "factor", "from"
        return [Table(names, rows)] if rows else []


class GlobalRows(Rows[GlobalRow]):
    """A trace's rows of global memory, shown with their cost."""

    __slots__ = ()

    def _table(self) -> Table:
        return Table(("global", *GlobalRow._fields[1:6]), [(place(r), *r[1:6]) for r in self])


_DIRECTIONS = {1: "read", 2: "write", 3: "both"}


def rows(
    sites: tuple[tuple[Any, ...], ...], machine_rows: Mapping[int, Machine] | None = None
) -> tuple[SharedRows, GlobalRows]:
    """Converts _core's tuples of memory instructions to rows of shared and of global memory.

    machine_rows: what the machine code says of rows, by index.
    """
    shared_rows, global_rows = [], []
    for index, site in enumerate(sites):
        (
            shared,
            file,
            line,
            op,
            width,
            requests,
            cost,
            ideal,
            worst,
            size,
            way,
            callers,
            raw,
            *machine,
        ) = site
        source = "model"
        if machine_rows and index in machine_rows:
            machine, source = [*machine_rows[index]], "machine code"
        file = base_name(file)
        callers = tuple((base_name(of), number) for of, number in callers)
        block, warp, active, addresses = raw
        lanes = np.array([active >> lane & 1 for lane in range(LANES)], bool)
        where = np.array(addresses, np.uint64).astype(np.int64)
        request = Request(where, lanes, width, op, worst, bool(shared), block, warp)
        direction = _DIRECTIONS[way]
        if shared:
            shared_rows.append(
                SharedRow(line, op, width, requests, cost, ideal, worst, file)._replace(
                    bytes=size,
                    direction=direction,
                    callers=callers,
                    worst_request=request,
                    machine_requests=machine[0],
                    machine_wavefronts=machine[1],
                    machine_ideal=machine[2],
                    machine_source=source,
                )
            )
        else:
            global_rows.append(
                GlobalRow(line, op, width, requests, cost, ideal, file)._replace(
                    worst=worst,
                    bytes=size,
                    direction=direction,
                    callers=callers,
                    worst_request=request,
                )
            )
    return SharedRows(shared_rows), GlobalRows(global_rows)
