"""Parts that are compared per call: variants, user kernels, bulk copies and wgmma."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Record = dict[str, Any]
Formula = Mapping[str, int]  # counters of Nsight Compute, with factors


class Part(NamedTuple):
    calls: Callable[[], Iterator[Any]]
    name: Callable[[Any], str]
    group: Callable[[Any], str]  # the name of the test that compares a call
    run: Callable[[Any, str], None]  # on a device
    launches: Callable[[Any], int]  # number of kernels of a call
    predicted: Callable[[Any], dict[str, int]]  # by name of the count
    counters: dict[str, Formula]


def metrics(part: Part) -> list[str]:
    return list(dict.fromkeys(name for formula in part.counters.values() for name in formula))


def totals(part: Part, rows: Sequence[Mapping[str, float]]) -> dict[str, int]:
    """The counts of one call, summed over its launches."""
    return {
        what: int(sum(row[name] * times for row in rows for name, times in formula.items()))
        for what, formula in part.counters.items()
    }


def compared(part: Part, call: Any, measured: Mapping[str, int]) -> Record:
    """One call: the measured counts, and (predicted, measured) of those that differ."""
    said = part.predicted(call)
    return {
        "call": part.name(call),
        "measured": list(measured.values()),
        "differs": {w: [said[w], measured[w]] for w in measured if said[w] != measured[w]},
    }


def groups(part: Part) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for call in part.calls():
        found.setdefault(part.group(call), []).append(call)
    return found


def compared_again(part: Part, lines: Iterable[Record]) -> list[Record]:
    """The same for stored measurements."""
    measured = {line["call"]: line["measured"] for line in lines}
    # Older runs lack counters that were added later, which are the last ones.
    return [
        compared(part, call, dict(zip(part.counters, measured[part.name(call)], strict=False)))
        for call in part.calls()
        if part.name(call) in measured
    ]


def is_as_recorded(part: Part, call: Any, line: Record) -> bool:
    """Whether the emulator gives the counts that it gave when the record was made. Else the kernel
    has changed since, and what was measured says nothing about it."""
    said = part.predicted(call)
    recorded = dict(zip(part.counters, line["measured"], strict=False))
    recorded |= {what: before for what, (before, _) in line["differs"].items()}
    return all(said[what] == count for what, count in recorded.items())
