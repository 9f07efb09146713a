"""One request taken apart: who waits for whom, in which bank."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from . import _core
from ._architectures import BANK_BYTES, BANKS
from ._wavefronts import LANES, lanes_of, read_requests


class Request(NamedTuple):
    """One request taken apart: what explain returns."""

    op: str
    width: int
    lanes: tuple[int, ...]  # that take part
    addresses: tuple[int, ...]  # of those lanes
    banks: tuple[int, ...]  # the first bank of each of those lanes
    groups: tuple[tuple[int, ...], ...]  # lanes that are served together
    wavefronts: int
    ideal: int

    @property
    def conflicts(self) -> tuple[tuple[int, int, dict[int, tuple[int, ...]]], ...]:
        """(group, bank, {word: lanes}) of every bank that is asked for more than one word."""
        found = []
        address = dict(zip(self.lanes, self.addresses, strict=True))
        step = max(self.width, BANK_BYTES)
        for g, group in enumerate(self.groups):
            in_bank: dict[int, dict[int, tuple[int, ...]]] = {}
            for lane in group:
                item = address[lane] // step
                words = in_bank.setdefault(item * step // BANK_BYTES % BANKS, {})
                words[item * step // BANK_BYTES] = (
                    *words.get(item * step // BANK_BYTES, ()),
                    lane,
                )
            found += [(g, b, words) for b, words in sorted(in_bank.items()) if len(words) > 1]
        return tuple(found)

    def __repr__(self) -> str:
        first = (
            f"{self.op} of {self.width} bytes by {len(self.lanes)} lanes: "
            f"{self.wavefronts} wavefronts, ideal {self.ideal}"
        )
        lines = [first]
        several = len(self.groups) > 1
        conflicts = self.conflicts
        for g, b, words in conflicts[:8]:
            asked = [f"word {word} by {_lanes(lanes)}" for word, lanes in words.items()]
            who = "; ".join(asked if len(asked) <= 4 else [*asked[:3], f"{len(asked) - 3} more"])
            group = f"group {g} (lanes {_lanes(self.groups[g])}), " if several else ""
            lines.append(f"  {group}bank {b}, {len(words)} ways: {who}")
        if len(conflicts) > 8:
            lines.append(f"  and {len(conflicts) - 8} more banks")
        if not conflicts:
            lines.append("  no bank is asked for two words at once")
        return "\n".join(lines)


def explain(
    addresses: ArrayLike, width: int = 4, op: str = "load", active: ArrayLike | None = None
) -> Request:
    """Which lanes of one request meet in which bank.

    Parameters
    ----------
    addresses : array of int (lanes,)
        One request; parameters as of wavefronts.

    Returns
    -------
    Request
        .groups, .wavefronts, .ideal and .conflicts; printed, it says who waits for whom.

    Examples
    --------
    >>> from smemkern.banks import explain
    >>> explain([0, 128, 4, 132])
    load of 4 bytes by 4 lanes: 2 wavefronts, ideal 1
      bank 0, 2 ways: word 0 by 0; word 32 by 1
      bank 1, 2 ways: word 1 by 2; word 33 by 3
    """
    request = read_requests(addresses, width, op, active)
    if request.shape != ():
        raise ValueError(f"explain takes one request, not an array of shape {request.shape}")
    cost, best, size = _core.shared_requests(*request[:2], request.width, op)
    lanes = lanes_of(request.active)[0].nonzero()[0].tolist()
    groups = [
        tuple(lane for lane in lanes if lane // int(size[0]) == g)
        for g in range(LANES // int(size[0]))
    ]
    at = [int(request.addresses[0, lane]) for lane in lanes]
    return Request(
        op,
        request.width,
        tuple(lanes),
        tuple(at),
        tuple(a // BANK_BYTES % BANKS for a in at),
        tuple(group for group in groups if group),
        int(cost[0]),
        int(best[0]),
    )


def _lanes(lanes: tuple[int, ...]) -> str:
    """0-3, 7: runs of lanes; the first few of many."""
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
