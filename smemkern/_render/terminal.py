"""Prints document nodes: coloured by rich if it is installed and colour is on, else plain.

Both outputs have the same words in the same places. The width is $COLUMNS, else the terminal's.
Lines written to a file or pipe are not wrapped, so that grep and awk see one row per line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TextIO

from .document import (
    Facts,
    Heading,
    Listing,
    Node,
    Paragraph,
    Table,
    facts,
    folded,
    laid_out,
    paragraph,
    text,
)
from .table import GAP, Fit, are_left, fitted, lines_of, notes_fit, records, style_of

CHOICES = ("auto", "always", "never")
UNLIMITED = 10_000  # characters; keeps rich from wrapping lines

_STYLES = {
    "good": "green",
    "bad": "bold red",
    "dim": "dim",
    "strong": "bold",
    "bar": "cyan",
    "": "",
}


def width_of(stream: TextIO) -> int | None:
    """Characters per line; None: unlimited."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):
        return None


def is_coloured(choice: str, stream: TextIO) -> bool:
    """Whether to print in colour: --color decides, then NO_COLOR, FORCE_COLOR, then isatty().

    The two variables follow no-color.org and force-color.org: empty counts as unset.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def show(nodes: Iterable[Node], stream: TextIO, colour: str = "auto") -> None:
    """Writes the nodes, in colour if is_coloured() says so and rich is installed."""
    width = width_of(stream)
    console = _console(stream, width) if is_coloured(colour, stream) else None
    if console is None:
        stream.write(text(nodes, width) + "\n")
        return
    from rich.text import Text

    after = ""
    for node in laid_out(nodes, width):
        if not text([node]):  # a Picture has no text
            continue
        stream.write(after)
        after = "" if isinstance(node, Heading) else "\n"
        for part in _rendered(node, width):
            console.print(part, soft_wrap=isinstance(part, Text))


def growing(
    table: Table, stream: TextIO, colour: str = "auto"
) -> tuple[Callable[[Sequence[object]], None], bool]:
    """Prints the header of a table; returns what prints a row, and whether notes have room.

    `table` has a row whose cells are as wide as any will be.
    """
    width = width_of(stream)
    has_notes = notes_fit(*table, width)
    if not has_notes:
        table = next(iter(laid_out([table], width)))  # type: ignore[assignment]
    widths, gap = fitted(*table, width) or fitted(*table, None)  # type: ignore[misc]
    left = are_left(len(widths), table.rows)
    console = _console(stream, width) if is_coloured(colour, stream) else None

    def line(cells: Sequence[object], style: str | None = None) -> None:
        parts = [
            (str(cell).ljust(wide) if to_left else str(cell).rjust(wide)) + " " * gap
            for cell, wide, to_left in zip(cells, widths, left, strict=False)  # no notes, or all
        ]
        if console is None:
            stream.write("".join(parts).rstrip() + "\n")
        else:
            from rich.text import Text

            styles = [style or _STYLES[style_of(cell)] for cell in cells]
            console.print(Text.assemble(*zip(parts, styles, strict=False)), soft_wrap=True)
        stream.flush()

    line(table.header, "bold")
    return line, has_notes


def _console(stream: TextIO, width: int | None) -> Any:
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(
        file=stream,
        force_terminal=True,
        color_system="standard",
        no_color=False,
        width=width or UNLIMITED,
        highlight=False,
        markup=False,
        emoji=False,
    )


def _rendered(node: Node, width: int | None) -> Iterable[Any]:
    """The renderables that rich prints."""
    from rich.text import Text

    if isinstance(node, Heading):
        yield Text(node.text, "bold")
    elif isinstance(node, Paragraph):
        yield Text(paragraph(node.text, width), _STYLES[node.style])
    elif isinstance(node, Listing):
        for line in node.lines:
            for part in folded(str(line), width, node.indent):
                yield Text(part, _STYLES[style_of(line)])
    elif isinstance(node, Facts):
        lines = [(line, "") for line in facts(node, width)]
        yield from _named(lines, (name for name, _ in node.pairs))
    elif isinstance(node, Table):
        fit = fitted(node.header, node.rows, width)
        if fit is None:
            yield from _named(records(*node, width), node.header)
        else:
            yield _table(node, fit)


def _named(lines: Iterable[tuple[str, str]], names: Iterable[str]) -> Iterable[Any]:
    """Lines and their styles; the name at the start of each line is dimmed."""
    from rich.text import Text

    wide = max(map(len, names), default=0) + GAP
    for line, style in lines:
        yield Text.assemble((line[:wide], _STYLES["dim"]), (line[wide:], _STYLES[style]))


def _table(node: Table, fit: Fit) -> Any:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, fit.gap - 1, 0, 0),  # box.SIMPLE_HEAD adds one blank
        header_style="bold",
        border_style=_STYLES["dim"],
    )
    widths = fit.widths
    for name, wide, left in zip(node.header, widths, are_left(len(widths), node.rows), strict=True):
        justify: Literal["left", "right"] = "left" if left else "right"
        made.add_column(Text(name), justify=justify, width=wide, overflow="fold")
    for row in node.rows:
        made.add_row(
            *(
                Text("\n".join(lines_of(cell, wide)), _STYLES[style_of(cell)])
                for cell, wide in zip(row, widths, strict=True)
            )
        )
    return made
