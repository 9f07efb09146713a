"""Where each lane of a warp is: what it runs next, what it waits for, or that it has exited."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._replay.recording import LANES
from .machine import Machine, Place


class LaneState(NamedTuple):
    what: str  # "active", "waits at barrier 0", "waits for other lanes", "exited", "no thread"
    place: Place | None

    @property
    def is_active(self) -> bool:
        return self.what == "active"


def lane_states(machine: Machine, warp: int, step: int) -> list[LaneState]:
    """By lane, before the step."""
    threads = machine.header["warps"][warp]["lanes"]
    exited = _exited(machine, warp, step)
    waiting = waiting_at_barriers(machine, warp, step)
    following = machine.next_of(warp, step)
    together = 0 if following is None else machine.active(following)
    states = []
    for lane in range(LANES):
        place = _place_of(machine, warp, lane, step)
        if not threads >> lane & 1:
            states.append(LaneState("no thread", None))
        elif exited >> lane & 1:
            states.append(LaneState("exited", None))
        elif lane in waiting:
            states.append(LaneState(f"waits at barrier {waiting[lane][0]}", waiting[lane][1]))
        elif together >> lane & 1:
            states.append(LaneState("active", place))
        else:
            states.append(LaneState("waits for other lanes", place))
    return states


def _place_of(machine: Machine, warp: int, lane: int, step: int) -> Place | None:
    """Of the next step that has the lane."""
    steps = machine.steps_of(warp)
    rest = steps[steps >= step]
    has_lane = machine.columns["step_active"][rest - machine.first] >> lane & 1 == 1
    if has_lane.any():
        return machine.place(int(rest[has_lane.argmax()]))
    return None


def _rows(machine: Machine, kind: str, step: int) -> NDArray[np.int64]:
    """The events of that kind before the step."""
    before = int(machine.columns["first_event"][step - machine.first])
    names = machine.header["event_kinds"]
    number = names.index(kind) if kind in names else -1
    return np.flatnonzero(machine.columns["event_kind"][:before] == number)


def _exited(machine: Machine, warp: int, step: int) -> int:
    rows = _rows(machine, "exit", step)
    rows = rows[machine.columns["event_warp"][rows] == warp]
    return int(np.bitwise_or.reduce(machine.columns["event_lanes"][rows], initial=0))


def waiting_at_barriers(machine: Machine, warp: int, step: int) -> dict[int, tuple[int, Place]]:
    """{lane: (barrier, where it arrived)}"""
    c = machine.columns
    block_of = np.array([one["block"] for one in machine.header["warps"]])
    block = block_of[warp]
    completions = _rows(machine, "barrier_complete", step)
    completions = completions[block_of[c["event_warp"][completions]] == block]
    waiting: dict[int, tuple[int, Place]] = {}
    arrivals = _rows(machine, "barrier_arrive", step)
    for row in arrivals[c["event_warp"][arrivals] == warp].tolist():
        barrier = int(c["event_object"][row])
        later = completions[completions > row]
        if c["event_flags"][row] & 1 or (c["event_object"][later] == barrier).any():
            continue
        place = machine.place(_step_of(machine, row))
        for lane in range(LANES):
            if c["event_lanes"][row] >> lane & 1:
                waiting[lane] = barrier, place
    return waiting


def _step_of(machine: Machine, row: int) -> int:
    column = machine.columns["first_event"]
    return int(np.searchsorted(column, row, side="right")) - 1 + machine.first
