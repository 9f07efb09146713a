"""Recordings of kernels of all kinds: their counts are the trace's, their states are consistent."""

import numpy as np
import pytest

import smemkern
from corpus import CASES
from smemkern import _core
from test_corpus import kernel
from test_replay import check_arithmetic, check_loads

pytestmark = pytest.mark.usefixtures("nvrtc")

STEPS = 60_000


# The order of their atomics decides how often they loop, or how sums are rounded.
DEPEND_ON_TURNS = ("atomics_double", "k_means", "spin_lock", "union_find")


def check_counts(replay, rows):
    """rows: (shared memory, cost, ideal) of counts."""
    columns, spaces = replay.columns, replay.header["spaces"]
    for space in ("shared", "global"):
        here = columns["access_space"] == spaces.index(space)
        own = [row[1:] for row in rows if row[0] == (space == "shared")]
        assert int(columns["access_cost"][here].sum()) == sum(cost for cost, _ in own)
        assert int(columns["access_ideal"][here].sum()) == sum(ideal for _, ideal in own)


def counted_with(call, size):
    """The counts of a recorded run itself, in which warps take turns as in the recording."""
    nothing = (0, 1, 0, None, None, [])
    _, _, raw, _, _ = _core.observe(*call[:1], call[1:], size, trace=True, recording=nothing)
    return [(bool(site[0]), site[6], site[7]) for site in raw[0]]


def check_final_arrays(replay, args):
    """What the recording says is in the arrays at the end is what the kernel has written."""
    header = replay.seek(replay.total).header
    for number, of in enumerate(header["memories"]):
        array = header["arrays"][of["array"]] if of["kind"] == "array" else {}
        given = args[array["argument"]] if "argument" in array else None
        if not isinstance(given, np.ndarray) or not replay.has_contents(number):
            continue
        data = replay.memory(number).view(np.uint8)
        ours = data[array["offset"] : array["offset"] + given.nbytes]
        theirs = np.ascontiguousarray(given.ravel(order="A")).view(np.uint8)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_corpus(case):
    work = case.make(np.random.default_rng())
    for launch in work.launches[:3]:
        size = {"shared_bytes": launch.shared_bytes} if launch.shared_bytes else {}
        call = (kernel(case, launch.name), launch.grid, launch.block, *launch.args)
        blocks = int(np.prod(launch.grid))
        replay = smemkern.replay(*call, blocks=blocks, steps=STEPS, **size)
        counts = counted_with(call, size)
        trace = smemkern.trace(*call, **size)  # writes the arrays, for the next launch
        assert not [one for one in replay.hazards if not one.benign]
        check_arithmetic(replay, limit=150)
        if replay.count == replay.total:
            check_counts(replay, counts)
            check_loads(replay, limit=60)
            if case.name not in DEPEND_ON_TURNS:
                check_final_arrays(replay, launch.args)
                rows = [(True, r.wavefronts, r.ideal) for r in trace.shared]
                check_counts(replay, rows + [(False, r.sectors, r.ideal) for r in trace.global_])
