"""Plain-text tables, and the widths of their columns when the output is narrow.

A cell is a string (left-aligned), a number (right-aligned) or a Cell (sets its own alignment).
A Cell may have a style, which says what it means ("good", "bad") and not which colour it gets.
terminal.py and html.py render the same cells in colour; the terminal uses the same widths.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

GAP = 2  # blanks between columns; NARROW_GAP in a table that fits with it only
NARROW_GAP = 1
MIN_TEXT = 16  # characters; if columns of text had to be narrower, records() is used instead
MIN_NOTE = 40  # characters; a column of notes that would be narrower is listed below the table


class Cell:
    """Text with a style: "good", "bad", "dim", "strong", "bar" or none."""

    to_left = True

    def __init__(self, text: str, style: str = "") -> None:
        self.text = text
        self.style = style

    def __str__(self) -> str:
        return self.text


class Right(Cell):
    """Right-aligned text."""

    to_left = False


class Note(Cell):
    """Text about its row. Where its column would be narrow, it is listed below the table."""


class Bar(Cell):
    """A bar that shows a fraction from 0 to 1."""

    def __init__(self, share: float, length: int = 40) -> None:
        super().__init__("#" * round(length * share), "bar")
        self.share = share


def style_of(cell: object) -> str:
    return cell.style if isinstance(cell, Cell) else ""


def are_left(n: int, rows: Sequence[Sequence[object]]) -> list[bool]:
    """Which of n columns are left-aligned: those that hold only text."""
    return [
        all(
            cell.to_left if isinstance(cell, Cell) else isinstance(cell, str)
            for cell in (row[i] for row in rows)
        )
        for i in range(n)
    ]


class Fit(NamedTuple):
    widths: list[int]  # of the columns
    gap: int


def fitted(
    header: Sequence[str], rows: Sequence[Sequence[object]], width: int | None
) -> Fit | None:
    """How a table fits into `width` characters; None if it does not.

    Columns with text of several words shrink, the widest first. Numbers and single words are never
    broken.
    """
    widths = _widths(header, rows, width)
    if widths:
        return Fit(widths, GAP)
    whole = _widths(header, rows, None) or []
    fits = width is not None and sum(whole) + NARROW_GAP * (len(whole) - 1) <= width
    return Fit(whole, NARROW_GAP) if fits else None


def _widths(
    header: Sequence[str], rows: Sequence[Sequence[object]], width: int | None
) -> list[int] | None:
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    if width is None:
        return widths
    left = are_left(len(widths), rows)
    minimum = [
        max(MIN_TEXT, len(head), *(len(word) for cell in column for word in cell.split()))
        if to_left and any(" " in cell for cell in column)
        else wide
        for head, column, to_left, wide in zip(header, columns, left, widths, strict=True)
    ]
    excess = sum(widths) + GAP * (len(widths) - 1) - width
    while excess > 0:
        pairs = zip(widths, minimum, strict=True)
        slack, at = max((wide - low, i) for i, (wide, low) in enumerate(pairs))
        if slack <= 0:
            return None
        widths[at] -= 1
        excess -= 1
    return widths


def notes_fit(header: Sequence[str], rows: Sequence[Sequence[object]], width: int | None) -> bool:
    """Whether each column of notes is as wide as its text, or at least MIN_NOTE."""
    fit = fitted(header, rows, width)
    return all(
        fit is not None and fit.widths[i] >= min(MIN_NOTE, len(str(cell)))
        for row in rows
        for i, cell in enumerate(row)
        if isinstance(cell, Note)
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]], width: int | None = None) -> str:
    """Renders a table with columns as wide as their widest cell.

    A table wider than `width` has its text wrapped. If that does not suffice, records() prints
    each cell on a line of its own.
    """
    rows = list(rows)
    fit = fitted(header, rows, width)
    if fit is None:
        return "\n".join(line for line, _ in records(header, rows, width))
    widths, gap = fit
    left = are_left(len(header), rows)
    lines = []
    for row in [header, *rows]:
        wrapped = [lines_of(cell, wide) for cell, wide in zip(row, widths, strict=True)]
        for number in range(max(map(len, wrapped), default=0)):
            parts = [cell[number] if number < len(cell) else "" for cell in wrapped]
            lines.append(
                (" " * gap)
                .join(
                    part.ljust(wide) if to_left else part.rjust(wide)
                    for part, wide, to_left in zip(parts, widths, left, strict=True)
                )
                .rstrip()
            )
    return "\n".join(lines)


def lines_of(cell: object, width: int) -> list[str]:
    """The lines of a cell in a column of that width."""
    text = str(cell)
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_on_hyphens=False)


def records(
    header: Sequence[str], rows: Iterable[Sequence[object]], width: int | None
) -> Iterator[tuple[str, str]]:
    """A table with one line per cell: (column name and cell, the cell's style)."""
    names = max(map(len, header), default=0)
    for number, row in enumerate(rows):
        if number:
            yield "", ""
        for name, cell in zip(header, row, strict=True):
            if str(cell):
                for line in hanging(f"{name:{names}}{' ' * GAP}", str(cell), width):
                    yield line, style_of(cell)


def hanging(head: str, text: str, width: int | None) -> list[str]:
    """Text after a head; continuation lines are indented by the length of the head."""
    if width is None or len(head) + len(text) <= width:
        return [f"{head}{text}".rstrip()]
    return textwrap.wrap(
        text,
        max(width, len(head) + MIN_TEXT),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
        break_long_words=False,
    )
