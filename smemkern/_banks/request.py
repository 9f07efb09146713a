"""One request of a warp: which lanes access which words of which bank.

The cost and the groups of lanes come from the rule in csrc/emu/cost/banks.h, which traces use too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._device.architectures import BANK_BYTES, BANKS
from .._render.document import Heading, Listing, Node, Picture, as_text, in_notebook
from .wavefronts import LANES, OPS, lanes_of, read_requests


@dataclass(frozen=True, eq=False, repr=False)
class Request:
    """One memory request of one warp.

    Attributes
    ----------
    addresses : ndarray of int64, shape (32,)
        The byte address of each lane: an offset in the block's shared memory, or an address in
        global memory. Undefined for inactive lanes. For "ldmatrix", "stmatrix", "bulk" and "matrix"
        each entry is the address of a 16-byte chunk, not of a thread's data.
    active : ndarray of bool, shape (32,)
    width : int
        Bytes per lane.
    op : str
    cost : int
        Wavefronts in shared memory, 32-byte sectors in global memory.
    shared : bool
    block : tuple of 3 int, or None
        The block's index; None if the request does not come from a trace.
    warp : int or None
        The warp's number in the block.
    """

    addresses: NDArray[Any]
    active: NDArray[Any]
    width: int
    op: str
    cost: int
    shared: bool = True
    block: tuple[int, int, int] | None = None
    warp: int | None = None

    @property
    def lanes(self) -> tuple[int, ...]:
        """The active lanes."""
        return tuple(self.active.nonzero()[0].tolist())

    @property
    def banks(self) -> NDArray[Any]:
        """The banks of each lane, shape (32, words per lane); -1 for inactive lanes."""
        words = np.arange(max(self.width // BANK_BYTES, 1))
        banks = (self.addresses[:, None] // BANK_BYTES + words) % BANKS
        return np.where(self.active[:, None], banks, -1)

    def _counted(self) -> tuple[int, int, int]:
        """(wavefronts, ideal wavefronts, lanes per group)."""
        mask = np.array([sum(1 << lane for lane in self.lanes)], np.uint32)
        address = np.where(self.active, self.addresses, 0).astype(np.uint64)[None]
        op = self.op if self.op in OPS else "store"
        cost, ideal, size = _core.shared_requests(address, mask, self.width, op)
        return int(cost[0]), int(ideal[0]), int(size[0])

    @property
    def ideal(self) -> int:
        """The fewest wavefronts that could serve these bytes in shared memory."""
        return self._counted()[1]

    @property
    def groups(self) -> tuple[range, ...]:
        """The groups of lanes that shared memory serves together; includes inactive lanes."""
        size = self._counted()[2]
        return tuple(range(first, first + size) for first in range(0, LANES, size))

    def _words(self, group: range) -> dict[int, dict[int, tuple[int, ...]]]:
        """{bank: {word: lanes}} of a group, with words in lane order."""
        found: dict[int, dict[int, tuple[int, ...]]] = defaultdict(dict)
        for lane in group:
            if self.active[lane]:
                first = int(self.addresses[lane]) // BANK_BYTES
                for word in range(first, first + max(self.width // BANK_BYTES, 1)):
                    words = found[word % BANKS]
                    words[word] = (*words.get(word, ()), lane)
        return found

    @property
    def conflicts(self) -> tuple[tuple[int, int, dict[int, tuple[int, ...]]], ...]:
        """(group, bank, {word: lanes}) for each bank in which a group accesses several words.

        A word is numbered byte address / 4. If a lane accesses several words, only the bank of its
        first word is listed, because the banks of the others have the same conflicts.
        """
        step = max(self.width // BANK_BYTES, 1)
        return tuple(
            (number, bank, words)
            for number, group in enumerate(self.groups)
            for bank, words in sorted(self._words(group).items())
            if len(words) > 1 and bank % step == 0
        )

    @property
    def turns(self) -> NDArray[Any]:
        """The wavefront, from 0 on, in which its group's bank serves each word of `banks`.

        This is the number of other words that the bank serves before it. -1 for inactive lanes.
        """
        turns = np.full(self.banks.shape, -1)
        for group in self.groups:
            for words in self._words(group).values():
                for turn, (word, lanes) in enumerate(words.items()):
                    for lane in lanes:
                        turns[lane, word - int(self.addresses[lane]) // BANK_BYTES] = turn
        return turns

    @property
    def explanation(self) -> str:
        """What the request costs and why, in words; empty for global memory."""
        if not self.shared:
            return ""
        mask = sum(1 << lane for lane in self.lanes)
        addresses = tuple(np.where(self.active, self.addresses, 0).tolist())
        request = self.op, addresses, mask, self.width, self.cost, min(self.ideal, self.cost)
        return _core.explain_request(request, None)

    def _nodes(self) -> list[Node]:
        nodes: list[Node] = [
            Heading(self._head()),
            Listing(self._conflict_lines() if self.shared else self._address_lines()),
        ]
        if not self.shared:
            return nodes
        from .pictures import bank_map

        return [*nodes, Picture(bank_map(self))]

    __repr__ = as_text
    _repr_html_ = in_notebook

    def _head(self) -> str:
        what = f"{self.op} of {self.width} bytes by {len(self.lanes)} lanes"
        if self.shared:
            cost = f"{self.cost} wavefronts, ideal {self.ideal}"
        else:
            cost = f"{self.cost} sectors of global memory"
        where = "" if self.block is None else f"; block {self.block}, warp {self.warp}"
        return f"{what}: {cost}{where}"

    def _address_lines(self) -> list[str]:
        given = [f"{address:#x}" for address in self.addresses[self.active][:6].tolist()]
        return [f"  addresses {', '.join(given)}{', ...' if len(self.lanes) > 6 else ''}"]

    def _conflict_lines(self) -> list[str]:
        lines = []
        conflicts, groups = self.conflicts, self.groups
        for g, b, words in conflicts[:8]:
            accesses = [f"word {word} by {_lane_names(lanes)}" for word, lanes in words.items()]
            shown = "; ".join(
                accesses if len(accesses) <= 4 else [*accesses[:3], f"{len(accesses) - 3} more"]
            )
            lanes = tuple(lane for lane in groups[g] if self.active[lane])
            group = f"group {g} (lanes {_runs(lanes)}), " if len(groups) > 1 else ""
            lines.append(f"  {group}bank {b}, {len(words)} ways: {shown}")
        if len(conflicts) > 8:
            lines.append(f"  and {len(conflicts) - 8} more banks")
        return lines or ["  no bank conflict"]


def explain(
    addresses: ArrayLike, width: int = 4, op: str = "load", active: ArrayLike | None = None
) -> Request:
    """Which lanes of one request conflict in which bank.

    Parameters
    ----------
    addresses : array of int (lanes,)
        One request. All parameters are those of wavefronts.

    Returns
    -------
    Request
        .groups, .cost, .ideal and .conflicts. Printing it lists the words and lanes of each bank
        that has a conflict.

    Examples
    --------
    >>> from smemkern.banks import explain
    >>> explain([0, 128, 4, 132])
    load of 4 bytes by 4 lanes: 2 wavefronts, ideal 1
      bank 0, 2 ways: word 0 by lane 0; word 32 by lane 1
      bank 1, 2 ways: word 1 by lane 2; word 33 by lane 3
    """
    __tracebackhide__ = True
    request = read_requests(addresses, width, op, active)
    if request.shape != ():
        raise ValueError(f"explain takes one request, not an array of shape {request.shape}")
    cost = _core.shared_requests(*request[:2], request.width, op)[0]
    where = request.addresses[0].astype(np.int64)
    return Request(where, lanes_of(request.active)[0], request.width, op, int(cost[0]))


def _lane_names(lanes: tuple[int, ...]) -> str:
    """For example "lane 3" or "lanes 0-3, 7"."""
    return f"{'lane' if len(lanes) == 1 else 'lanes'} {_runs(lanes)}"


def _runs(lanes: tuple[int, ...]) -> str:
    """Lanes as ranges, such as "0-3, 7"; if there are many, only the first few."""
    runs: list[list[int]] = []
    for lane in lanes:
        if runs and runs[-1][-1] + 1 == lane:
            runs[-1][-1:] = [lane] if len(runs[-1]) > 1 else [runs[-1][-1], lane]
        else:
            runs.append([lane])
    names = ["-".join(map(str, run)) for run in runs]
    if len(names) > 4:
        return f"{', '.join(names[:3])}, ... ({len(lanes)} lanes)"
    return ", ".join(names)
