"""The banks of shared memory: which bank an address is in, and what a request costs.

There are 32 banks of 4 bytes. A request (one warp instruction) costs as many wavefronts as its
busiest bank has different 4-byte words. Lanes that access the same word share it. The exact rule,
with its groups of lanes for wide accesses, is in csrc/emu/cost/banks.h; traces use the same code.
docs/models.md says which parts were compared with hardware.

>>> import numpy as np
>>> from smemkern import banks
>>> lanes = np.arange(32)
>>> banks.wavefronts(4 * lanes)  # neighbouring words
1
>>> banks.wavefronts(4 * 32 * lanes)  # a column of a 32-wide tile
32
>>> banks.wavefronts(4 * 33 * lanes)  # the same, padded
1
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._banks.history import banks_of
from ._banks.layout import Access, Cost, Layout, Swizzle, pattern
from ._banks.request import Request, explain
from ._banks.suggest import Choice, Suggestion, suggest
from ._banks.wavefronts import LANES, Arch, check_width, generation_of, ideal, integers, wavefronts
from ._device.architectures import BANK_BYTES
from ._render.rows import Rows

__all__ = [
    "Access",
    "Choice",
    "Cost",
    "Layout",
    "Request",
    "StrideRow",
    "Suggestion",
    "Swizzle",
    "bank",
    "conflict_degree",
    "explain",
    "ideal",
    "pattern",
    "stride_table",
    "suggest",
    "wavefronts",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def bank(address: ArrayLike, arch: Arch = "sm_90") -> Any:
    """The bank of each byte address: (address / 4) mod 32.

    Parameters
    ----------
    address : int or array of int
        Bytes from the start of shared memory.
    arch : str, int or pair
        Compute capability 1.x has 16 banks, all later ones 32.

    Returns
    -------
    int or ndarray of int64, of address's shape.

    Source: CUDA C++ Programming Guide, "Shared Memory" of each compute capability.

    Examples
    --------
    >>> from smemkern import banks
    >>> banks.bank(132)
    1
    """
    __tracebackhide__ = True
    given = integers("address", address)
    found = given // BANK_BYTES % banks_of(generation_of(arch))
    return int(found) if found.ndim == 0 else found


def conflict_degree(stride: ArrayLike, width: int = 4, banks: int = 32) -> Any:
    """The N of the N-way conflict of a warp whose lanes are `stride` elements apart.

    A group of lanes that can be served at once (32 lanes of 4 bytes, 16 of 8, 8 of 16) takes this
    many wavefronts. For elements of 4 bytes or more it is gcd(stride, lanes per group); stride 0
    is a broadcast. Elements of 1 and 2 bytes share words, so for them the words are counted.

    Parameters
    ----------
    stride : int or array of int
        In elements. Its sign does not matter.
    width : int
        Bytes per element: 1, 2, 4, 8 or 16.
    banks : int
        The number of banks, which is also the number of 4-byte lanes served together: 32, or 16
        for compute capability 1.x.

    Returns
    -------
    int or ndarray of int64, of stride's shape.

    Examples
    --------
    >>> from smemkern.banks import conflict_degree
    >>> [conflict_degree(s) for s in (0, 1, 2, 3, 4, 8, 16, 32, 33)]
    [1, 1, 2, 1, 4, 8, 16, 32, 1]
    """
    __tracebackhide__ = True
    check_width(width)
    if banks not in (16, 32):
        raise ValueError(f"banks should be 16 or 32, not {banks}")
    step = abs(integers("stride", stride))
    if width >= BANK_BYTES:
        degree = np.where(step == 0, 1, np.gcd(step, banks * BANK_BYTES // width))
    else:
        words = step[..., None] * np.arange(banks) * width // BANK_BYTES  # in order of lanes
        new = np.ones(words.shape, bool)
        new[..., 1:] = words[..., 1:] != words[..., :-1]
        in_bank = words[..., None] % banks == np.arange(banks)
        degree = np.count_nonzero(in_bank & new[..., None], axis=-2).max(axis=-1)
    return int(degree) if np.ndim(degree) == 0 else degree


class StrideRow(NamedTuple):
    """A warp whose lanes are `stride` elements apart."""

    stride: int
    ways: int  # N of the N-way conflict in each group of lanes
    wavefronts: int
    cycles: int  # of the SM's shared memory, which serves one wavefront per clock
    bandwidth: float  # percent of 128 bytes per clock


def stride_table(
    strides: ArrayLike = (1, 2, 3, 4, 8, 16, 32, 33), width: int = 4, op: str = "load"
) -> Rows[StrideRow]:
    """The cost of strides: ways, wavefronts, cycles, and bandwidth from 100 % down to 3.1 %.

    Cycles assume enough warps to saturate the SM's shared memory: one wavefront per clock (126.7
    of 128 bytes per clock were measured on an H200). A single warp takes 2 clocks per wavefront.

    Examples
    --------
    >>> from smemkern.banks import stride_table
    >>> stride_table([1, 2, 32, 33])
    stride  ways  wavefronts  cycles  bandwidth
         1     1           1       1        100
         2     2           2       2         50
        32    32          32      32      3.125
        33     1           1       1        100
    """
    __tracebackhide__ = True
    steps = integers("strides", strides).reshape(-1)
    first = np.where(steps < 0, -steps * (LANES - 1) * width, 0)  # keeps addresses nonnegative
    lanes = first[:, None] + steps[:, None] * np.arange(LANES) * width
    cost = np.atleast_1d(wavefronts(lanes, width, op))
    # The ideal of a broadcast counts its few bytes only. Bandwidth compares with one wavefront
    # per group, so a broadcast has 100 % like a contiguous row.
    best = np.minimum(np.atleast_1d(ideal(lanes, width, op)), cost)
    ways = np.atleast_1d(conflict_degree(steps, width))
    return Rows(
        StrideRow(int(s), int(w), int(c), int(c), 100 * int(b) / int(c))
        for s, w, c, b in zip(steps, ways, cost, best, strict=True)
    )
