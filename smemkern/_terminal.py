"""Blocks on a terminal: in colour by rich where that is installed and wanted, else as plain text.

Both say the same words in the same places. Width: $COLUMNS, else the terminal's; what goes into a
file or a pipe has lines as long as they need, so that grep and awk find a row on a line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, TextIO

from ._blocks import (
    Block,
    Facts,
    Heading,
    Listing,
    Paragraph,
    Table,
    facts,
    folded,
    paragraph,
    text,
)
from ._table import GAP, are_left, fitted, lines_of, records, tone_of

CHOICES = ("auto", "always", "never")
ENDLESS = 10_000  # characters: a line that rich should not break

_STYLES = {
    "good": "green",
    "bad": "bold red",
    "dim": "dim",
    "strong": "bold",
    "bar": "cyan",
    "": "",
}


def width_of(stream: TextIO) -> int | None:
    """Characters of a line; None: no end."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):
        return None


def is_coloured(choice: str, stream: TextIO) -> bool:
    """Whether colour is wanted: what --color says, then NO_COLOR, FORCE_COLOR, then a terminal.

    The two variables are as no-color.org and force-color.org have them: empty means unset.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def show(blocks: Iterable[Block], stream: TextIO, colour: str = "auto") -> None:
    """Write them, in colour if that is wanted and rich is there."""
    width = width_of(stream)
    console = _console(stream, width) if is_coloured(colour, stream) else None
    if console is None:
        stream.write(text(blocks, width) + "\n")
        return
    from rich.text import Text

    after = ""
    for block in blocks:
        if not text([block]):  # as a picture, which only a page can show
            continue
        stream.write(after)
        after = "" if isinstance(block, Heading) else "\n"
        for part in _rendered(block, width):
            console.print(part, soft_wrap=isinstance(part, Text))


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
        width=width or ENDLESS,
        highlight=False,
        markup=False,
        emoji=False,
    )


def _rendered(block: Block, width: int | None) -> Iterable[Any]:
    """What rich prints."""
    from rich.text import Text

    if isinstance(block, Heading):
        yield Text(block.text, "bold")
    elif isinstance(block, Paragraph):
        yield Text(paragraph(block.text, width), _STYLES[block.tone])
    elif isinstance(block, Listing):
        for line in block.lines:
            for part in folded(str(line), width, block.indent):
                yield Text(part, _STYLES[tone_of(line)])
    elif isinstance(block, Facts):
        lines = [(line, "") for line in facts(block, width)]
        yield from _named(lines, (name for name, _ in block.pairs))
    elif isinstance(block, Table):
        widths = fitted(block.header, block.rows, width)
        if widths is None:
            yield from _named(records(*block, width), block.header)
        else:
            yield _table(block, widths)


def _named(lines: Iterable[tuple[str, str]], names: Iterable[str]) -> Iterable[Any]:
    """Lines and their tones; the names that they begin with step back."""
    from rich.text import Text

    wide = max(map(len, names), default=0) + GAP
    for line, tone in lines:
        yield Text.assemble((line[:wide], _STYLES["dim"]), (line[wide:], _STYLES[tone]))


def _table(block: Table, widths: list[int]) -> Any:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - 1, 0, 0),  # the box has a blank of its own
        header_style="bold",
        border_style=_STYLES["dim"],
    )
    for name, wide, left in zip(
        block.header, widths, are_left(len(widths), block.rows), strict=True
    ):
        justify: Literal["left", "right"] = "left" if left else "right"
        if wide:
            made.add_column(Text(name), justify=justify, width=wide, overflow="fold")
    for row in block.rows:
        cells = [(cell, wide) for cell, wide in zip(row, widths, strict=True) if wide]
        made.add_row(
            *(Text("\n".join(lines_of(cell, wide)), _STYLES[tone_of(cell)]) for cell, wide in cells)
        )
    return made
