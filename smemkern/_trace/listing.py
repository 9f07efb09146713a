"""Source lines with their counts, for the text listing and the HTML page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .._render.document import Heading, Listing, Node, Paragraph
from .._render.table import Cell
from .._variants.registry import kernel_file
from .rows import GlobalRow, SharedRow

if TYPE_CHECKING:
    from .observe import Trace

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


class Column(NamedTuple):
    """A column of counts in the margin."""

    group: str
    name: str
    short: str  # where there is little room
    wide: int
    cell: Callable[[Line], str]  # "": this line has no such count


def _of_shared(cell: Callable[[Line], object], form: str = "") -> Callable[[Line], str]:
    return lambda line: format(cell(line), form) if line.shared else ""


def _of_global(cell: Callable[[Line], object]) -> Callable[[Line], str]:
    return lambda line: str(cell(line)) if line.global_ else ""


_SHARED = (
    Column("shared", "requests", "req", 9, _of_shared(lambda line: line.shared_requests)),
    Column("shared", "wavefronts", "wavef", 10, _of_shared(lambda line: line.wavefronts)),
    Column("shared", "ideal", "ideal", 9, _of_shared(lambda line: line.ideal)),
    Column("shared", "factor", "factor", 6, _of_shared(lambda line: line.factor, ".2f")),
)
_JOINED = (
    Column("as joined", "requests", "req", 9, _of_shared(lambda line: line.joined[0])),
    Column("as joined", "wavefronts", "wavef", 10, _of_shared(lambda line: line.joined[1])),
    Column("as joined", "ideal", "ideal", 9, _of_shared(lambda line: line.joined[2])),
    Column("as joined", "factor", "factor", 6, _of_shared(lambda line: line.joined_factor, ".2f")),
)
_GLOBAL = (
    Column("global", "requests", "req", 9, _of_global(lambda line: line.global_requests)),
    Column("global", "sectors", "sectors", 8, _of_global(lambda line: line.sectors)),
)
_CODE = 50  # characters of code that should have room beside the widest margin
_LEAST_CODE = 30  # and beside a narrow one; where they have not, counts are below their line


class Margin:
    """The counts at the left of the lines, in columns.

    If `width` is too short for them and the code, they have their own width, and a column without
    a count is left out; beside the columns "as joined" so is the ideal.
    """

    def __init__(self, lines: list[Line], joined: bool, width: int | None) -> None:
        self.columns = [*_SHARED, *_JOINED * joined, *_GLOBAL]
        self.names = [column.name for column in self.columns]
        self.widths = [column.wide for column in self.columns]
        self.number = 6  # characters of a line's number
        self.is_narrow = width is not None and width < self.code + _CODE
        if self.is_narrow:
            longest = [max(len(c.cell(line)) for line in lines) for c in self.columns]
            used = [
                (c, n)
                for c, n in zip(self.columns, longest, strict=True)
                if n and not (joined and c.name == "ideal")
            ]
            self.columns = [c for c, _ in used]
            self.names = [c.short for c in self.columns]
            self.widths = [max(len(c.short), n) for c, n in used]
            self.number = max(4, len(str(lines[-1].number)))

    @property
    def code(self) -> int:
        """Where the code begins."""
        return sum(self.widths) + len(self.widths) + self.number + 2

    def head(self) -> list[str]:
        above, end = "", 0
        groups = ["", *(column.group for column in self.columns)]
        for before, group, name, width in zip(
            groups, groups[1:], self.names, self.widths, strict=False
        ):
            start, end = end, end + width + 1
            if group != before:  # above the name of its first column
                at = max(start + width - max(len(group), len(name)), len(above) + bool(above))
                above = f"{above:<{at}}{group:>{start + width - at}}"
        below = self._joined(self.names) + f"{'line':>{self.number + 1}}"
        return [above, below]

    def lines(self, line: Line) -> list[str]:
        counts = self._joined([column.cell(line) for column in self.columns])
        inlined = "+" if line.inlined else " "
        return [f"{counts[:-1]}{inlined} {line.number:>{self.number}} {line.text}".rstrip()]

    def _joined(self, cells: Iterable[str]) -> str:
        return "".join(f"{c:>{w}} " for c, w in zip(cells, self.widths, strict=True))


class Below:
    """The counts in words below their line, for outputs that have no room for a margin."""

    is_narrow = False  # nothing is left out

    def __init__(self, lines: list[Line], joined: bool) -> None:
        self.columns = [*_SHARED, *_JOINED * joined, *_GLOBAL]
        self.number = max(4, len(str(lines[-1].number)))
        self.code = self.number + 2

    def head(self) -> list[str]:
        return []

    def lines(self, line: Line) -> list[str]:
        groups: dict[str, list[str]] = {}
        for column in self.columns:
            cell = column.cell(line)
            if cell:
                words = f"factor {cell}" if column.name == "factor" else f"{cell} {column.name}"
                groups.setdefault(column.group, []).append(words)
        inlined = "+" if line.inlined else " "
        return [
            f"{inlined}{line.number:>{self.number}} {line.text}".rstrip(),
            *(f"{'':>{self.code}}| {group}: {', '.join(all_)}" for group, all_ in groups.items()),
        ]


def _margin(lines: list[Line], joined: bool, width: int | None) -> Margin | Below:
    margin = Margin(lines, joined, width)
    has_room = width is None or width >= margin.code + _LEAST_CODE
    return margin if has_room else Below(lines, joined)


def nodes(trace: Trace, file: str | None = None, width: int | None = None) -> list[Node]:
    """The listing as document nodes, file by file, for lines of `width` characters."""
    __tracebackhide__ = True
    files = listing(trace)
    if file is not None and file not in files:
        raise ValueError(f"no line of {file!r} has counts; files that have: {', '.join(files)}")
    joined = any(row.joined for row in trace.shared)
    parts: list[Node] = [Paragraph(trace.coverage)] if trace.coverage else []
    for name, lines in files.items():
        if file not in (None, name):
            continue
        parts.append(Heading(Path(name).name or f"{trace.launch.kernel}, PTX"))
        margin = _margin(lines, joined, width)
        shown: list[object] = [Cell(line, "dim") for line in margin.head()]
        before = None
        for line in lines:
            if before is not None and line.number != before + 1:
                shown.append("...")
            before = line.number
            style = "bad" if line.wavefronts > line.ideal else ""
            shown += [Cell(part, style) for part in margin.lines(line)]
            shown += [Cell(f"{'':>{margin.code}} ! {message}", "bad") for message in line.hazards]
        parts.append(Listing(shown, indent=margin.code + 5))
    if any(line.inlined for name, lines in files.items() if file in (None, name) for line in lines):
        parts.append(Paragraph("+: with code of other lines that was inlined there"))
    parts += [Paragraph(f"as joined: {trace.shared.source}")] if joined else []
    if joined and width is not None and margin.is_narrow:
        parts.append(Paragraph("ideal: wavefronts / factor; a wider terminal shows it"))
    return parts
