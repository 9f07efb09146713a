"""Document nodes: a result describes itself as a list of nodes, independent of the output.

    text(nodes)             plain text: __repr__, files, pipes       (here)
    terminal.show(nodes)    a terminal, coloured by rich             (terminal.py)
    html.markup(nodes)      a notebook                               (html.py)

Each table is described once, so all outputs say the same.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from .table import GAP, Note, hanging, notes_fit, table

NARROW = 28  # characters; code wrapped into a narrower column is hard to read


class Heading(NamedTuple):
    """A title line; the next node follows without a blank line."""

    text: str


class Paragraph(NamedTuple):
    """Text, wrapped to the output's width if it has one."""

    text: str
    style: str = ""


class Listing(NamedTuple):
    """Preformatted lines, each with its own style."""

    lines: Sequence[object]  # str or Cell
    indent: int = 4  # of the continuation of a line that is too long


class Facts(NamedTuple):
    """Names and values."""

    pairs: Sequence[tuple[str, object]]


class Table(NamedTuple):
    """A header and rows of cells; table.py describes the cells."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]


class Picture(NamedTuple):
    """An SVG for HTML output; text and terminal output omit it."""

    svg: str


Node = Heading | Paragraph | Listing | Facts | Table | Picture


def laid_out(nodes: Iterable[Node], width: int | None) -> Iterator[Node]:
    """The nodes; the notes of a table that has no room for them follow it as facts."""
    for node in nodes:
        if isinstance(node, Table) and not notes_fit(*node, width):
            yield from _with_notes_below(node)
        else:
            yield node


def _with_notes_below(node: Table) -> Iterator[Node]:
    noted = [any(isinstance(row[i], Note) for row in node.rows) for i in range(len(node.header))]

    def without(cells: Sequence[Any]) -> list[Any]:
        return [cell for cell, is_note in zip(cells, noted, strict=True) if not is_note]

    yield Table(without(node.header), [without(row) for row in node.rows])
    for i, is_note in enumerate(noted):
        if is_note:
            yield Heading(f"{node.header[0]}: {node.header[i]}")
            yield Facts([(str(row[0]), row[i]) for row in node.rows])


def text(nodes: Iterable[Node], width: int | None = None) -> str:
    """Renders plain text. width=None does not limit the length of lines."""
    shown, before = "", ""
    for node in laid_out(nodes, width):
        own = _text(node, width)
        if own:
            shown += before + own
            before = "\n" if isinstance(node, Heading) else "\n\n"
    return shown


def _text(node: Node, width: int | None) -> str:
    if isinstance(node, Heading):
        return node.text
    if isinstance(node, Paragraph):
        return paragraph(node.text, width)
    if isinstance(node, Listing):
        return "\n".join(
            part for line in node.lines for part in folded(str(line), width, node.indent)
        )
    if isinstance(node, Facts):
        return "\n".join(facts(node, width))
    if isinstance(node, Table):
        return table(node.header, node.rows, width)
    return ""


def paragraph(words: str, width: int | None) -> str:
    """Wraps between words, never inside one; keeps the text's own line breaks."""
    if width is None:
        return words
    return "\n".join(
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in words.split("\n")
    )


def folded(line: str, width: int | None, indent: int) -> list[str]:
    """Wraps a line of code. Keeps runs of blanks, and breaks at a blank if one is near the end."""
    parts = []
    if width is not None and width - indent < NARROW:
        indent = 4
    while width is not None and len(line) > width > indent + NARROW // 2:
        blank = line.rfind(" ", width * 3 // 4, width + 1)
        cut = blank if blank > 0 and line[:blank].strip() else width
        parts.append(line[:cut])
        line = " " * indent + line[cut:].lstrip()
    return [*parts, line]


def facts(node: Facts, width: int | None) -> list[str]:
    names = max((len(name) for name, _ in node.pairs), default=0)
    return [
        line
        for name, value in node.pairs
        for line in hanging(f"{name:{names}}{' ' * GAP}", str(value), width)
    ]


class Renderable(Protocol):
    """A result that returns document nodes; its class uses the functions below as methods."""

    def _nodes(self) -> Sequence[Node]: ...


def as_text(self: Renderable) -> str:
    """For __repr__."""
    return text(self._nodes())


def in_notebook(self: Renderable) -> str:
    """For _repr_html_."""
    from .html import markup

    return markup(self._nodes())
