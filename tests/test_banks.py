"""smemkern.banks against the rules written down once more, in plain Python, from their texts."""

from math import gcd

import numpy as np
import pytest

import smemkern
from smemkern import banks
from smemkern._banks.wavefronts import OPS

WIDTHS = (1, 2, 4, 8, 16)


# ---- the rule, from its text, lane by lane ----


def group_cost(group, width):
    """Most different 4-byte words in one bank; a wide lane asks for all the words it covers."""
    words = {a // 4 + i for a in group for i in range(max(width // 4, 1))}
    in_bank = [0] * 32
    for word in words:
        in_bank[word % 32] += 1
    return max(in_bank)


def reference(address, width, op, active):
    lanes = [lane for lane in range(32) if active[lane]]
    if op in ("ldmatrix", "stmatrix"):
        width = 16
    size = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[width]

    def agrees(by):
        return all(not active[i ^ by] or address[i] == address[i ^ by] for i in lanes)

    if op == "load" and width > 4 and (agrees(1) or agrees(2)):
        size *= 2
    return sum(
        group_cost([address[lane] for lane in lanes if lane // size == g], width)
        for g in range(32 // size)
    )


def draw(rng, width):
    """A request of one of the kinds that kernels make, or of none."""
    lanes = np.arange(32)
    kind = rng.integers(7)
    if kind == 0:
        items = rng.integers(0, 64, 32)
    elif kind == 1:
        items = lanes * rng.integers(0, 70)
    elif kind == 2:
        items = rng.permutation(32) * rng.integers(1, 5)
    elif kind == 3:
        items = lanes // 2 * rng.integers(1, 40)  # pairs agree
    elif kind == 4:
        items = (lanes & ~2) * rng.integers(1, 40)  # lanes l and l ^ 2 agree
    elif kind == 5:
        items = lanes ^ rng.integers(0, 32)
    else:
        items = np.full(32, rng.integers(0, 5000))
    active = np.ones(32, bool) if rng.random() < 0.6 else rng.random(32) < rng.random()
    return items * width + width * rng.integers(0, 32), active


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("width", WIDTHS)
def test_equal_to_the_text(width, op, rng):
    if op in ("ldmatrix", "stmatrix"):
        width = 16
    drawn = [draw(rng, width) for _ in range(800)]
    addresses, active = (np.array(x) for x in zip(*drawn, strict=True))
    expected = [reference(a.tolist(), width, op, m.tolist()) for a, m in drawn]
    cost = banks.wavefronts(addresses, width, op, active)
    np.testing.assert_array_equal(cost, expected)
    masks = (active * (1 << np.arange(32))).sum(-1)
    np.testing.assert_array_equal(banks.wavefronts(addresses, width, op, masks), expected)
    assert (banks.ideal(addresses, width, op, active) <= cost).all()
    assert len(set(expected)) > 4


def test_batches_and_scalars(rng):
    addresses = 4 * rng.integers(0, 500, (3, 4, 32))
    cost = banks.wavefronts(addresses)
    assert cost.shape == (3, 4) and cost.dtype == np.int64
    one = banks.wavefronts(addresses[1, 2])
    assert type(one) is int and one == cost[1, 2]
    assert banks.wavefronts(addresses[..., :7]).shape == (3, 4)
    assert banks.wavefronts(addresses, active=np.arange(32) < 7).tolist() == (
        banks.wavefronts(addresses[..., :7]).tolist()
    )
    assert banks.wavefronts(np.empty((0, 32), int)).shape == (0,)
    assert banks.wavefronts(addresses[0, 0], active=0) == 0
    given = addresses.copy()
    banks.wavefronts(addresses, active=np.zeros((3, 4), np.uint32))
    np.testing.assert_array_equal(addresses, given)


def test_inactive_lanes_do_not_matter():
    addresses = np.where(np.arange(32) == 3, -7, 128 * np.arange(32))
    assert banks.wavefronts(addresses, active=np.arange(32) != 3) == 31


def test_known_costs():
    lanes = np.arange(32)
    assert banks.wavefronts(4 * lanes) == 1
    assert banks.wavefronts(128 * lanes) == 32
    assert banks.wavefronts(0 * lanes) == 1
    assert banks.wavefronts(8 * lanes, 8) == 2
    assert banks.wavefronts(16 * lanes, 16) == banks.ideal(16 * lanes, 16) == 4
    # The merge exception: a full broadcast of 16 bytes is 2 for a load, 4 for a store.
    assert banks.wavefronts(0 * lanes, 16) == 2
    assert banks.wavefronts(0 * lanes, 16, "store") == 4
    for n, cost in ((8, 1), (16, 2), (32, 4)):  # ldmatrix .x1 .x2 .x4
        assert banks.wavefronts(16 * np.arange(n), op="ldmatrix") == cost
        assert banks.wavefronts(128 * np.arange(n), op="ldmatrix") == 8 * cost


def test_equal_to_a_trace():
    """The model and the emulator's count of a kernel that runs."""
    for stride in range(0, 65, 3):
        x = np.zeros(31 * stride + 1, np.float32)
        trace = smemkern.trace("probe", x, variant="stride_read", stride=stride)
        read = next(row for row in trace.shared if row.op == "load")
        addresses = 4 * stride * np.arange(32)
        assert read.wavefronts == banks.wavefronts(addresses)
        assert read.ideal == banks.ideal(addresses)


def test_the_core_checks_its_arguments():
    addresses, active = np.zeros((3, 32), np.uint64), np.zeros(3, np.uint32)
    ask = smemkern._core.shared_requests
    assert [column.tolist() for column in ask(addresses, active, 4, "load")][0] == [0, 0, 0]
    for wrong in (
        (addresses.astype(np.int64), active),
        (addresses[:, ::-1], active),
        (addresses[:2], active),
        (addresses[0], active),
        (addresses, active.astype(np.uint64)),
        (addresses.tolist(), active),
    ):
        with pytest.raises(TypeError, match="contiguous uint64|must be numpy.ndarray"):
            ask(*wrong, 4, "load")
    with pytest.raises(ValueError, match="width"):
        ask(addresses, active, 32, "load")
    with pytest.raises(ValueError, match="op should be"):
        ask(addresses, active, 4, "read")


# ---- strides ----


@pytest.mark.parametrize("width", WIDTHS)
def test_conflict_degree_is_what_a_group_costs(width):
    lanes = np.arange(32 if width <= 4 else 128 // width)
    strides = np.arange(0, 140)
    degree = banks.conflict_degree(strides, width)
    for stride in strides.tolist():
        expected = group_cost((lanes * stride * width).tolist(), width)
        if width >= 4:
            assert expected == (gcd(stride, len(lanes)) if stride else 1)
        assert degree[stride] == expected == banks.conflict_degree(-stride, width)
        assert banks.wavefronts(lanes * stride * width, width, "store") == expected
    assert type(banks.conflict_degree(3, width)) is int


def test_stride_table():
    table = banks.stride_table(range(1, 34))
    assert [row.ways for row in table] == [gcd(s, 32) for s in range(1, 34)]
    assert [row.cycles for row in table] == [gcd(s, 32) for s in range(1, 34)]
    shares = {row.ways: row.bandwidth for row in table}
    assert shares == {1: 100, 2: 50, 4: 25, 8: 12.5, 16: 6.25, 32: 3.125}
    assert "bandwidth" in repr(table)
    assert banks.stride_table([-3, 0], 8)[0][1:] == banks.stride_table([3], 8)[0][1:]
    for row in banks.stride_table(range(0, 40), 16, "store"):
        assert row.bandwidth == 100 * 4 / row.wavefronts


def test_bank():
    assert banks.bank(0) == 0 and banks.bank(127) == 31 and banks.bank(128) == 0
    assert banks.bank(np.array([4, 68])).tolist() == [1, 17]
    assert banks.bank(68, "sm_13") == 1
    assert type(banks.bank(5)) is int


# ---- explain ----


def test_explain(rng):
    for _ in range(200):
        width = int(rng.choice(WIDTHS))
        addresses, active = draw(rng, width)
        found = banks.explain(addresses, width, active=active)
        address = found.addresses.tolist()
        assert found.lanes == tuple(np.flatnonzero(active))
        assert [lane for group in found.groups for lane in group] == list(range(32))
        costs = [
            group_cost([address[lane] for lane in g if lane in found.lanes], width)
            for g in found.groups
        ]
        assert sum(costs) == found.cost == banks.wavefronts(addresses, width, active=active)
        worst = [min(cost, 1) for cost in costs]
        for group, bank, words in found.conflicts:
            worst[group] = max(worst[group], len(words))
            for word, lanes in words.items():
                assert word % 32 == bank
                assert all(
                    address[lane] // max(width, 4) * max(width, 4) == 4 * word for lane in lanes
                )
        assert worst == costs
        assert str(found.cost) in repr(found)


def test_explain_prints():
    text = repr(banks.explain(np.where(np.arange(32) < 16, 0, 256)))
    assert text.splitlines() == [
        "load of 4 bytes by 32 lanes: 2 wavefronts, ideal 1",
        "  bank 0, 2 ways: word 0 by lanes 0-15; word 64 by lanes 16-31",
    ]
    assert "more banks" in repr(banks.explain(8 * np.arange(32)))
    assert "no bank" in repr(banks.explain(4 * np.arange(32)))
    with pytest.raises(ValueError, match="one request"):
        banks.explain(np.zeros((2, 32), int))


# ---- the past ----


def steps_by_search(words):
    """Compute capability 1.x: fewest steps over all choices of the broadcast word and of lanes."""
    if not words:
        return 0
    seen, front, steps = set(), {tuple(sorted(words))}, 0
    while () not in front:
        steps, after = steps + 1, set()
        for left in front:
            for broadcast in set(left):
                others = [w for w in left if w % 16 != broadcast % 16]
                kept = [w for w in left if w % 16 == broadcast % 16 and w != broadcast]
                # One lane of each other bank: of the words there, any may be picked.
                choices = [()]
                for bank in sorted({w % 16 for w in others}):
                    options = sorted({w for w in others if w % 16 == bank})
                    choices = [(*c, option) for c in choices for option in options]
                for choice in choices:
                    rest = list(others)
                    for word in choice:
                        rest.remove(word)
                    after.add(tuple(sorted(rest + kept)))
        front = after - seen
        seen |= after
    return steps


def test_first_generation_loads(rng):
    for _ in range(150):
        n = int(rng.integers(1, 9))
        words = (rng.integers(0, 4, n) * 16 + rng.integers(0, 3, n)).tolist()
        assert banks.wavefronts(4 * np.array(words), arch="sm_10") == steps_by_search(words)


def test_first_generation_by_the_guide():
    lanes = np.arange(32)
    for stride in range(1, 40):
        assert banks.wavefronts(4 * stride * lanes, arch="sm_13") == 2 * gcd(stride, 16)
        assert banks.wavefronts(4 * stride * lanes, op="store", arch=10) == 2 * gcd(stride, 16)
    assert banks.wavefronts(0 * lanes, arch="sm_10") == 2  # one broadcast a half-warp
    assert banks.wavefronts(lanes, width=1, arch="sm_10") == 2 * 4  # an array of char: 4-way
    assert banks.wavefronts(8 * lanes, width=8, arch="sm_10") == 2 * 2 * 2  # double: 2-way, twice
    assert banks.wavefronts(4 * (lanes % 4) * 16, arch="sm_10") == 2 * 4


def test_second_generation(rng):
    lanes = np.arange(32)
    for stride in range(1, 40):
        assert banks.wavefronts(4 * stride * lanes, arch="sm_20") == gcd(stride, 32)
        assert banks.wavefronts(8 * stride * lanes, 8, arch="2.1") == 2 * gcd(stride, 16)
    for width in (1, 2, 4):  # today's rule for up to a word
        for _ in range(100):
            a, active = draw(rng, width)
            assert banks.wavefronts(a, width, active=active, arch=20) == banks.wavefronts(
                a, width, active=active
            )
    with pytest.raises(ValueError, match="no exact rule"):
        banks.wavefronts(16 * lanes, 16, arch="sm_20")
    with pytest.raises(ValueError, match="has no atomic"):
        banks.wavefronts(4 * lanes, op="atomic", arch="sm_20")


def test_third_generation():
    lanes = np.arange(32)
    assert banks.wavefronts(4 * lanes, arch="sm_35") == 1
    assert banks.wavefronts(8 * lanes, arch="sm_35") == 1  # words i and i + 32 share a row
    assert banks.wavefronts(16 * lanes, arch="sm_35") == 2
    assert banks.wavefronts(8 * lanes, 8, arch="sm_30") == 1
    assert banks.wavefronts(128 * lanes, arch="sm_37") == 16


# ---- what is refused ----


@pytest.mark.parametrize(
    "args, error, says",
    [
        ((np.arange(32), 4), ValueError, "not a multiple of 4"),
        ((-4 * np.arange(32), 4), ValueError, "negative"),
        ((np.arange(33) * 4,), ValueError, "1 to 32 lanes"),
        ((4,), ValueError, "1 to 32 lanes"),
        ((np.arange(32.0),), TypeError, "integers, not float64"),
        ((np.arange(32), 3), ValueError, "1, 2, 4, 8 or 16"),
        ((np.arange(32) * 4, 4, "read"), ValueError, "load, store"),
        ((np.arange(24) * 16, 16, "ldmatrix"), ValueError, "8, 16 or 32"),
        ((np.arange(8) * 4, 4, "load", 1 << 8), ValueError, "beyond the 8 lanes"),
        ((np.arange(8) * 4, 4, "load", 0.5), TypeError, "bools by lane"),
        ((np.arange(8) * 4, 4, "load", None, "sm_40"), ValueError, "no architecture"),
    ],
)
def test_refused(args, error, says):
    with pytest.raises(error, match=says):
        banks.wavefronts(*args)
