"""Finds the padding or swizzle that makes accesses conflict-free, by trying all candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from .._device.architectures import BANK_BYTES, BANKS
from .._render.document import Node, Paragraph, Table, in_notebook, text
from .._render.table import Cell, Right
from .access import Access, read_access
from .layout import TMA, Layout, Swizzle

LINE = BANKS * BANK_BYTES  # bytes; padding a row by a multiple of it does not change the banks


class Choice(NamedTuple):
    """A layout and the cost of the accesses on it."""

    layout: Layout
    wasted: int  # bytes that hold no element
    wavefronts: int  # of all accesses, over the whole tile
    ideal: int
    worst: int  # of one request
    conflict_free: bool


class Suggestion(NamedTuple):
    """The result of suggest."""

    best: Choice
    before: Choice | None  # the plain tile; None if vectors are not contiguous and aligned in it
    alternatives: tuple[Choice, ...]  # the other candidates, best first

    @property
    def layout(self) -> Layout:
        return self.best.layout

    @property
    def conflict_free(self) -> bool:
        return self.best.conflict_free

    @property
    def _answer(self) -> str:
        if self.conflict_free:
            return f"{self.best.layout!r} is free of conflicts"
        return (
            f"no padding and no swizzle is free of conflicts for these accesses; "
            f"{self.best.layout!r} has the fewest wavefronts"
        )

    def _nodes(self) -> list[Node]:
        of_kind: dict[str, Choice] = {}  # shows only the best choice of each kind
        for choice in (self.best, *self.alternatives):
            of_kind.setdefault(_kind(choice.layout), choice)
        shown = list(of_kind.values())
        rows = [
            (
                repr(c.layout),
                c.wasted,
                Right(f"{100 * c.wasted / (c.layout.bytes - c.wasted):.1f} %"),
                c.wavefronts,
                c.ideal,
                c.worst,
                Cell("yes", "good") if c.conflict_free else Cell("no", "bad"),
            )
            for c in shown
        ]
        header = ("layout", "wasted", "share", "wavefronts", "ideal", "worst", "conflict-free")
        return [
            Paragraph(self._answer, "strong"),
            Table(header, rows),
            *self.layout._picture(),
        ]

    def __repr__(self) -> str:
        return text(self._nodes()).replace("\n\n", "\n", 1)

    def _repr_html_(self) -> str:
        return in_notebook(self)


def candidates(rows: int, cols: int, itemsize: int) -> Iterator[Layout]:
    """Every layout that suggest tries, the simplest first.

    All paddings of less than 128 bytes, after which the banks repeat; "xor" of elements and of
    chunks; TMA's three swizzles if rows have their length; and every Swizzle that keeps elements
    whole, changes bank bits and uses only bits of the tile's addresses.
    """
    for pad in range(LINE // itemsize):
        yield Layout(rows, cols, itemsize, pad)
    row = cols * itemsize
    for name, chunk in (("xor", itemsize), ("xor:4B", 4), ("xor:8B", 8), ("xor:16B", 16)):
        if (name == "xor" or chunk > itemsize) and row % (2 * chunk) == 0:
            yield Layout(rows, cols, itemsize, swizzle=name)
    for name in TMA:
        if row == int(name[:-1]):
            yield Layout(rows, cols, itemsize, swizzle=name)
    highest, line = (rows * row - 1).bit_length(), LINE.bit_length() - 1
    for base in range(max(2, itemsize.bit_length() - 1), line):
        for bits in range(1, line - base + 1):
            for shift in range(bits, highest - base):
                yield Layout(rows, cols, itemsize, swizzle=Swizzle(bits, base, shift))


def suggest(
    rows: int, cols: int, itemsize: int, accesses: Iterable[str | Access | ArrayLike]
) -> Suggestion:
    """The cheapest layout of a tile that makes accesses free of bank conflicts.

    Parameters
    ----------
    rows, cols : int
        The size of the tile.
    itemsize : int
        Bytes per element: 1, 2, 4, 8 or 16.
    accesses : iterable of str, Access or array of int
        The access patterns, each repeated as often as it occurs: names for smemkern.banks.pattern
        ("row", "store column", "row:16B", "ldmatrix", ...), or arrays (..., lanes, 2) of each
        lane's (r, c).

    Returns
    -------
    Suggestion
        .best, .before (the plain tile) and .alternatives, each with its layout, wasted bytes,
        wavefronts and ideal. Ranked by wavefronts, then wasted bytes, then simplicity: no change,
        padding, "xor", TMA's swizzles, any other Swizzle. `conflict_free` is False if no candidate
        is conflict-free; best then has the fewest wavefronts.

    Raises
    ------
    ValueError
        For accesses that do not fit the tile, and if no layout keeps their vectors contiguous and
        aligned.

    Notes
    -----
    A swizzle wastes no memory but costs one or two XORs per access. Padding wastes memory but costs
    no instructions. See the alternatives if that matters.

    Examples
    --------
    >>> from smemkern.banks import suggest
    >>> suggest(32, 32, 4, ["row", "column"]).layout
    Layout(32, 32, swizzle='xor')
    >>> suggest(32, 64, 2, ["store row:16B", "ldmatrix"]).layout
    Layout(32, 64, itemsize=2, swizzle='xor:16B')
    """
    __tracebackhide__ = True
    if isinstance(accesses, str | Access):
        accesses = [accesses]
    patterns = []
    for access in accesses:  # no comprehension: it would add a frame to tracebacks
        patterns.append(read_access(access, rows, cols, itemsize))
    if not patterns:
        raise ValueError("accesses is empty: name at least one, such as 'column'")
    tried = [
        choice for layout in candidates(rows, cols, itemsize) for choice in _try(layout, patterns)
    ]
    if not tried:
        raise ValueError(
            f"no layout of {rows} x {cols} elements of {itemsize} bytes keeps the vectors of "
            f"{', '.join(pattern.name for pattern in patterns)} whole and aligned"
        )
    plain = tried[0] if _kind(tried[0].layout) == "plain" else None
    best, *others = sorted(tried, key=lambda choice: (choice.wavefronts, choice.wasted))
    return Suggestion(best, plain, tuple(others))


def _kind(layout: Layout) -> str:
    if layout.swizzle is None:
        return "pad" if layout.pad else "plain"
    return layout.swizzle if isinstance(layout.swizzle, str) else "Swizzle"


def _try(layout: Layout, patterns: list[Any]) -> Iterator[Choice]:
    """Yields the choice, or nothing if the layout splits or misaligns a vector."""
    try:
        costs = [layout.cost(pattern) for pattern in patterns]
    except ValueError:
        return
    yield Choice(
        layout,
        layout.wasted,
        sum(cost.wavefronts for cost in costs),
        sum(cost.ideal for cost in costs),
        max(cost.worst for cost in costs),
        all(cost.conflict_free for cost in costs),
    )
