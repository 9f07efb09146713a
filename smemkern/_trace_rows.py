"""The rows of a trace, and the worst request of each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

_LANES, _BANKS, _WORD = 32, 32, 4


@dataclass(frozen=True, eq=False, repr=False)
class Request:
    """One access of one warp: who asked for what.

    Attributes
    ----------
    addresses : ndarray of int64, shape (32,)
        Bytes: offsets in the block's shared memory, or addresses in global memory. Of lanes that
        are not active they mean nothing. Of "ldmatrix", "stmatrix", "bulk" and "matrix" a lane is
        a piece of 16 bytes and not a thread's.
    active : ndarray of bool, shape (32,)
    width : int
        Bytes a lane.
    op : str
    cost : int
        Wavefronts in shared memory, 32-byte sectors in global memory.
    shared : bool
    block : tuple of 3 int
    warp : int
        In the block.
    """

    addresses: np.ndarray[Any, Any]
    active: np.ndarray[Any, Any]
    width: int
    op: str
    cost: int
    shared: bool
    block: tuple[int, int, int]
    warp: int

    @property
    def banks(self) -> np.ndarray[Any, Any]:
        """Banks of each lane, shape (32, words a lane); -1 where a lane is not active."""
        words = np.arange(max(self.width // _WORD, 1))
        banks = (self.addresses[:, None] // _WORD + words) % _BANKS
        return np.where(self.active[:, None], banks, -1)

    @property
    def groups(self) -> list[range]:
        """Lanes that are served together, as the rule of csrc/emu/banks.h has it."""
        size = min(_LANES * _WORD // max(self.width, _WORD), _LANES)
        if self.op == "load" and size < _LANES and (self._paired(1) or self._paired(2)):
            size *= 2
        return [range(first, first + size) for first in range(0, _LANES, size)]

    def _paired(self, by: int) -> bool:
        other = np.arange(_LANES) ^ by
        both = self.active & self.active[other]
        return bool((self.addresses[other] == self.addresses)[both].all())

    def conflicts(self) -> list[tuple[int, dict[int, list[int]]]]:
        """(bank, {word: lanes}) of each group's busiest bank; a word is a byte address / 4."""
        found = []
        for group in self.groups:
            banks: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
            for lane in group:
                if self.active[lane]:
                    first = int(self.addresses[lane]) // _WORD
                    for word in range(first, first + max(self.width // _WORD, 1)):
                        banks[word % _BANKS][word].append(lane)
            if banks:
                bank = max(sorted(banks), key=lambda bank: len(banks[bank]))
                found.append((bank, dict(banks[bank])))
        return found

    @property
    def turns(self) -> np.ndarray[Any, Any]:
        """As `banks`: how many other words of the group take the bank before this one; -1: none."""
        banks = self.banks
        turns = np.full(banks.shape, -1)
        for group in self.groups:
            taken: dict[int, list[int]] = defaultdict(list)
            for lane in group:
                for step, bank in enumerate(banks[lane].tolist()):
                    word = int(self.addresses[lane]) // _WORD + step
                    if bank >= 0:
                        if word not in taken[bank]:
                            taken[bank].append(word)
                        turns[lane, step] = taken[bank].index(word)
        return turns

    def __repr__(self) -> str:
        where = "shared" if self.shared else "global"
        cost = f"{self.cost} {'wavefront' if self.shared else 'sector'}{'s'[: self.cost != 1]}"
        lanes = "all lanes" if self.active.all() else f"{int(self.active.sum())} lanes"
        lines = [
            f"{where} {self.op}, {self.width} bytes a lane, {lanes}: {cost}; "
            f"block {self.block}, warp {self.warp}"
        ]
        if self.shared:
            for bank, words in self.conflicts():
                many = f"{len(words)} word{'s'[: len(words) != 1]}"
                shown = [f"{_lanes(lanes)} at {word * _WORD}" for word, lanes in words.items()]
                more = f", ... {len(shown) - 4} more" if len(shown) > 5 else ""
                lines.append(
                    f"  bank {bank:2}: {many}: {', '.join(shown[: 4 if more else 5])}{more}"
                )
        else:
            given = [f"{address:#x}" for address in self.addresses[self.active][:6]]
            lines.append(
                f"  addresses {', '.join(given)}{', ...' if self.active.sum() > 6 else ''}"
            )
        return "\n".join(lines)


def _lanes(lanes: list[int]) -> str:
    if len(lanes) > 2 and lanes == list(range(lanes[0], lanes[-1] + 1)):
        return f"lanes {lanes[0]}-{lanes[-1]}"
    return f"lane{'s'[: len(lanes) != 1]} {' '.join(map(str, lanes))}"


class SharedRow(NamedTuple):
    """One source line's operation on shared memory, summed over all warps.

    Lines of inlined functions are rows of their own for each place they were called from.
    """

    line: int  # of the CUDA source; of the PTX where it has no line information
    op: str  # "load", "store", "atomic", "copy_async", "ldmatrix", "stmatrix", "bulk", "matrix"
    width: int  # bytes a lane
    requests: int  # warp instructions
    wavefronts: int  # what they cost
    ideal: int  # the fewest that their bytes could have cost
    worst: int  # wavefronts of the worst request
    file: str | None
    bytes: int = 0  # that the active lanes asked for
    direction: str = "read"  # "read", "write", "both"
    callers: tuple[tuple[str | None, int], ...] = ()  # (file, line) of the calls, inside out
    worst_request: Request | None = None  # the first that cost `worst`
    machine_requests: int = 0  # the same two after ptxas joined neighbouring loads into wider ones
    machine_wavefronts: int = 0

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

    def __repr__(self) -> str:
        return _short(self)


class GlobalRow(NamedTuple):
    """One source line's operation on global memory, summed over all warps."""

    line: int
    op: str
    width: int
    requests: int
    sectors: int  # of 32 bytes, that were moved
    ideal: int  # the fewest that could have held the bytes
    file: str | None
    worst: int = 0  # sectors of the worst request
    bytes: int = 0
    direction: str = "read"
    callers: tuple[tuple[str | None, int], ...] = ()
    worst_request: Request | None = None

    def __repr__(self) -> str:
        return _short(self)


def _short(row: SharedRow | GlobalRow) -> str:
    """All but the worst request, which has a picture of its own."""
    facts = ", ".join(f"{k}={v!r}" for k, v in row._asdict().items() if k != "worst_request")
    return f"{type(row).__name__}({facts})"


def place(row: SharedRow | GlobalRow) -> str:
    """common.cuh:21 < gemm_tiled.cu:32"""
    own = f"{row.file or 'line'}:{row.line}"
    return " < ".join([own, *(f"{file or 'line'}:{line}" for file, line in row.callers)])


_DIRECTIONS = {1: "read", 2: "write", 3: "both"}


def rows(sites: tuple[tuple[Any, ...], ...]) -> tuple[tuple[SharedRow, ...], tuple[GlobalRow, ...]]:
    """What _core says of memory instructions, as rows of both kinds."""
    shared_rows, global_rows = [], []
    for site in sites:
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
        block, warp, active, addresses = raw
        lanes = np.array([active >> lane & 1 for lane in range(_LANES)], bool)
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
    return tuple(shared_rows), tuple(global_rows)
