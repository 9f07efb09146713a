"""Global memory: the 32-byte sectors and 128-byte lines that a warp's request touches.

A request moves whole sectors of 32 bytes; a line has four. Only the number of sectors that the
lanes' bytes touch matters, not which lane accesses which byte. The counts are those of Nsight
Compute's `l1tex__t_sectors_pipe_lsu_mem_global_op_{ld,st}.sum`.

>>> import numpy as np
>>> from smemkern import coalescing
>>> lanes = np.arange(32)
>>> coalescing.sectors(4 * lanes), coalescing.lines(4 * lanes)  # neighbouring words
(4, 1)
>>> coalescing.sectors(4 * 8 * lanes), coalescing.lines(4 * 8 * lanes)  # every eighth
(32, 8)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._banks.wavefronts import LANES, check_addresses, integers, mask_of, read_lanes
from ._render.rows import Rows

__all__ = [
    "LINE",
    "SECTOR",
    "RandomRow",
    "StrideRow",
    "ideal",
    "lines",
    "random_table",
    "sectors",
    "stride_table",
]


def __dir__() -> list[str]:
    return sorted(__all__)


SECTOR, LINE = 32, 128  # bytes
WIDTHS = (1, 2, 4, 8, 16, 32)


def _read(addresses: ArrayLike, width: int, active: ArrayLike | None) -> tuple[Any, Any]:
    __tracebackhide__ = True
    if width not in WIDTHS:
        raise ValueError(f"width should be 1, 2, 4, 8, 16 or 32 bytes, not {width!r}")
    given = read_lanes(addresses)
    lanes = given.shape[-1]
    mask = mask_of(active, given.shape[:-1], lanes)
    part = (mask[..., None] >> np.arange(lanes, dtype=np.uint32) & 1).astype(bool)
    check_addresses(given, part, width)
    return given, part


def _distinct(unit: NDArray[np.int64], part: NDArray[np.bool_]) -> Any:
    """The number of different units that the active lanes of each request touch."""
    ordered = np.sort(np.where(part, unit, -1), axis=-1)  # idle lanes come first
    new = ordered >= 0
    new[..., 1:] &= ordered[..., 1:] != ordered[..., :-1]
    found = np.count_nonzero(new, axis=-1)
    return int(found) if np.ndim(found) == 0 else found


def sectors(addresses: ArrayLike, width: int = 4, active: ArrayLike | None = None) -> Any:
    """The sectors of 32 bytes that requests to global memory touch.

    Parameters
    ----------
    addresses : array of int, (..., lanes)
        The byte address of each of up to 32 lanes, a multiple of width.
    width : int
        Bytes per lane: 1, 2, 4, 8, 16 or 32.
    active : optional
        The active lanes: array of bool (..., lanes) or integer masks (...). None: all.

    Returns
    -------
    int or ndarray of int64 (...)

    Raises
    ------
    TypeError, ValueError
        For addresses that are not integers, are negative or misaligned, and for other widths.
    """
    __tracebackhide__ = True
    given, part = _read(addresses, width, active)
    return _distinct(given // SECTOR, part)


def lines(addresses: ArrayLike, width: int = 4, active: ArrayLike | None = None) -> Any:
    """The lines of 128 bytes that requests touch. Parameters and result are those of sectors."""
    __tracebackhide__ = True
    given, part = _read(addresses, width, active)
    return _distinct(given // LINE, part)


def ideal(addresses: ArrayLike, width: int = 4, active: ArrayLike | None = None) -> Any:
    """The fewest sectors that could hold the bytes accessed. Parameters are those of sectors."""
    __tracebackhide__ = True
    given, part = _read(addresses, width, active)
    best = -(-_distinct(given // width, part) * width // SECTOR)
    return int(best) if np.ndim(best) == 0 else best


class StrideRow(NamedTuple):
    """A warp whose lanes are `stride` elements apart."""

    stride: int
    sectors: int
    lines: int
    efficiency: float  # bytes accessed, as a percentage of those moved


def stride_table(
    strides: ArrayLike = (0, 1, 2, 3, 4, 8, 16, 32, 64), width: int = 4
) -> Rows[StrideRow]:
    """The cost of strides in global memory. 4-byte words touch min(stride, 32) lines.

    Examples
    --------
    >>> from smemkern.coalescing import stride_table
    >>> stride_table([1, 2, 8, 32])
    stride  sectors  lines  efficiency
         1        4      1         100
         2        8      2          50
         8       32      8        12.5
        32       32     32        12.5
    """
    steps = integers("strides", strides).reshape(-1)
    at = abs(steps)[:, None] * np.arange(LANES) * width
    used = np.where(steps == 0, 1, LANES) * width
    moved, touched = sectors(at, width), lines(at, width)
    return Rows(
        StrideRow(int(s), int(n), int(m), 100 * int(a) / (int(n) * SECTOR))
        for s, n, m, a in zip(steps, moved, touched, used, strict=True)
    )


class RandomRow(NamedTuple):
    """Averages over warps that read random elements of an array."""

    elements: int
    sectors: float
    lines: float
    worst: int  # sectors of the worst warp


def random_table(
    elements: ArrayLike = (32, 128, 1024, 2**20), width: int = 4, warps: int = 1000, seed: int = 0
) -> Rows[RandomRow]:
    """The cost of random reads: up to 32 sectors per request, in 32 lines.

    Parameters
    ----------
    elements : int or array of int
        Sizes of the array that is read, in elements.
    width : int
        Bytes per element.
    warps, seed : int
        The number of random requests, and the seed of their generator.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for size in integers("elements", elements).reshape(-1).tolist():
        if size < 1:
            raise ValueError(f"elements should be at least 1, not {size}")
        at = rng.integers(0, size, (warps, LANES)) * width
        n = sectors(at, width)
        mean = float(np.mean(lines(at, width)))
        rows.append(RandomRow(size, float(np.mean(n)), mean, int(np.max(n))))
    return Rows(rows)
