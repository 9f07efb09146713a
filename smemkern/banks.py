"""The banks of shared memory: which bank an address is in, and what a request costs.

32 banks, 4 bytes each; a request (one warp instruction) costs as many wavefronts as there are
different 4-byte words in the bank that has the most. Lanes that read the same word share it. The
exact rule, with its groups of lanes for wide accesses, is in csrc/emu/cost/banks.h, and traces use
the same code. docs/models.md says what of it was compared with hardware.

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

from ._architectures import BANK_BYTES
from ._banks_history import banks_of
from ._layout import Access, Cost, Layout, Swizzle, pattern
from ._request import Request, explain
from ._rows import Rows
from ._suggest import Choice, Suggestion, suggest
from ._wavefronts import LANES, Arch, check_width, generation_of, ideal, integers, wavefronts

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


def bank(address: ArrayLike, arch: Arch = "sm_90") -> Any:
    """The bank of each byte address: (address / 4) mod 32.

    Parameters
    ----------
    address : int or array of int
        In bytes from the start of shared memory.
    arch : str, int or pair
        Compute capability 1.x has 16 banks, all later ones 32.

    Returns
    -------
    int or ndarray of int64, the shape of address.

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
    """How many ways a warp conflicts whose lanes are `stride` elements apart.

    A group of lanes that can be served at once (32 lanes of 4 bytes, 16 of 8, 8 of 16) takes this
    many wavefronts. For elements of a word or more it is gcd(stride, lanes of the group); stride 0
    is a broadcast. Bytes and halves share words, and are counted out.

    Parameters
    ----------
    stride : int or array of int
        In elements; its sign does not matter.
    width : int
        Bytes of an element: 1, 2, 4, 8 or 16.
    banks : int
        Banks, and lanes that are served together, of 4 bytes each: 32, or 16 for compute capability
        1.x.

    Returns
    -------
    int or ndarray of int64, the shape of stride.

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
    ways: int  # lanes of a group that wait for each other
    wavefronts: int
    cycles: int  # of the SM's shared memory, which serves one wavefront a clock
    bandwidth: float  # share of 128 bytes a clock, in percent


def stride_table(
    strides: ArrayLike = (1, 2, 3, 4, 8, 16, 32, 33), width: int = 4, op: str = "load"
) -> Rows[StrideRow]:
    """What strides cost: ways, wavefronts, cycles, and bandwidth from 100 % down to 3.1 %.

    Cycles are those of an SM's shared memory with many warps asking: one wavefront a clock (126.7
    of 128 bytes a clock were measured on an H200). One warp alone waits 2 clocks a wavefront.

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
    first = np.where(steps < 0, -steps * (LANES - 1) * width, 0)  # so that addresses are positive
    lanes = first[:, None] + steps[:, None] * np.arange(LANES) * width
    cost = np.atleast_1d(wavefronts(lanes, width, op))
    # A broadcast is as good as a row of neighbours: one wavefront a group is all there is to gain.
    best = np.minimum(np.atleast_1d(ideal(lanes, width, op)), cost)
    ways = np.atleast_1d(conflict_degree(steps, width))
    return Rows(
        StrideRow(int(s), int(w), int(c), int(c), 100 * int(b) / int(c))
        for s, w, c, b in zip(steps, ways, cost, best, strict=True)
    )
