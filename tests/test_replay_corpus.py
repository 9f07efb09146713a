"""Recordings of kernels of all kinds: their counts are the trace's, their states are consistent."""

import numpy as np
import pytest

import smemkern
from corpus import CASES
from test_corpus import kernel
from test_replay import check_arithmetic, check_loads

pytestmark = pytest.mark.usefixtures("nvrtc")

STEPS = 60_000


@pytest.fixture(autouse=True)
def one_host_thread(monkeypatch):
    """As a recorded run has: atomics of several blocks then come in the same order."""
    monkeypatch.setenv("SMEMKERN_EMU_THREADS", "1")


def check_counts(replay, rows):
    """rows: (shared memory, cost, ideal) of counts."""
    columns, spaces = replay.columns, replay.header["spaces"]
    for space in ("shared", "global"):
        here = columns["access_space"] == spaces.index(space)
        own = [row[1:] for row in rows if row[0] == (space == "shared")]
        assert int(columns["access_cost"][here].sum()) == sum(cost for cost, _ in own)
        assert int(columns["access_ideal"][here].sum()) == sum(ideal for _, ideal in own)


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
def test_corpus(case, drawn):
    work = case.make(drawn)
    for launch in work.launches[:3]:
        size = {"shared_bytes": launch.shared_bytes} if launch.shared_bytes else {}
        call = (kernel(case, launch.name), launch.grid, launch.block, *launch.args)
        blocks = int(np.prod(launch.grid))
        replay = smemkern.replay(*call, blocks=blocks, steps=STEPS, **size)
        trace = smemkern.trace(*call, **size)  # writes the arrays, for the next launch
        assert not [one for one in replay.hazards if not one.benign]
        check_arithmetic(replay, limit=150)
        if replay.count == replay.total:
            check_loads(replay, limit=60)
            check_final_arrays(replay, launch.args)
            rows = [(True, r.wavefronts, r.ideal) for r in trace.shared]
            check_counts(replay, rows + [(False, r.sectors, r.ideal) for r in trace.global_])
