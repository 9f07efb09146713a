"""A debugging session: where it is in the recording, and how it moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._replay.recording import Recording
from .expressions import Cell, Scope, Wrong
from .machine import Machine, Place
from .points import WATCHED, Point, Steps, at_location, on_event, on_memory


class Stop(NamedTuple):
    """Why a movement ended."""

    reason: str = ""  # "" after a step
    point: Point | None = None


END = Stop("[The kernel has ended.]")
START = Stop("No more reverse-execution history.")


class Session:
    """The current step, the warp and lane in focus, and the points to stop at.

    `record(first)` makes the window of the run that begins at that step; None: there is only one.
    """

    def __init__(
        self, recording: Recording, record: Callable[[int], Recording] | None = None
    ) -> None:
        self.machine = Machine(recording)
        self.record = record
        self.step = self.machine.first
        self.warp = self.machine.warp(self.step) if self.machine.count else 0
        self.lane: int | None = None
        self.points: list[Point] = []
        self.numbered = 0
        self.is_fresh = True  # nothing has run: the first step itself may be a stop
        self.values: list[object] = []
        self.starts = [self.machine.first]  # of the windows so far

    # ---- where it is ----

    @property
    def is_at_end(self) -> bool:
        return self.step >= int(self.machine.header["total"])

    @property
    def at(self) -> int | None:
        """The step that the warp in focus executes next; None: it has ended."""
        return self.machine.next_of(self.warp, self.step)

    @property
    def scope(self) -> Scope:
        return Scope(self.machine, self.warp, self.step)

    def need_at(self) -> int:
        if self.at is None:
            raise Wrong("the warp has ended: go back (reverse-continue), or choose another warp")
        return self.at

    def current(self) -> tuple[str | None, int]:
        """File and line; of a warp that has ended its last ones."""
        at = self.at
        if at is None:
            at = self.machine.before(self.warp, self.step)
        if at is None:
            return None, 1
        place = self.machine.place(at)
        return place.file, place.line

    # ---- points ----

    def add(self, kind: str, what: str, steps: Callable[[Machine], Steps]) -> Point:
        self.numbered += 1
        point = Point(self.numbered, kind, what, steps)
        self.points.append(point)
        return point

    def add_break(self, text: str) -> Point:
        where, steps = at_location(self.machine, text, *self.current())
        return self.add("breakpoint", where, steps)

    def add_catch(self, text: str) -> Point:
        what, steps = on_event(text)
        steps(self.machine)  # raises for a hazard that there is none of
        return self.add("catchpoint", what, steps)

    def add_watch(
        self, name: str, text: str, cell: Cell, warp: int | None = None, lane: int | None = None
    ) -> Point:
        if cell.offsets.ndim:
            raise Wrong(f"{text.strip()} is one element per lane: watch one, such as tile[3][4]")
        prefix = {"watch": "", "rwatch": "read ", "awatch": "access "}[name]
        array, low = cell.array, int(cell.offsets)
        steps = on_memory(array.memory, low, array.itemsize, WATCHED[name], warp, lane)
        point = self.add(f"{prefix}watchpoint", text.strip(), steps)
        point.cell = cell
        return point

    def point(self, number: int) -> Point:
        for point in self.points:
            if point.number == number:
                return point
        raise Wrong(f"there is no breakpoint number {number}")

    # ---- searching ----

    def open_window(self, first: int) -> None:
        """Records the window from that step on."""
        assert self.record is not None
        self.machine = Machine(self.record(first))
        if first not in self.starts:
            self.starts.append(first)

    def next_window(self) -> bool:
        """Goes to the beginning of the window that follows; False: there is none."""
        machine = self.machine
        if self.record is None or not machine.header["truncated"] or not machine.count:
            return False
        self.open_window(machine.end)
        self.step = self.machine.first
        return True

    def previous_window(self) -> bool:
        """Goes to the end of the window before. They follow each other without a gap."""
        earlier = [start for start in self.starts if start < self.machine.first]
        if not earlier or self.record is None:
            return False
        self.open_window(max(earlier))
        self.step = self.machine.end
        return True

    def has_step(self, step: int) -> bool:
        """Opens the window that has a step; False: none has."""
        if step < self.machine.first:
            earlier = [start for start in self.starts if start <= step]
            if not earlier or self.record is None:
                return False
            self.open_window(max(earlier))
        while step >= self.machine.end and self.next_window():
            pass
        return self.machine.first <= step <= self.machine.end

    def find(self, forward: bool, low: int, high: int, own: int | None = None) -> Stop | None:
        """The first stop from `low` to before `high`, or the last one; moves there.

        `own`: stops of this warp only, and watchpoints.
        """
        by_point = [(point, self.stops_of(point, own)) for point in self.points if point.is_enabled]
        every = [steps for _, steps in by_point] or [np.empty(0, np.int64)]
        candidates = np.unique(np.concatenate(every))
        candidates = candidates[(candidates >= low) & (candidates < high)]
        for step in candidates.tolist() if forward else candidates[::-1].tolist():
            for point, steps in by_point:
                at = np.searchsorted(steps, step)
                if at < len(steps) and steps[at] == step and point.holds(self.machine, step):
                    self.go(step)
                    return self.hit(point)
        return None

    def stops_of(self, point: Point, own: int | None) -> Steps:
        steps = point.steps(self.machine)
        if own is None or point.is_watchpoint:
            return steps
        return steps[self.machine.columns["step_warp"][steps - self.machine.first] == own]

    def hit(self, point: Point) -> Stop:
        point.hits += 1
        if point.is_temporary:
            self.points = [one for one in self.points if one is not point]
        return Stop(f"{point.title()}, {point.what}", point)

    def go(self, step: int, warp: int | None = None) -> None:
        self.step = step
        self.is_fresh = False
        if warp is not None:
            self.warp = warp
        elif step < self.machine.end:
            self.warp = self.machine.warp(step)

    def run(self, forward: bool) -> Stop:
        """To the next stop, through as many windows as it takes."""
        low = self.step if self.is_fresh else self.step + 1
        while True:
            machine = self.machine
            span = (low, machine.end) if forward else (machine.first, self.step)
            found = self.find(forward, *span)
            if found:
                return found
            if not (self.next_window() if forward else self.previous_window()):
                self.go(machine.end if forward else machine.first)
                return END if forward else START
            low = self.machine.first

    # ---- by the warp in focus ----

    def leave(self, forward: bool) -> Stop:
        """The warp has no further step in this direction."""
        machine = self.machine
        if not forward:
            steps = machine.steps_of(self.warp)
            self.go(int(steps[0]) if len(steps) else machine.first, self.warp)
            return START
        last = machine.before(self.warp, machine.end)
        self.go(machine.first if last is None else last + 1, self.warp)
        name = machine.header["warps"][self.warp]["warp"]
        return END if self.is_at_end else Stop(f"[Warp {name} has ended.]")

    def move(self, target: int | None, forward: bool) -> Stop:
        """To a step of the warp, unless a point of it, or a watchpoint, is before that."""
        machine, warp = self.machine, self.warp
        beyond = machine.end if forward else machine.first - 1
        limit = beyond if target is None else target
        low, high = (self.step + 1, limit + 1) if forward else (limit, self.step)
        if found := self.find(forward, low, high, warp):
            return found
        if target is None:
            return self.leave(forward)
        self.go(target, warp)
        return Stop()

    def cross(self, forward: bool) -> Stop | None:
        """Into the next window, or the one before; a stop on the way there ends it."""
        machine, warp = self.machine, self.warp
        span = (self.step + 1, machine.end) if forward else (machine.first, self.step)
        if found := self.find(forward, *span, warp):
            return found
        if not (self.next_window() if forward else self.previous_window()):
            return self.leave(forward)
        self.step -= forward  # its first step is one to look at
        return None

    def depth(self, step: int) -> int:
        """Calls that the step is in: inlined ones, and those of device functions."""
        return self.machine.place(step).depth + self.calls(step)

    def calls(self, step: int) -> int:
        from .frames import call_depths

        steps, depths = call_depths(self.machine, self.machine.warp(step))
        return int(depths[np.searchsorted(steps, step)])

    def position(self, step: int) -> tuple[Place, int]:
        """The place of a step, and its instruction's number."""
        return self.machine.place(step), int(
            self.machine.columns["step_instruction"][step - self.machine.first]
        )

    def line_forward(self, over_calls: bool) -> Stop:
        origin = self.need_at()
        place, number = self.position(origin)
        depth = self.depth(origin) if over_calls else 1 << 30
        low = origin + 1
        while True:
            steps = self.machine.steps_of(self.warp)
            for step in steps[np.searchsorted(steps, low) :].tolist():
                at = self.position(step)
                if self.depth(step) <= depth and is_new_line(at, (place, number)):
                    return self.move(step, True)
            if stop := self.cross(True):
                return stop
            low = self.machine.first

    def line_back(self, over_calls: bool) -> Stop:
        origin = self.at
        depth = self.depth(origin) if over_calls and origin is not None else 1 << 30
        while True:
            steps = self.machine.steps_of(self.warp)
            at = int(np.searchsorted(steps, self.step)) - 1
            while at >= 0 and self.depth(int(steps[at])) > depth:
                at -= 1
            if at >= 0:
                return self.move(self.line_start(at, depth), False)
            if stop := self.cross(False):
                return stop

    def line_start(self, at: int, depth: int) -> int:
        """The first step of the line that the warp's step number `at` belongs to."""
        steps = self.machine.steps_of(self.warp)
        start = int(steps[at])
        for earlier in steps[:at][::-1].tolist():
            if self.depth(earlier) > depth:
                continue
            if is_new_line(self.position(start), self.position(earlier)):
                break
            start = earlier
        return start

    def instruction(self, forward: bool) -> Stop:
        low = self.need_at() + 1 if forward else self.step
        while True:
            machine = self.machine
            found = machine.next_of(self.warp, low) if forward else machine.before(self.warp, low)
            if found is not None:
                return self.move(found, forward)
            if stop := self.cross(forward):
                return stop
            low = self.machine.first if forward else self.machine.end

    def finish(self, forward: bool) -> Stop:
        """Out of the innermost call; backwards to the line that calls."""
        origin = self.need_at()
        depth = self.depth(origin)
        if depth == 0:
            raise Wrong("finish is not meaningful in the kernel itself, the outermost frame")
        steps = self.machine.steps_of(self.warp)
        at = int(np.searchsorted(steps, origin))
        rest = steps[at + 1 :] if forward else steps[:at][::-1]
        for step in rest.tolist():
            if self.depth(step) < depth:
                return self.move(step, forward)
        return self.move(None, forward)


def is_new_line(at: tuple[Place, int], origin: tuple[Place, int]) -> bool:
    """Whether a step is at another line than an earlier one, or comes back to its line."""
    return at[0] != origin[0] or at[1] <= origin[1]
