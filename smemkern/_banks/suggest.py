"""Finds the padding or swizzle that makes accesses conflict-free, by trying all candidates.

The search is csrc/emu/cost/layouts.c, which also finds the layout that recordings name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._render.document import Node, Paragraph, Table, in_notebook, text
from .._render.table import Cell, Right
from .access import Access, read_access
from .layout import Layout
from .wavefronts import OPS, check_width, mask_of


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


def suggest(
    rows: int, cols: int, itemsize: int, accesses: Iterable[str | Access | ArrayLike]
) -> Suggestion:
    """The cheapest layout of a tile that makes accesses free of bank conflicts.

    It is the best of all paddings of less than 128 bytes, after which the banks repeat; "xor" of
    elements and of chunks; TMA's three swizzles if rows have their length; and every Swizzle that
    keeps elements whole, changes bank bits and uses only bits of the tile's addresses.

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
    plain = Layout(rows, cols, itemsize)
    given = [_checked(pattern, plain) for pattern in patterns]
    tried = [
        Choice(Layout(rows, cols, itemsize, pad, swizzle), *cost)
        for pad, swizzle, *cost in _core.layouts(plain.rows, plain.cols, itemsize, given)
    ]
    if not tried:
        raise ValueError(
            f"no layout of {rows} x {cols} elements of {itemsize} bytes keeps the vectors of "
            f"{', '.join(pattern.name for pattern in patterns)} whole and aligned"
        )
    before = tried[0] if _kind(tried[0].layout) == "plain" else None
    best, *others = sorted(tried, key=lambda choice: (choice.wavefronts, choice.wasted))
    return Suggestion(best, before, tuple(others))


def _kind(layout: Layout) -> str:
    if layout.swizzle is None:
        return "pad" if layout.pad else "plain"
    return layout.swizzle if isinstance(layout.swizzle, str) else "Swizzle"


def _checked(given: Access, plain: Layout) -> tuple[Any, ...]:
    """The pattern as _core.layouts takes it; raises for what is not in the tile."""
    __tracebackhide__ = True
    with contextlib.suppress(ValueError):  # it splits vectors, which another layout may not
        plain.request(given)
    if given.op not in OPS:
        raise ValueError(f"op should be one of {', '.join(OPS)}, not {given.op!r}")
    check_width(given.width)
    r, c = (np.ascontiguousarray(x, np.int64) for x in (given.r, given.c))
    return r, c, mask_of(given.active, r.shape[:1], r.shape[1]), given.width, given.op
