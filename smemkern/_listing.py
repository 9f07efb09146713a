"""Source lines with their counts, for the text listing and the HTML page."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ._document import Heading, Listing, Node, Paragraph
from ._registry import kernel_file
from ._table import Cell
from ._trace_rows import GlobalRow, SharedRow

if TYPE_CHECKING:
    from ._observe import Trace

_AROUND = 3  # lines of context before and after a line with counts, in long files
_SHORT = 400  # lines; files up to this length are shown whole


@dataclass
class Line:
    """A source line with its counts, including those of code inlined at it."""

    number: int
    text: str = ""
    shared: list[SharedRow] = field(default_factory=list)
    global_: list[GlobalRow] = field(default_factory=list)
    inlined: bool = False  # some rows are of other lines, whose code was inlined at this one
    hazards: list[str] = field(default_factory=list)

    @property
    def shared_requests(self) -> int:
        return sum(row.requests for row in self.shared)

    @property
    def global_requests(self) -> int:
        return sum(row.requests for row in self.global_)

    @property
    def wavefronts(self) -> int:
        return sum(row.wavefronts for row in self.shared)

    @property
    def ideal(self) -> int:
        return sum(row.ideal for row in self.shared)

    @property
    def factor(self) -> float:
        return self.wavefronts / self.ideal if self.ideal else 1.0

    @property
    def joined(self) -> tuple[int, int, int]:
        """Requests, wavefronts and ideal after ptxas joins neighbouring accesses."""
        return (
            sum(row.machine_requests for row in self.shared),
            sum(row.machine_wavefronts for row in self.shared),
            sum(row.machine_ideal for row in self.shared),
        )

    @property
    def joined_factor(self) -> float:
        _, wavefronts, ideal = self.joined
        return wavefronts / ideal if ideal else 1.0

    @property
    def sectors(self) -> int:
        return sum(row.sectors for row in self.global_)

    @property
    def counts(self) -> bool:
        return bool(self.shared or self.global_ or self.hazards)


def source_of(trace: Trace, file: str) -> list[str]:
    """The text of a file that rows refer to, as lines; empty if it cannot be found."""
    known = trace.launch.sources
    if file in known:
        return known[file].splitlines()
    name = Path(file).name
    if name in known:
        return known[name].splitlines()
    if trace.launch.op == "Kernel":
        return trace.launch.header_of(name).splitlines()
    path = kernel_file(name)
    return path.read_text(encoding="utf-8").splitlines() if path else []


def listing(trace: Trace) -> dict[str, list[Line]]:
    """The lines of each file that has counts, by file name; "" is PTX without line information.

    A short file is listed whole, a long one as the lines with counts and their context. If the
    text of a file cannot be found, only the lines with counts are listed.
    """
    charged: dict[str, dict[int, Line]] = defaultdict(dict)

    def at(file: str | None, number: int) -> Line:
        return charged[file or ""].setdefault(number, Line(number))

    every: list[SharedRow | GlobalRow] = [*trace.shared, *trace.global_]
    for row in every:
        seen = set()
        for depth, (file, number) in enumerate([(row.file, row.line), *row.callers]):
            if (file, number) in seen:
                continue
            seen.add((file, number))
            line = at(file, number)
            line.inlined |= depth > 0
            if isinstance(row, SharedRow):
                line.shared.append(row)
            else:
                line.global_.append(row)
    for hazard in trace.hazards:
        if hazard.line:
            at(hazard.file, hazard.line).hazards.append(hazard.message)
    main = f"{trace.launch.kernel}.cu"
    files = sorted(charged, key=lambda file: (file != main, file))
    return {file: _filled(charged[file], source_of(trace, file)) for file in files}


def _filled(charged: dict[int, Line], text: list[str]) -> list[Line]:
    shown = set(charged)
    if text:
        around = len(text) if len(text) <= _SHORT else _AROUND
        for number in charged:
            shown.update(range(max(1, number - around), min(len(text), number + around) + 1))
    lines = [charged.get(number) or Line(number) for number in sorted(shown)]
    for line in lines:
        line.text = text[line.number - 1] if line.number <= len(text) else ""
    return lines


def nodes(trace: Trace, file: str | None = None) -> list[Node]:
    """The listing as document nodes, file by file."""
    __tracebackhide__ = True
    files = listing(trace)
    if file is not None and file not in files:
        raise ValueError(f"no line of {file!r} has counts; files that have: {', '.join(files)}")
    joined = any(row.joined for row in trace.shared)
    shared = f"{'requests':>9} {'wavefronts':>10} {'ideal':>9} {'factor':>6}"
    above = f"{'shared':>9}" + f"{'as joined':>38}" * joined + f"{'global':>38}"
    names = f"{shared} " + f"{shared} " * joined + f"{'requests':>9} {'sectors':>8}    line"
    head = f"{above}\n{names}"
    width = 65 + 38 * joined
    parts: list[Node] = [Paragraph(trace.coverage)] if trace.coverage else []
    for name, lines in files.items():
        if file not in (None, name):
            continue
        parts.append(Heading(Path(name).name or f"{trace.launch.kernel}, PTX"))
        shown: list[object] = [Cell(line, "dim") for line in head.split("\n")]
        before = None
        for line in lines:
            if before is not None and line.number != before + 1:
                shown.append("...")
            before = line.number
            whole = _margin(line, joined) + f" {line.number:>6} {line.text}".rstrip()
            shown.append(Cell(whole, "bad" if line.wavefronts > line.ideal else ""))
            shown += [Cell(f"{'':>{width}} ! {message}", "bad") for message in line.hazards]
        parts.append(Listing(shown, indent=width + 5))
    parts += [Paragraph(f"as joined: {trace.shared.source}")] if joined else []
    return parts


def _four(requests: int, wavefronts: int, ideal: int, factor: float) -> str:
    return f"{requests:>9} {wavefronts:>10} {ideal:>9} {factor:>6.2f}"


def _margin(line: Line, joined: bool) -> str:
    shared, machine, global_ = " " * 37, " " * 38 * joined, " " * 18
    if line.shared:
        shared = _four(line.shared_requests, line.wavefronts, line.ideal, line.factor)
        machine = f" {_four(*line.joined, line.joined_factor)}" * joined
    if line.global_:
        global_ = f"{line.global_requests:>9} {line.sectors:>8}"
    return f"{shared}{machine} {global_}{'+' if line.inlined else ' '}"
