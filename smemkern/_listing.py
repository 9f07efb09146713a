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
    path = None if trace.launch.op == "Kernel" else kernel_file(name)
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
    names = f"{'requests':>9} {'wavefronts':>10} {'ideal':>9} {'factor':>6}"
    names += f" {'requests':>9} {'sectors':>8}    line"
    head = f"{'shared':>9}{'global':>38}\n{names}"
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
            whole = _margin(line) + f" {line.number:>6} {line.text}".rstrip()
            shown.append(Cell(whole, "bad" if line.wavefronts > line.ideal else ""))
            shown += [Cell(f"{'':>65} ! {message}", "bad") for message in line.hazards]
        parts.append(Listing(shown, indent=70))
    return parts


def _margin(line: Line) -> str:
    shared, global_ = " " * 37, " " * 18
    if line.shared:
        shared = f"{line.shared_requests:>9} {line.wavefronts:>10} {line.ideal:>9}"
        shared += f" {line.factor:>6.2f}"
    if line.global_:
        global_ = f"{line.global_requests:>9} {line.sectors:>8}"
    return f"{shared} {global_}{'+' if line.inlined else ' '}"
