"""Tables as plain text, and how wide their columns become where there is little room.

A cell is text, which stands to the left, a number, which stands to the right, or one of the classes
below, which say so themselves and may have a tone: what it means, and not which colour it gets.
Whoever shows a table in colour (_terminal.py, _html.py) takes the same cells and the same widths.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

GAP = 2  # blanks between columns
LEAST = 16  # characters that a column of text is squeezed to before the table is turned
SHORTEST = 12  # characters of text that is cut; less would say nothing


class Cell:
    """Text with a tone: "good", "bad", "dim", "strong", "bar" or none."""

    to_left = True

    def __init__(self, text: str, tone: str = "") -> None:
        self.text = text
        self.tone = tone

    def __str__(self) -> str:
        return self.text


class Right(Cell):
    """Text that stands to the right, as a number would."""

    to_left = False


class Cut(Cell):
    """Text that stays on its line: what there is no room for is cut off, or all of it."""


class Bar(Cell):
    """A share from 0 to 1 as a bar."""

    def __init__(self, share: float, length: int = 40) -> None:
        super().__init__("#" * round(length * share), "bar")
        self.share = share


def tone_of(cell: object) -> str:
    return cell.tone if isinstance(cell, Cell) else ""


def are_left(n: int, rows: Sequence[Sequence[object]]) -> list[bool]:
    """Which of n columns stand to the left: those that hold nothing but text."""
    return [
        all(
            cell.to_left if isinstance(cell, Cell) else isinstance(cell, str)
            for cell in (row[i] for row in rows)
        )
        for i in range(n)
    ]


def fitted(
    header: Sequence[str], rows: Sequence[Sequence[object]], width: int | None
) -> list[int] | None:
    """Widths of the columns; None if a table does not fit into `width` characters.

    Columns of words give way, the widest first; numbers and names are never broken. A column that
    may be cut gives way most, to nothing: then its width is 0, and it is not shown.
    """
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    whole_widths = list(widths)
    if width is None:
        return widths
    left = are_left(len(widths), rows)
    cut = [any(isinstance(row[i], Cut) for row in rows) for i in range(len(widths))]
    least = [
        -GAP
        if may_go
        else max(LEAST, len(head), *(len(word) for cell in column for word in cell.split()))
        if to_left and any(" " in cell for cell in column)
        else wide
        for head, column, to_left, wide, may_go in zip(
            header, columns, left, widths, cut, strict=True
        )
    ]
    excess = sum(widths) + GAP * (len(widths) - 1) - width
    while excess > 0:
        pairs = zip(widths, least, strict=True)
        slack, at = max((wide - low, i) for i, (wide, low) in enumerate(pairs))
        if slack <= 0:
            return None
        widths[at] -= 1
        excess -= 1
    return [
        0 if may_go and wide < min(SHORTEST, whole) else wide
        for wide, may_go, whole in zip(widths, cut, whole_widths, strict=True)
    ]


def table(header: Sequence[str], rows: Iterable[Sequence[object]], width: int | None = None) -> str:
    """Columns as wide as their widest cell; text to the left, everything else to the right.

    Where that is wider than `width`, words are wrapped; where that is not enough, each row becomes
    lines of its own, as records() has them.
    """
    rows = list(rows)
    widths = fitted(header, rows, width)
    if widths is None:
        return "\n".join(line for line, _ in records(header, rows, width))
    left = are_left(len(header), rows)
    lines = []
    for row in [header, *rows]:
        wrapped = [lines_of(cell, wide) for cell, wide in zip(row, widths, strict=True)]
        for number in range(max(map(len, wrapped), default=0)):
            parts = [cell[number] if number < len(cell) else "" for cell in wrapped]
            lines.append(
                (" " * GAP)
                .join(
                    part.ljust(wide) if to_left else part.rjust(wide)
                    for part, wide, to_left in zip(parts, widths, left, strict=True)
                    if wide
                )
                .rstrip()
            )
    return "\n".join(lines)


def lines_of(cell: object, width: int) -> list[str]:
    """A cell in a column of a width."""
    text = str(cell)
    if not width:
        return []
    if len(text) <= width:
        return [text]
    if isinstance(cell, Cut):
        return [f"{text[: width - 1].rstrip()}…"]
    return textwrap.wrap(text, width, break_on_hyphens=False)


def records(
    header: Sequence[str], rows: Iterable[Sequence[object]], width: int | None
) -> Iterator[tuple[str, str]]:
    """A table turned: lines and their tones, each with the name of a column and one row's cell."""
    names = max(map(len, header), default=0)
    for number, row in enumerate(rows):
        if number:
            yield "", ""
        for name, cell in zip(header, row, strict=True):
            if str(cell):
                for line in hanging(f"{name:{names}}{' ' * GAP}", str(cell), width):
                    yield line, tone_of(cell)


def hanging(head: str, text: str, width: int | None) -> list[str]:
    """Text behind a head; its further lines are indented as much as the head is long."""
    if width is None or len(head) + len(text) <= width:
        return [f"{head}{text}".rstrip()]
    return textwrap.wrap(
        text,
        max(width, len(head) + LEAST),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
        break_long_words=False,
    )
