"""How a warp walks over a tile: which element each lane asks for, request by request."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._wavefronts import LANES, OPS, WIDTHS

_NAME = re.compile(
    r"(?:(?P<op>\w+) +)?(?P<walk>row|column|tile:(?P<a>\d+)x(?P<b>\d+))(?::(?P<width>\d+)B)?"
)


class Access(NamedTuple):
    """A walk's requests: lane l of request i asks for `width` bytes from (r[i, l], c[i, l]) on."""

    name: str
    op: str
    width: int
    r: NDArray[np.int64]  # (n, 32)
    c: NDArray[np.int64]
    active: NDArray[np.bool_]


def pattern(name: str, rows: int, cols: int, itemsize: int = 4) -> Access:
    """A walk over a whole tile, by name.

    Parameters
    ----------
    name : str
        "row"          lanes along a row, on to the next row where it ends
        "column"       lanes down a column, on to the next column where it ends
        "tile:8x4"     8 rows of 4 lanes, over the tile from block to block
        "row:16B"      with a width: vectors of so many bytes, whole elements; so for each of these
        "ldmatrix"     8 x 8 matrices: the 16-byte pieces of 8 rows at a time, 4 matrices a request
        "store row"    with an operation before it: load (which is meant without), store, atomic,
                       copy_async; "stmatrix" beside "ldmatrix"
    rows, cols, itemsize : int
        The tile.

    Returns
    -------
    Access

    Raises
    ------
    ValueError
        For names that are none of these, and tiles that vectors or matrices do not divide.

    Examples
    --------
    >>> from smemkern.banks import pattern
    >>> pattern("tile:8x4", 32, 32).c[0, :6]
    array([0, 1, 2, 3, 0, 1])
    """
    __tracebackhide__ = True
    if name in ("ldmatrix", "stmatrix"):
        if rows % 8:
            raise ValueError(f"{name} reads 8 rows at a time; the tile has {rows}")
        return _walk(name, name, "column", 16, rows, cols, itemsize)
    parts = _NAME.fullmatch(name)
    op = (parts["op"] or "load") if parts else ""
    if parts is None or op not in OPS or op.endswith("matrix"):
        raise ValueError(
            f"access {name!r} is not known; there are 'row', 'column', 'tile:8x4', with a width as "
            f"in 'row:16B' or an operation as in 'store column', 'ldmatrix' and 'stmatrix'"
        )
    width = int(parts["width"] or itemsize)
    if parts["a"] and int(parts["a"]) * int(parts["b"]) != LANES:
        raise ValueError(f"access {name!r}: a warp has 32 lanes, not {parts['a']} x {parts['b']}")
    return _walk(name, op, parts["walk"], width, rows, cols, itemsize)


def _walk(name: str, op: str, walk: str, width: int, rows: int, cols: int, itemsize: int) -> Access:
    __tracebackhide__ = True
    if width not in WIDTHS or width < itemsize:
        raise ValueError(
            f"access {name!r}: {width} bytes are no vector of {itemsize}-byte elements"
        )
    items = width // itemsize
    if cols % items:
        raise ValueError(
            f"access {name!r}: rows of {cols} are not made of vectors of {items} elements"
        )
    r, unit = np.indices((rows, cols // items))
    if walk == "column":
        r, unit = r.T, unit.T
    elif walk != "row":
        a, b = map(int, walk[len("tile:") :].split("x"))
        down, across = -(-rows // a), -(-cols // items // b)
        block, lane = np.divmod(np.arange(down * across * LANES), LANES)
        r, unit = block // across * a + lane // b, block % across * b + lane % b
    r, unit = r.reshape(-1), unit.reshape(-1)
    short = -len(r) % LANES  # the last request may have idle lanes
    r, unit = (np.pad(x, (0, short)).reshape(-1, LANES) for x in (r, unit))
    active = (r < rows) & (unit < cols // items)
    active.reshape(-1)[active.size - short :] = False
    return Access(name, op, width, *_inside(r, unit * items, active), active)


def _inside(
    r: NDArray[Any], c: NDArray[Any], active: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Idle lanes point at (0, 0), so that every index is legal."""
    return np.where(active, r, 0).astype(np.int64), np.where(active, c, 0).astype(np.int64)


def read_access(access: str | Access | ArrayLike, rows: int, cols: int, itemsize: int) -> Access:
    """An Access, the name of one, or each lane's (r, c) as an array (..., lanes, 2)."""
    __tracebackhide__ = True
    if isinstance(access, Access):
        return access
    if isinstance(access, str):
        return pattern(access, rows, cols, itemsize)
    points = np.asarray(access)
    if points.ndim < 2 or points.shape[-1] != 2 or not 1 <= points.shape[-2] <= LANES:
        raise ValueError(
            f"an access should be a name or an array (..., lanes, 2) of each lane's (r, c), not of "
            f"shape {points.shape}"
        )
    if points.dtype.kind not in "iu":
        raise TypeError(f"an access should hold integers, not {points.dtype}")
    lanes = points.shape[-2]
    given = points.reshape(-1, lanes, 2)
    r, c = (np.pad(given[..., i], ((0, 0), (0, LANES - lanes))) for i in (0, 1))
    active = np.broadcast_to(np.arange(LANES) < lanes, r.shape)
    return Access("given", "load", itemsize, *_inside(r, c, active), active)
