"""smemkern.banks.Layout, pattern and suggest against plain Python."""

import itertools

import numpy as np
import pytest

from smemkern import banks
from smemkern.banks import Layout, Swizzle
from test_banks import reference

SWIZZLES = [None, "xor", "xor:8B", "xor:16B", Swizzle(2, 3, 4), (3, 4, 3), (1, 2, 9)]


def by_hand(layout, r, c):
    """The address by the words of _banks/layout.py, an element at a time."""
    size, row = layout.itemsize, layout.cols * layout.itemsize
    swizzle = layout.swizzle
    if isinstance(swizzle, str) and swizzle.startswith("xor"):
        chunk = int(swizzle[4:-1]) if ":" in swizzle else size
        m = 1
        while row // chunk % (2 * m) == 0:
            m *= 2
        at = c * size
        at = (at // chunk ^ r % m) * chunk + at % chunk
        return r * layout.pitch + at
    at = r * layout.pitch + c * size
    if swizzle is None:
        return at
    if isinstance(swizzle, str):  # TMA: 16-byte chunk of a 128-byte line XOR the line's number
        mask = {"32B": 1, "64B": 3, "128B": 7}[swizzle]
        line, chunk, byte = at // 128, at // 16 % 8, at % 16
        return line * 128 + (chunk ^ (line & mask)) * 16 + byte
    bits = f"{at:032b}"[::-1]  # lowest first
    out = list(bits)
    for i in range(swizzle.base, swizzle.base + swizzle.bits):
        out[i] = str(int(bits[i]) ^ int(bits[i + swizzle.shift]))
    return int("".join(out)[::-1], 2)


def layouts():
    for (rows, cols), size, swizzle in itertools.product(
        [(32, 32), (8, 64), (16, 16), (5, 24), (64, 8)], [1, 2, 4, 8, 16], SWIZZLES
    ):
        for pad in (0, 1, 3):
            try:
                yield Layout(rows, cols, size, pad, swizzle)
            except ValueError as refused:
                assert str(swizzle).startswith("xor") or "splits" in str(refused), refused
    for span, size in itertools.product((32, 64, 128), (1, 2, 4, 8, 16)):
        yield Layout(24, span // size, size, swizzle=f"{span}B")


@pytest.mark.parametrize("layout", list(layouts()), ids=repr)
def test_address(layout):
    r, c = np.indices((layout.rows, layout.cols))
    at = layout.address(r, c)
    expected = [[by_hand(layout, i, j) for j in range(layout.cols)] for i in range(layout.rows)]
    np.testing.assert_array_equal(at, expected)
    np.testing.assert_array_equal(layout.bank(r, c), at // 4 % 32)
    # A layout is one to one and stays within its bytes.
    bytes_of = (at[..., None] + np.arange(layout.itemsize)).ravel()
    assert len(set(bytes_of.tolist())) == bytes_of.size
    assert at.min() >= 0 and bytes_of.max() < layout.bytes
    assert layout.wasted == layout.bytes - layout.rows * layout.cols * layout.itemsize
    assert type(layout.address(1, 1)) is int


def test_tma_by_the_guide():
    """128B: 8 rows of 8 chunks, chunk j of row i at i ^ j; 64B: two rows a line; 32B: four."""
    for span, per_line in ((128, 1), (64, 2), (32, 4)):
        layout = Layout(64, span // 4, swizzle=f"{span}B")
        for row in range(64):
            for chunk in range(span // 16):
                within = row % per_line * (span // 16) + chunk
                moved = within ^ (row // per_line % (span // 16))
                assert layout.address(row, 4 * chunk) == row // per_line * 128 + 16 * moved
        assert layout.wasted == 0


def test_kernels_own_layouts():
    """What gemm_swizzle.cu and gemm_vectorized.cu write in their comments."""
    square = Layout(32, 32, swizzle="xor")
    chunks = Layout(64, 16, swizzle="xor:16B")
    for r, c in np.ndindex(32, 32):
        assert square.address(r, c) == 4 * (32 * r + (c ^ r))
    for m, k in np.ndindex(64, 16):
        assert chunks.address(m, k) == 4 * (16 * m + 4 * (k // 4 ^ m % 4) + k % 4)


# ---- walks ----


@pytest.mark.parametrize(
    "name", ["row", "column", "tile:8x4", "tile:2x16", "row:8B", "column:16B", "tile:4x8:16B"]
)
@pytest.mark.parametrize("rows, cols, size", [(32, 32, 4), (16, 8, 4), (9, 20, 2), (33, 12, 4)])
def test_a_walk_visits_every_element_once(name, rows, cols, size):
    try:
        walk = banks.pattern(name, rows, cols, size)
    except ValueError as refused:
        assert "vectors" in str(refused) and cols * size % 16
        return
    items = walk.width // size
    visited = [
        (r, c + i)
        for r, c, on in zip(walk.r.flat, walk.c.flat, walk.active.flat, strict=True)
        if on
        for i in range(items)
    ]
    assert sorted(visited) == list(np.ndindex(rows, cols))
    assert walk.r.shape[1] == 32 and walk.op == "load"


def test_walks_by_hand():
    row = banks.pattern("row", 32, 32)
    assert row.r[3].tolist() == [3] * 32 and row.c[3].tolist() == list(range(32))
    column = banks.pattern("store column", 32, 32)
    assert column.c[3].tolist() == [3] * 32 and column.r[3].tolist() == list(range(32))
    assert column.op == "store"
    wide = banks.pattern("row:16B", 8, 32)
    assert wide.c[0].tolist() == [4 * (i % 8) for i in range(32)]
    assert wide.r[0].tolist() == [i // 8 for i in range(32)]
    matrix = banks.pattern("ldmatrix", 16, 64, 2)
    assert (matrix.op, matrix.width) == ("ldmatrix", 16)
    assert matrix.r[0].tolist() == [*range(16), *range(16)]
    assert matrix.c[0].tolist() == [0] * 16 + [8] * 16


@pytest.mark.parametrize("op", ["load", "store"])
@pytest.mark.parametrize("walk", ["row", "column", "tile:8x4", "row:8B", "column:16B"])
@pytest.mark.parametrize("pad, swizzle", [(0, None), (1, None), (4, None), (0, "xor:16B")])
def test_cost_is_that_of_the_addresses(op, walk, pad, swizzle):
    layout = Layout(24, 16, 4, pad, swizzle)
    name = f"{op} {walk}"
    try:
        addresses, active = layout.request(name)
    except ValueError as torn:
        assert "whole and aligned" in str(torn) and pad == 1 and "B" in walk
        return
    width = banks.pattern(name, 24, 16).width
    each = [
        reference(a.tolist(), width, op, m.tolist()) for a, m in zip(addresses, active, strict=True)
    ]
    assert layout.wavefronts(name).tolist() == each
    cost = layout.cost(name)
    assert (cost.requests, cost.wavefronts, cost.worst) == (len(each), sum(each), max(each))
    assert cost.ideal == banks.ideal(addresses, width, op, active).sum() <= cost.wavefronts


def test_cost_by_hand():
    assert Layout(32, 32).cost("column") == (32, 1024, 32, 32, False)
    assert Layout(32, 32, pad=1).cost("column") == (32, 32, 32, 1, True)
    assert Layout(32, 32, swizzle="xor").cost("column") == (32, 32, 32, 1, True)
    # A lane's (r, c) given one by one: a diagonal.
    diagonal = np.stack([np.arange(32), np.arange(32)], -1)
    assert Layout(32, 32).cost(diagonal) == (1, 1, 1, 1, True)


# ---- suggest ----


def all_layouts(rows, cols, size):
    """Every pad below a line of banks, and every swizzle, made here and not by suggest."""
    for pad in range(128 // size):
        yield Layout(rows, cols, size, pad)
    for swizzle in ("xor", "xor:4B", "xor:8B", "xor:16B", "32B", "64B", "128B"):
        try:
            yield Layout(rows, cols, size, swizzle=swizzle)
        except ValueError:
            continue
    for bits, base, shift in itertools.product(range(1, 6), range(2, 7), range(1, 14)):
        fits = base + bits <= 7 and 1 << base >= size
        if shift >= bits and fits and base + shift < (rows * cols * size - 1).bit_length():
            yield Layout(rows, cols, size, swizzle=(bits, base, shift))


CASES = [
    (32, 32, 4, ["row", "column"]),
    (16, 16, 4, ["row", "column"]),
    (32, 8, 4, ["column"]),
    (16, 16, 8, ["store row", "column"]),
    (16, 32, 2, ["store row:16B", "ldmatrix"]),
    (32, 16, 4, ["row:16B", "column"]),
    (24, 12, 4, ["tile:4x8", "store tile:8x4"]),
    (32, 16, 1, ["row", "column"]),
    (16, 20, 4, ["column", "row:16B"]),
    (32, 40, 1, ["column"]),
    (24, 24, 2, ["column", "row:8B"]),
    (32, 3, 16, ["column"]),
]


@pytest.mark.parametrize("rows, cols, size, accesses", CASES, ids=str)
def test_suggest_equals_brute_force(rows, cols, size, accesses):
    found = banks.suggest(rows, cols, size, accesses)
    best = None
    for layout in all_layouts(rows, cols, size):
        total = 0
        for name in accesses:
            walk = banks.pattern(name, rows, cols, size)
            try:
                addresses, active = layout.request(walk)
            except ValueError:
                break
            total += sum(
                reference(a.tolist(), walk.width, walk.op, m.tolist())
                for a, m in zip(addresses, active, strict=True)
            )
        else:
            best = min(best, (total, layout.wasted)) if best else (total, layout.wasted)
    assert (found.best.wavefronts, found.best.wasted) == best
    for choice in (found.best, *found.alternatives[:20]):
        cost = [choice.layout.cost(name) for name in accesses]
        assert choice.wavefronts == sum(c.wavefronts for c in cost)
        assert choice.conflict_free == all(c.conflict_free for c in cost)
        assert choice.wavefronts >= found.best.wavefronts
    assert repr(found.best.layout) in repr(found)


def test_suggest_is_honest():
    """16-byte rows and 4-byte columns at once: no layout can, and it says so."""
    found = banks.suggest(128, 16, 4, ["row:16B", "column"])
    assert not found.conflict_free
    assert repr(found).startswith("no padding and no swizzle is free of conflicts")
    assert found.before.wavefronts > found.best.wavefronts > found.best.ideal


def test_suggest_prefers_what_is_simple():
    assert banks.suggest(32, 32, 4, ["row"]).layout.swizzle is None
    assert banks.suggest(32, 32, 4, "column").layout.swizzle == "xor"
    others = banks.suggest(32, 32, 4, "column").alternatives
    pads = [c.layout.pad for c in others if c.layout.swizzle is None]
    assert pads[0] == 1 and sorted(pads) == list(range(32))
    given = np.stack(np.broadcast_arrays(np.arange(32), 0), -1)
    assert banks.suggest(32, 32, 4, [given]).conflict_free


# ---- what is refused ----


@pytest.mark.parametrize(
    "make, error, says",
    [
        (lambda: Layout(0, 4), ValueError, "rows should be an integer"),
        (lambda: Layout(4, 4, pad=-1), ValueError, "pad should be"),
        (lambda: Layout(4, 4, itemsize=3), ValueError, "1, 2, 4, 8 or 16"),
        (lambda: Layout(4, 5, swizzle="xor"), ValueError, "even number of chunks"),
        (lambda: Layout(4, 5, swizzle="xor:16B"), ValueError, "16-byte chunks"),
        (lambda: Layout(4, 32, swizzle="64B"), ValueError, "rows of 64 bytes"),
        (lambda: Layout(4, 16, pad=4, swizzle="64B"), ValueError, "without padding"),
        (lambda: Layout(4, 32, swizzle="zigzag"), ValueError, "there are: None"),
        (lambda: Layout(4, 32, swizzle=(3, 4, 2)), ValueError, "not a permutation"),
        (lambda: Layout(4, 32, 8, swizzle=(3, 2, 3)), ValueError, "splits elements of 8 bytes"),
        (lambda: Layout(4, 4).address(4, 0), IndexError, "row 4 is outside"),
        (lambda: Layout(4, 4).address(0, -1), IndexError, "column -1"),
        (lambda: Layout(4, 4).address(0.5, 0), TypeError, "integers"),
        (lambda: Layout(4, 4).cost("diagonal"), ValueError, "is not known"),
        (lambda: Layout(4, 4).cost("tile:3x3"), ValueError, "32 lanes"),
        (lambda: Layout(4, 6).cost("row:16B"), ValueError, "vectors of 4 elements"),
        (lambda: Layout(4, 8, 2).cost("ldmatrix"), ValueError, "8 rows"),
        (lambda: Layout(32, 32, pad=1).cost("row:16B"), ValueError, "whole and aligned"),
        (lambda: Layout(4, 4).cost(np.zeros((4, 3), int)), ValueError, "lanes, 2"),
        (lambda: Layout(4, 4).cost(np.zeros((4, 2))), TypeError, "integers"),
        (lambda: banks.suggest(4, 4, 4, []), ValueError, "accesses is empty"),
        (lambda: banks.suggest(4, 4, 4, ["row:2B"]), ValueError, "not a vector"),
    ],
)
def test_refused(make, error, says):
    with pytest.raises(error, match=says):
        make()
