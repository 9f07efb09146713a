"""SVG pictures of banks, for pages and notebooks. Their colours come from _render/html.py."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from .._device.architectures import BANKS
from .request import Request

if TYPE_CHECKING:
    from .layout import Layout

_CELL = 13  # pixels
_LEFT, _TOP = 46, 20
_MAX_SHOWN = 32  # rows and columns of a tile


def bank_map(request: Request) -> str:
    """A map with a row per lane and a column per bank; the shade shows the wavefront.

    The first word of a bank has the normal colour. Further words of the same bank are red, the
    later their wavefront, the stronger.
    """
    cell, left, top = _CELL, _LEFT, _TOP
    marks = []
    banks, wavefronts = request.banks, request.turns
    for lane, step in zip(*(wavefronts >= 0).nonzero(), strict=True):
        bank, wavefront = int(banks[lane, step]), int(wavefronts[lane, step])
        byte = int(request.addresses[lane]) // 4 * 4 + 4 * int(step)
        colour = "rgb(var(--bad))" if wavefront else "var(--c1)"
        shade = 0.45 + 0.55 * wavefront / 31 if wavefront else 1
        marks.append(
            f'<rect x="{left + bank * cell}" y="{top + int(lane) * cell}" width="{cell - 1}" '
            f'height="{cell - 1}" rx="2" fill="{colour}" fill-opacity="{shade:.2f}">'
            f"<title>lane {lane}, bank {bank}, byte {byte}</title></rect>"
        )
    labels = [
        f'<text x="{left + at * cell + 6}" y="{top - 6}" text-anchor="middle">{at}</text>'
        f'<text x="{left - 6}" y="{top + at * cell + 9}" text-anchor="end">{at}</text>'
        for at in range(0, 32, 4)
    ]
    lines = [
        f'<line x1="{left}" x2="{left + 32 * cell}" y1="{top + group.start * cell - 0.5}" '
        f'y2="{top + group.start * cell - 0.5}" stroke="var(--line)"/>'
        for group in request.groups
    ]
    lines.append(
        f'<rect x="{left - 0.5}" y="{top - 0.5}" width="{32 * cell}" height="{32 * cell}" '
        'fill="var(--soft)" stroke="var(--line)"/>'
    )
    lines.reverse()  # the background rectangle is drawn first
    width, height = left + 32 * cell + 4, top + 32 * cell + 4
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="banks of each lane"><text x="4" y="{top - 6}">bank</text>'
        f'<text x="4" y="{top + 9}">lane</text>{"".join(lines + labels + marks)}</svg>'
    )


def tile_map(layout: Layout) -> str:
    """The elements of a tile, each with the bank of its first byte as number and colour.

    A request whose lanes touch elements of different colours has no bank conflict.
    """
    rows, cols = min(layout.rows, _MAX_SHOWN), min(layout.cols, _MAX_SHOWN)
    wide, high = 17, _CELL
    squares: dict[int, list[str]] = defaultdict(list)
    numbers: dict[int, list[str]] = defaultdict(list)
    for row in range(rows):
        for col, bank in enumerate(layout.bank(row, range(cols)).tolist()):
            x, y = _LEFT + col * wide, _TOP + row * high
            squares[bank].append(f"M{x} {y}h{wide - 1}v{high - 1}h-{wide - 1}z")
            numbers[row].append(f'<tspan x="{x + wide // 2}">{bank}</tspan>')
    paths = [
        f'<path d="{"".join(d)}" fill="hsl({bank * 360 // BANKS} 62% 68%)">'
        f"<title>bank {bank}</title></path>"
        for bank, d in sorted(squares.items())
    ]
    texts = [
        f'<text y="{_TOP + row * high + 9}" text-anchor="middle" style="fill:#16202c">'
        f"{''.join(spans)}</text>"
        for row, spans in numbers.items()
    ]
    labels = [
        f'<text x="{_LEFT + at * wide + 8}" y="{_TOP - 6}" text-anchor="middle">{at}</text>'
        for at in range(0, cols, 4)
    ]
    labels += [
        f'<text x="{_LEFT - 6}" y="{_TOP + at * high + 9}" text-anchor="end">{at}</text>'
        for at in range(0, rows, 4)
    ]
    width, height = _LEFT + cols * wide + 4, _TOP + rows * high + 4
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="banks of a tile"><text x="4" y="{_TOP - 6}">column</text>'
        f'<text x="4" y="{_TOP + 9}">row</text>{"".join(labels + paths + texts)}</svg>'
    )
