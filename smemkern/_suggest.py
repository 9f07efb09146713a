"""Which pad or swizzle makes given accesses free of conflicts, found by trying all there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from ._access import Access, read_access
from ._architectures import BANK_BYTES, BANKS
from ._blocks import Block, Paragraph, Table, in_notebook, text
from ._layout import TMA, Layout, Swizzle
from ._table import Cell, Right

LINE = BANKS * BANK_BYTES  # bytes; what happens in the banks repeats after as much padding


class Choice(NamedTuple):
    """A layout and what the accesses cost on it."""

    layout: Layout
    wasted: int  # bytes that hold no element
    wavefronts: int  # of all accesses, over the whole tile
    ideal: int
    worst: int  # of one request
    conflict_free: bool


class Suggestion(NamedTuple):
    """What suggest returns."""

    best: Choice
    before: Choice | None  # the plain tile; None where vectors do not lie whole in it
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
            f"no pad and no swizzle is free of conflicts for these accesses; "
            f"{self.best.layout!r} comes closest"
        )

    def _blocks(self) -> list[Block]:
        of_kind: dict[str, Choice] = {}  # the best of each kind is enough to look at
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
        return text(self._blocks()).replace("\n\n", "\n", 1)

    def _repr_html_(self) -> str:
        return in_notebook(self)


def candidates(rows: int, cols: int, itemsize: int) -> Iterator[Layout]:
    """Every layout that suggest tries, the simplest first.

    All pads up to a line of banks, after which pads repeat; "xor" of elements and of chunks; TMA's
    three where the rows have their length; and every Swizzle that moves whole elements among the
    banks by bits that the tile's addresses have.
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
        The tile.
    itemsize : int
        Bytes of an element: 1, 2, 4, 8 or 16.
    accesses : iterable of str, Access or array of int
        The walks over the tile, each as often as it happens: names as of smemkern.banks.pattern
        ("row", "store column", "row:16B", "ldmatrix", ...), or arrays (..., lanes, 2) with each
        lane's (r, c).

    Returns
    -------
    Suggestion
        .best, .before (the plain tile) and .alternatives, each with its layout, wasted bytes,
        wavefronts and ideal. Ranked by wavefronts, then wasted bytes, then simplicity: no change,
        padding, "xor", TMA's swizzles, any other Swizzle. `conflict_free` is False where nothing
        that was tried is; then best is the least bad.

    Raises
    ------
    ValueError
        For accesses that the tile does not admit, and if no layout keeps their vectors whole.

    Notes
    -----
    A swizzle wastes nothing and costs an XOR or two an access; padding wastes memory and costs
    nothing. Where that matters look at the alternatives.

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
    walks = []
    for access in accesses:  # no comprehension: its frame would stand in every traceback
        walks.append(read_access(access, rows, cols, itemsize))
    if not walks:
        raise ValueError("accesses is empty: name at least one, such as 'column'")
    tried = [
        choice for layout in candidates(rows, cols, itemsize) for choice in _try(layout, walks)
    ]
    if not tried:
        raise ValueError(
            f"no layout of {rows} x {cols} elements of {itemsize} bytes keeps the vectors of "
            f"{', '.join(walk.name for walk in walks)} whole and aligned"
        )
    plain = tried[0] if _kind(tried[0].layout) == "plain" else None
    best, *others = sorted(tried, key=lambda choice: (choice.wavefronts, choice.wasted))
    return Suggestion(best, plain, tuple(others))


def _kind(layout: Layout) -> str:
    if layout.swizzle is None:
        return "pad" if layout.pad else "plain"
    return layout.swizzle if isinstance(layout.swizzle, str) else "Swizzle"


def _try(layout: Layout, walks: list[Any]) -> Iterator[Choice]:
    """The choice, or nothing if the layout tears a vector apart."""
    try:
        costs = [layout.cost(walk) for walk in walks]
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
