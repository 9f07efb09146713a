"""What is shown, before it is known where: a result is a few blocks of these kinds.

    text(blocks)             plain text: __repr__, files, pipes       (here)
    terminal.show(blocks)    a terminal, in colour by rich            (_terminal.py)
    html.fragment(blocks)    a notebook                               (_html.py)

So a table is described once, and says the same wherever it is read.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ._table import GAP, hanging, table

NARROW = 28  # characters: a column of code that is narrower does not read as one


class Heading(NamedTuple):
    """A line above what belongs to it."""

    text: str


class Paragraph(NamedTuple):
    """Text that is wrapped where there is an end to a line."""

    text: str
    tone: str = ""


class Listing(NamedTuple):
    """Lines that stay as they are, each with its tone."""

    lines: Sequence[object]  # str or Cell
    indent: int = 4  # of what goes on below a line, where it is too long


class Facts(NamedTuple):
    """Names and values."""

    pairs: Sequence[tuple[str, object]]


class Table(NamedTuple):
    """Cells as _table.py has them."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]


class Picture(NamedTuple):
    """What only a page can show: an SVG, and nothing elsewhere."""

    svg: str


Block = Heading | Paragraph | Listing | Facts | Table | Picture


def text(blocks: Iterable[Block], width: int | None = None) -> str:
    """Plain text; lines of any length where width is None."""
    shown, before = "", ""
    for block in blocks:
        own = _text(block, width)
        if own:
            shown += before + own
            before = "\n" if isinstance(block, Heading) else "\n\n"
    return shown


def _text(block: Block, width: int | None) -> str:
    if isinstance(block, Heading):
        return block.text
    if isinstance(block, Paragraph):
        return paragraph(block.text, width)
    if isinstance(block, Listing):
        return "\n".join(
            part for line in block.lines for part in folded(str(line), width, block.indent)
        )
    if isinstance(block, Facts):
        return "\n".join(facts(block, width))
    if isinstance(block, Table):
        return table(block.header, block.rows, width)
    return ""


def paragraph(said: str, width: int | None) -> str:
    """Wrapped at words, which are never broken; lines that the text has are kept."""
    if width is None:
        return said
    return "\n".join(
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in said.split("\n")
    )


def folded(line: str, width: int | None, indent: int) -> list[str]:
    """A line of code in as many as it needs; blanks in it are kept, and broken at if there are."""
    parts = []
    if width is not None and width - indent < NARROW:
        indent = 4
    while width is not None and len(line) > width > indent + NARROW // 2:
        blank = line.rfind(" ", width * 3 // 4, width + 1)
        cut = blank if blank > 0 and line[:blank].strip() else width
        parts.append(line[:cut])
        line = " " * indent + line[cut:].lstrip()
    return [*parts, line]


def facts(block: Facts, width: int | None) -> list[str]:
    names = max((len(name) for name, _ in block.pairs), default=0)
    return [
        line
        for name, value in block.pairs
        for line in hanging(f"{name:{names}}{' ' * GAP}", str(value), width)
    ]


class Shown(Protocol):
    """What has blocks. As a method of a class the functions below make its representations."""

    def _blocks(self) -> Sequence[Block]: ...


def as_text(self: Shown) -> str:
    """A __repr__."""
    return text(self._blocks())


def in_notebook(self: Shown) -> str:
    """A _repr_html_."""
    from ._html import fragment

    return fragment(self._blocks())
