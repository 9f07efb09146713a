"""Breakpoints, watchpoints and catchpoints: at which steps of a recording they stop."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .expressions import Cell, Scope, Wrong
from .functions import entries, functions
from .machine import READS, WRITES, Machine

Steps = NDArray[np.int64]


@dataclass
class Point:
    """Where to stop. `steps` finds the steps in a window, in ascending order."""

    number: int
    kind: str  # "breakpoint", "read watchpoint", "catchpoint", ...
    what: str
    steps: Callable[[Machine], Steps]
    condition: str | None = None
    is_temporary: bool = False
    is_enabled: bool = True
    hits: int = 0
    cell: Cell | None = None  # of a watchpoint

    @property
    def is_watchpoint(self) -> bool:
        return self.kind.endswith("watchpoint")

    def title(self) -> str:
        """As a stop names it."""
        name = f"temporary {self.kind}" if self.is_temporary else self.kind
        return f"{name.capitalize()} {self.number}"

    def holds(self, machine: Machine, step: int) -> bool:
        """Whether the condition is true in a lane that executes the step, or there is none."""
        if self.condition is None:
            return True
        value = Scope(machine, machine.warp(step), step).value(self.condition) != 0
        active = machine.executed(step) or machine.active(step)
        lanes = np.broadcast_to(value, (32,))
        return any(lanes[lane] for lane in range(32) if active >> lane & 1)


# ---- places ----

_LINE = re.compile(r"(?:(?P<file>[^\s:*][^:]*):)?(?P<line>\d+)|\*(?P<ptx>\d+)")


def at_location(machine: Machine, text: str, file: str | None, line: int) -> tuple[str, Any]:
    """(description, steps of a machine) of a place: 12, sum.cu:12, a function, *34 (of the PTX).

    `file` and `line` are the current place, which an empty text means.
    """
    found = _LINE.fullmatch(text.strip() or str(line))
    if found is None:
        return _at_function(machine, text.strip())
    if found["ptx"]:
        return _at_ptx(machine, int(found["ptx"]))
    name = file
    if found["file"]:
        files = machine.files_named(found["file"])
        if not files:
            raise Wrong(f"no source file named {found['file']}; info sources lists them")
        name = files[0]
    wanted = _line_with_code(machine, name, int(found["line"]))
    where = f"{name.rpartition('/')[2]}:{wanted}" if name else f"PTX line {wanted}"
    return where, lambda one: _starts_at(one, name, wanted)


def _line_with_code(machine: Machine, file: str | None, line: int) -> int:
    """The line, or the next one that has instructions, as gdb does."""
    lines = {place.line for place in machine.places if place.file == file}
    following = [one for one in lines if one >= line]
    if not following:
        of = f" of {file}" if file else ""
        raise Wrong(f"no instruction is at line {line}{of} or later")
    return min(following)


def _starts_at(machine: Machine, file: str | None, line: int) -> Steps:
    is_there = np.array([(p.file, p.line) == (file, line) for p in machine.places] or [False])
    there = is_there[machine.columns["step_instruction"]]
    return np.flatnonzero(there & machine.line_starts) + machine.first


def _at_ptx(machine: Machine, line: int) -> tuple[str, Any]:
    def steps(one: Machine) -> Steps:
        is_there = np.array([i["ptx_line"] == line for i in one.header["instructions"]] or [False])
        return np.flatnonzero(is_there[one.columns["step_instruction"]]) + one.first

    if not any(one["ptx_line"] == line for one in machine.header["instructions"]):
        raise Wrong(f"no instruction is at line {line} of the PTX")
    return f"PTX line {line}", steps


def _at_function(machine: Machine, name: str) -> tuple[str, Any]:
    from .._compiler.demangle import demangled

    for index, function in enumerate(machine.header["functions"]):
        if name in (function["name"], demangled(function["name"]).plain):
            return name, lambda one, index=index: _entries(one, index)
    if any(name == one.name for one in functions(machine)):  # inlined
        return name, lambda one: entries(one, name)
    raise Wrong(f"there is no function {name}: give its name, a line, or FILE:LINE")


def _entries(machine: Machine, function: int) -> Steps:
    first = machine.header["functions"][function]["first_instruction"]
    return np.flatnonzero(machine.columns["step_instruction"] == first) + machine.first


# ---- memory ----

WATCHED = {"watch": WRITES, "rwatch": READS, "awatch": READS | WRITES}


def on_memory(
    memory: int, low: int, size: int, ops: frozenset[str], warp: int | None, lane: int | None
) -> Callable[[Machine], Steps]:
    """Accesses to these bytes, by any thread or by one."""

    def steps(machine: Machine) -> Steps:
        found = machine.touches(memory, low, low + size, ops, lane)
        if "store" in ops and lane is None:
            found = np.union1d(found, machine.arrivals(memory, low, low + size))
        if warp is not None:
            of = machine.columns["step_warp"][found - machine.first]
            found = found[of == warp]
        return found

    return steps


# ---- events ----


def on_event(text: str) -> tuple[str, Callable[[Machine], Steps]]:
    """catch conflict [N], catch barrier, catch hazard [N], catch exit."""
    name, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    if rest and not re.fullmatch(r"\d{1,6}", rest):
        raise Wrong(f"expected a number after {name}, found {rest!r}")
    if "conflict".startswith(name or "?"):
        ways = int(rest or 1)
        return f"conflict over {ways} way{'s' * (ways != 1)}", lambda m: m.conflicts(ways)
    if "hazard".startswith(name or "?"):
        number = int(rest) if rest else None
        return f"hazard {rest}".strip(), lambda m: hazard_steps(m, number)
    if "barrier".startswith(name or "?"):
        return "barrier", lambda m: m.events("barrier_arrive")
    if "exit".startswith(name or "?"):
        return "exit", lambda m: m.events("exit")
    raise Wrong("catch needs one of: conflict [N], hazard [N], barrier, exit")


def hazard_steps(machine: Machine, number: int | None) -> Steps:
    """The steps of the accesses of one hazard, or the later accesses of all."""
    hazards = machine.header["hazards"]
    if number is not None and not 1 <= number <= len(hazards):
        raise Wrong(f"there is no hazard {number}; info hazards lists them")
    harmful = [one for one in hazards if not one["benign"]]
    chosen = harmful if number is None else [hazards[number - 1]]
    found = []
    for one in chosen:
        steps = [p["step"] for p in one["parties"] if p.get("step") is not None]
        if steps:
            found += steps if number is not None else [max(steps)]
    inside = [step for step in found if machine.first <= step < machine.end]
    return np.unique(np.array(inside, np.int64))
