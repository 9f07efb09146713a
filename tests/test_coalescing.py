"""smemkern.coalescing against sets of sectors, and against what the emulator counts."""

import numpy as np
import pytest

import smemkern
from smemkern import coalescing


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_equal_to_sets(width, rng):
    addresses = width * np.concatenate(
        [rng.integers(0, high, (100, 32)) for high in (4, 40, 400, 2**40)]
        + [np.arange(32) * rng.integers(0, 50, (100, 1)) + rng.integers(0, 99, (100, 1))]
    )
    active = rng.random(addresses.shape) < rng.random((len(addresses), 1))
    sectors = coalescing.sectors(addresses, width, active)
    lines = coalescing.lines(addresses, width, active)
    ideal = coalescing.ideal(addresses, width, active)
    for i, (row, mask) in enumerate(zip(addresses.tolist(), active.tolist(), strict=True)):
        asked = {a + b for a, on in zip(row, mask, strict=True) if on for b in range(width)}
        assert sectors[i] == len({a // 32 for a in asked})
        assert lines[i] == len({a // 128 for a in asked})
        assert ideal[i] == -(-len(asked) // 32) <= sectors[i]


def test_strides():
    for row in coalescing.stride_table(range(1, 70)):
        assert row.lines == min(row.stride, 32)
        assert row.sectors == min(4 * row.stride, 32)
        assert row.efficiency == 100 * 128 / (32 * row.sectors)
    assert coalescing.stride_table([0])[0][1:] == (1, 1, 12.5)


def test_random():
    table = coalescing.random_table([1, 32, 2**30])
    assert table[0][1:] == (1, 1, 1)
    assert 3.5 < table[1].sectors <= 4 and table[1].lines == 1
    assert table[2].worst == 32 and table[2].sectors > 31.9
    assert coalescing.random_table() == coalescing.random_table()


def test_equal_to_the_emulator(rng):
    """The probe reads x[stride * lane]; the emulator counts on its own addresses."""
    for stride in (0, 1, 2, 3, 5, 8, 33):
        x = rng.standard_normal(31 * stride + 1).astype(np.float32)
        trace = smemkern.trace("probe", x, variant="coalescing", stride=stride)
        read = next(row for row in trace.global_ if row.op == "load")
        assert read.sectors == coalescing.sectors(4 * stride * np.arange(32))
        assert read.ideal == coalescing.ideal(4 * stride * np.arange(32))


def test_shapes():
    assert type(coalescing.sectors(4 * np.arange(32))) is int
    assert coalescing.sectors(4 * np.zeros((2, 3, 32), int)).shape == (2, 3)
    assert coalescing.sectors(4 * np.arange(32), active=0b1001) == 1
    assert coalescing.sectors(4 * np.arange(32), active=0) == 0


@pytest.mark.parametrize(
    "args, error, says",
    [
        ((np.arange(32),), ValueError, "not a multiple of 4"),
        (([-4],), ValueError, "negative"),
        ((np.arange(33) * 4,), ValueError, "1 to 32 lanes"),
        (([0], 64), ValueError, "16 or 32"),
        (([0.5],), TypeError, "integers"),
    ],
)
def test_refused(args, error, says):
    with pytest.raises(error, match=says):
        coalescing.sectors(*args)
