"""Source lines with their counts: what the text listing and the page show."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from . import _core
from ._blocks import Block, Heading, Listing, Paragraph
from ._table import Cell
from ._trace_rows import GlobalRow, SharedRow

if TYPE_CHECKING:
    from ._observe import Trace

_AROUND = 3  # lines shown before and after one that counts, of texts longer than ...
_SHORT = 400


@dataclass
class Line:
    """A line of a file with what it did itself and what was inlined there."""

    number: int
    text: str = ""
    shared: list[SharedRow] = field(default_factory=list)
    global_: list[GlobalRow] = field(default_factory=list)
    inlined: bool = False  # some rows stand at another line, whose code was inlined here
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
    """Lines of a file that rows name; none if its text is not known here."""
    known = trace.launch.sources
    if file in known:
        return known[file].splitlines()
    name = Path(file).name
    if name in known:
        return known[name].splitlines()
    path = Path(_core.config()["kernels"], name)
    if trace.launch.op == "Kernel" or not path.is_file():
        return []
    return path.read_text(encoding="utf-8").splitlines()


def listing(trace: Trace) -> dict[str, list[Line]]:
    """The lines of each file that counted, "" for PTX without line information.

    All lines of a short text; of a long one those that count, and some around them. Of a text that
    is not known the lines that count.
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


def blocks(trace: Trace, file: str | None = None) -> list[Block]:
    """The listing as it is shown, a file after the other."""
    __tracebackhide__ = True
    files = listing(trace)
    if file is not None and file not in files:
        raise ValueError(f"no line of {file!r} counted; there are: {', '.join(files)}")
    names = f"{'requests':>9} {'wavefronts':>10} {'ideal':>9} {'factor':>6}"
    names += f" {'requests':>9} {'sectors':>8}    line"
    head = f"{'shared':>9}{'global':>38}\n{names}"
    parts: list[Block] = [Paragraph(trace.coverage)] if trace.coverage else []
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
