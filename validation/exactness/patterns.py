"""Random requests from a seed: typical of kernels, and unusual ones.

A pattern has 32 byte offsets into a window, multiples of the width, with -1 for an inactive lane.
It has 32 more offsets for the source of a copy.
"""

from __future__ import annotations

import numpy as np

from .operations import WINDOW, Operation

LANES = np.arange(32)


def _strided(rng: np.random.Generator) -> np.ndarray:
    return LANES * rng.integers(0, 80) + rng.integers(0, 64)


def _tile(rng: np.random.Generator) -> np.ndarray:
    """Lanes as a small matrix with a pitch per dimension."""
    columns = 2 ** rng.integers(0, 6)
    down, across = rng.integers(0, 70, 2)
    return LANES // columns * down + LANES % columns * across


def _permuted(rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(32) + rng.integers(0, 33)


def _broadcast(rng: np.random.Generator) -> np.ndarray:
    few = rng.integers(0, 2 ** rng.integers(1, 12), rng.integers(1, 9))
    return few[rng.integers(0, len(few), 32)]


def _swizzled(rng: np.random.Generator) -> np.ndarray:
    """A column or a row of a tile whose column is XORed with some bits of its row."""
    pitch = 2 ** rng.integers(2, 7)
    row = LANES // 2 ** rng.integers(0, 6) + rng.integers(0, 8)
    column = LANES % 2 ** rng.integers(0, 6) + rng.integers(0, 8)
    if rng.random() < 0.5:
        row, column = column, row
    return row * pitch + ((column ^ (row >> rng.integers(0, 3))) % pitch)


def _random(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2 ** rng.integers(1, 15), 32)


def _clustered(rng: np.random.Generator) -> np.ndarray:
    centres = rng.integers(0, 2**12, rng.integers(1, 6))
    return centres[rng.integers(0, len(centres), 32)] + rng.integers(0, 2 ** rng.integers(1, 6), 32)


def _paired(rng: np.random.Generator) -> np.ndarray:
    """Lanes whose numbers differ in one bit share an address, with a few exceptions."""
    by = 2 ** rng.integers(0, 5)
    items = _random(rng)
    items = items[LANES & ~by]
    for lane in rng.integers(0, 32, rng.choice([0, 0, 0, 1, 2])):
        items[lane] = rng.integers(0, 2**10)
    return items


def _one_bank(rng: np.random.Generator) -> np.ndarray:
    """All lanes in one or two banks, some at the same word."""
    step = rng.choice([8, 16, 32, 64, 128])
    return rng.integers(0, rng.integers(2, 40), 32) * step + rng.integers(0, 2, 32) * rng.integers(
        0, 9
    )


KINDS = (
    _strided,
    _tile,
    _permuted,
    _broadcast,
    _swizzled,
    _random,
    _clustered,
    _paired,
    _one_bank,
)


def _mask(rng: np.random.Generator) -> np.ndarray:
    kind = rng.integers(0, 8)
    if kind < 3:
        return np.ones(32, bool)
    if kind == 3:
        return rng.random(32) < rng.random()
    if kind == 4:
        return rng.integers(1, 33) > LANES
    if kind == 5:
        bit = 2 ** rng.integers(0, 5)
        return (LANES & bit == 0) == rng.integers(0, 2)
    if kind == 6:
        return rng.permutation(32) < rng.integers(1, 5)
    return np.repeat(rng.random(8) < 0.5, 4)


def _source(rng: np.random.Generator, width: int, target: np.ndarray) -> np.ndarray:
    """Source offsets of a copy: mostly rows of contiguous bytes, as in kernels."""
    kind = rng.integers(0, 6)
    if kind < 2:
        items = LANES + (0 if kind == 0 else rng.integers(0, 64))
    elif kind == 2:
        columns = 2 ** rng.integers(1, 5)
        items = LANES // columns * rng.integers(1, 80) + LANES % columns
    elif kind == 3:
        return np.where(target < 0, 0, target)
    elif kind == 4:
        items = KINDS[rng.integers(0, len(KINDS))](rng)
    else:
        items = LANES * rng.integers(0, 9)
    return items * width % WINDOW


def pattern(rng: np.random.Generator, operation: Operation) -> np.ndarray:
    items = KINDS[rng.integers(0, len(KINDS))](rng)
    offsets = items * operation.width % WINDOW
    if not operation.full:
        active = _mask(rng)
        if not active.any():
            active[rng.integers(0, 32)] = True
        offsets[~active] = -1
    source = _source(rng, operation.width, offsets) if operation.kind == "copy_async" else offsets
    return np.stack([offsets, source]).astype(np.int32)


def draw(operation: Operation, seed: int, count: int) -> np.ndarray:
    """`count` patterns of an operation, which depend only on the seed and the operation.

    Shape (count, 2, 32): offsets of the access, and of the source of a copy.
    """
    key = int.from_bytes(operation.name.encode(), "little")
    rng = np.random.default_rng([seed, key % 2**64, key >> 64 & (2**64 - 1)])
    return np.stack([pattern(rng, operation) for _ in range(count)])
