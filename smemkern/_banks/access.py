"""Access patterns: which element of a tile each lane accesses, request by request."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .wavefronts import LANES, OPS, WIDTHS

_NAME = re.compile(
    r"(?:(?P<op>\w+) +)?(?P<order>row|column|tile:(?P<a>\d+)x(?P<b>\d+))(?::(?P<width>\d+)B)?"
)


class Access(NamedTuple):
    """The requests of a pattern: lane l of request i accesses `width` bytes at (r[i,l], c[i,l])."""

    name: str
    op: str
    width: int
    r: NDArray[np.int64]  # (n, 32)
    c: NDArray[np.int64]
    active: NDArray[np.bool_]


def pattern(name: str, rows: int, cols: int, itemsize: int = 4) -> Access:
    """The access pattern of that name, over a whole tile.

    Parameters
    ----------
    name : str
        "row"          lanes along a row, continued in the next row
        "column"       lanes down a column, continued in the next column
        "tile:8x4"     each request covers 8 rows of 4 lanes; requests go over the tile row by row
        "row:16B"      any of these with a width: each lane accesses a vector of that many bytes
        "ldmatrix"     8 x 8 matrices: 16-byte chunks of 8 rows, 4 matrices per request
        "store row"    any of these with an operation: load (the default), store, atomic,
                       copy_async; "stmatrix" is the store of "ldmatrix"
    rows, cols, itemsize : int
        The tile's size in elements, and the bytes per element.

    Returns
    -------
    Access

    Raises
    ------
    ValueError
        For an unknown name, or a tile whose size is not a multiple of the vector or matrix.

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
        return _requests(name, name, "column", 16, rows, cols, itemsize)
    parts = _NAME.fullmatch(name)
    op = (parts["op"] or "load") if parts else ""
    if parts is None or op not in OPS or op.endswith("matrix"):
        raise ValueError(
            f"access {name!r} is not known; use 'row', 'column' or 'tile:8x4', optionally with a "
            f"width ('row:16B') or an operation ('store column'), or 'ldmatrix' or 'stmatrix'"
        )
    width = int(parts["width"] or itemsize)
    if parts["a"] and int(parts["a"]) * int(parts["b"]) != LANES:
        raise ValueError(f"access {name!r}: a warp has 32 lanes, not {parts['a']} x {parts['b']}")
    return _requests(name, op, parts["order"], width, rows, cols, itemsize)


def _requests(
    name: str, op: str, order: str, width: int, rows: int, cols: int, itemsize: int
) -> Access:
    __tracebackhide__ = True
    if width not in WIDTHS or width < itemsize:
        raise ValueError(
            f"access {name!r}: {width} bytes are not a vector of {itemsize}-byte elements"
        )
    items = width // itemsize
    if cols % items:
        raise ValueError(
            f"access {name!r}: rows of {cols} do not divide into vectors of {items} elements"
        )
    r, unit = np.indices((rows, cols // items))
    if order == "column":
        r, unit = r.T, unit.T
    elif order != "row":
        a, b = map(int, order[len("tile:") :].split("x"))
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
    """Sets inactive lanes to (0, 0), so that every index is inside the tile."""
    return np.where(active, r, 0).astype(np.int64), np.where(active, c, 0).astype(np.int64)


def read_access(access: str | Access | ArrayLike, rows: int, cols: int, itemsize: int) -> Access:
    """Accepts an Access, a pattern's name, or an array (..., lanes, 2) of each lane's (r, c)."""
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
