"""The cost of shared-memory requests: banks.wavefronts, banks.ideal and their argument checks.

The rules themselves are elsewhere: csrc/emu/cost/banks.c has the current one (sm_50 and later),
history.py those of older GPUs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._device.architectures import capability
from . import history

OPS = ("load", "store", "atomic", "ldmatrix", "stmatrix", "copy_async")
WIDTHS = (1, 2, 4, 8, 16)
LANES = 32
Arch = str | int | tuple[int, int]


def generation_of(arch: Arch) -> int:
    """Which bank rule applies: 1, 2, 3 for those compute capabilities, 5 for all from 5.0 on."""
    __tracebackhide__ = True
    major = capability(arch) // 10
    if not 1 <= major <= 12 or major == 4:
        raise ValueError(f"there is no architecture {arch!r}")
    return min(major, 5)


def wavefronts(
    addresses: ArrayLike,
    width: int = 4,
    op: str = "load",
    active: ArrayLike | None = None,
    arch: Arch = "sm_90",
) -> Any:
    """The wavefronts that requests to shared memory cost.

    Parameters
    ----------
    addresses : array of int, (..., lanes)
        The byte address of each lane, a multiple of width. With fewer than 32 lanes the rest are
        inactive. For ldmatrix and stmatrix: the addresses of their 8, 16 or 32 rows.
    width : int
        Bytes per lane: 1, 2, 4, 8 or 16. Ignored for ldmatrix and stmatrix, whose rows have 16.
    op : str
        "load", "store", "atomic", "ldmatrix", "stmatrix" or "copy_async" (its write).
    active : optional
        The active lanes: array of bool (..., lanes), or integer masks (...) with lane 0 in the
        lowest bit. None: all. Addresses of inactive lanes are ignored.
    arch : str, int or pair
        "sm_50" and later, such as "sm_90", have the current rule. "sm_10" to "sm_37" have older
        rules, for loads and stores only.

    Returns
    -------
    int or ndarray of int64 (...)
        0 for a request without active lanes.

    Raises
    ------
    TypeError, ValueError
        For an illegal shape, width, operation or address.

    Notes
    -----
    docs/models.md says which operations were compared with an H200's counters, and how.

    Examples
    --------
    >>> import numpy as np
    >>> from smemkern.banks import wavefronts
    >>> wavefronts(16 * np.arange(32), width=16)  # four groups of 8 lanes
    4
    >>> wavefronts(np.zeros(32, int), width=16)  # one address: groups merge in pairs
    2
    """
    __tracebackhide__ = True
    request = read_requests(addresses, width, op, active)
    generation = generation_of(arch)
    if generation < 5:
        lanes = lanes_of(request.active)
        cost = history.wavefronts(request.addresses, lanes, request.width, op, generation)
    else:
        cost = _core.shared_requests(*request[:2], request.width, op)[0]
    return _shaped(cost, request.shape)


def ideal(
    addresses: ArrayLike, width: int = 4, op: str = "load", active: ArrayLike | None = None
) -> Any:
    """The fewest wavefronts that such requests could cost, with any layout and lane order.

    A wavefront serves 128 bytes. The width divides the warp into groups of lanes, and each group
    costs at least one wavefront. Parameters and result are those of wavefronts.
    """
    __tracebackhide__ = True
    request = read_requests(addresses, width, op, active)
    cost = _core.shared_requests(*request[:2], request.width, op)[1]
    return _shaped(cost, request.shape)


# ---- reading arguments ----


class Requests(NamedTuple):
    addresses: NDArray[np.uint64]  # (n, 32)
    active: NDArray[np.uint32]  # (n,)
    width: int
    shape: tuple[int, ...]  # of the batch


def integers(name: str, value: ArrayLike) -> NDArray[np.int64]:
    __tracebackhide__ = True
    given = np.asarray(value)
    if given.size == 0:
        given = given.astype(np.int64)
    if given.dtype.kind not in "iu":
        raise TypeError(f"{name} should be integers, not {given.dtype}")
    return given.astype(np.int64)


def check_width(width: int) -> None:
    __tracebackhide__ = True
    if width not in WIDTHS:
        raise ValueError(f"width should be 1, 2, 4, 8 or 16 bytes, not {width!r}")


def mask_of(active: ArrayLike | None, shape: tuple[int, ...], lanes: int) -> NDArray[np.uint32]:
    """Lane masks of the batch, from bools or masks."""
    __tracebackhide__ = True
    if active is None:
        return np.full(shape, (1 << lanes) - 1, np.uint32)
    given = np.asarray(active)
    if given.dtype == bool:
        bits = np.broadcast_to(given, (*shape, lanes))
        return (
            (bits * (np.uint64(1) << np.arange(lanes, dtype=np.uint64))).sum(-1).astype(np.uint32)
        )
    if given.dtype.kind not in "iu":
        raise TypeError(f"active should be bools by lane or integer masks, not {given.dtype}")
    if given.size and (given.min() < 0 or int(given.max()) >= 1 << lanes):
        raise ValueError(f"active has bits beyond the {lanes} lanes that have an address")
    return np.broadcast_to(given, shape).astype(np.uint32)


def lanes_of(mask: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Masks (n,) as bools (n, 32)."""
    return (mask[:, None] >> np.arange(LANES, dtype=np.uint32) & 1).astype(bool)


def read_lanes(addresses: ArrayLike) -> NDArray[np.int64]:
    """Checks the shape of addresses: up to 32 lanes along the last axis."""
    __tracebackhide__ = True
    given = integers("addresses", addresses)
    if given.ndim == 0 or not 1 <= given.shape[-1] <= LANES:
        raise ValueError(
            f"addresses should have 1 to 32 lanes along the last axis, not shape {given.shape}"
        )
    return given


def check_addresses(addresses: NDArray[np.int64], part: NDArray[np.bool_], width: int) -> None:
    """Checks that the active lanes have nonnegative addresses aligned to `width` bytes."""
    __tracebackhide__ = True
    bad = addresses[part & ((addresses < 0) | (addresses % width != 0))]
    if bad.size and bad[0] < 0:
        raise ValueError(f"addresses should not be negative, as {bad[0]} is")
    if bad.size:
        raise ValueError(f"address {bad[0]} is not a multiple of {width}, the width in bytes")


def read_requests(addresses: ArrayLike, width: int, op: str, active: ArrayLike | None) -> Requests:
    __tracebackhide__ = True
    if op not in OPS:
        raise ValueError(f"op should be one of {', '.join(OPS)}, not {op!r}")
    matrix = op in ("ldmatrix", "stmatrix")
    if matrix:
        width = 16
    check_width(width)
    given = read_lanes(addresses)
    *batch, lanes = given.shape
    if matrix and lanes not in (8, 16, 32):
        raise ValueError(f"{op} takes 8, 16 or 32 row addresses, not {lanes}")
    shape = tuple(batch)
    mask = mask_of(active, shape, lanes).reshape(-1)
    every = np.zeros((mask.size, LANES), np.int64)
    every[:, :lanes] = given.reshape(-1, lanes)
    is_active = lanes_of(mask)
    check_addresses(every, is_active, width)
    return Requests(np.where(is_active, every, 0).astype(np.uint64), mask, width, shape)


def _shaped(cost: NDArray[Any], shape: tuple[int, ...]) -> Any:
    return int(cost[0]) if shape == () else cost.astype(np.int64).reshape(shape)
