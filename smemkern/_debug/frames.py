"""Calls: which device functions a step is in, and from where they were called."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.demangle import demangled
from .functions import name_at
from .machine import Machine, Place


class Frame(NamedTuple):
    function: str  # "inlined code" if its name is not known
    place: Place


@lru_cache(maxsize=256)
def call_depths(machine: Machine, warp: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The steps of a warp, and at how many calls of device functions deep each is."""
    steps = machine.steps_of(warp)
    column = machine.columns["step_instruction"][steps - machine.first]
    instructions = machine.header["instructions"]
    depths = np.zeros(len(steps), np.int64)
    if len(machine.header["functions"]) > 1:
        of = np.array([one["function"] for one in instructions])[column]
        stack = [int(of[0])] if len(of) else []
        for at, function in enumerate(of.tolist()):
            if function != stack[-1]:
                if function in stack and instructions[int(column[at - 1])]["opcode"] != "call":
                    del stack[stack.index(function) + 1 :]
                else:
                    stack.append(function)
            depths[at] = len(stack) - 1
    return steps, depths


def frames(machine: Machine, step: int) -> list[Frame]:
    """The frames of a step, innermost first."""
    warp = machine.warp(step)
    steps, depths = call_depths(machine, warp)
    at = int(np.searchsorted(steps, step))
    found: list[Frame] = []
    while at >= 0:
        place, instruction = machine.place(int(steps[at])), machine.instruction(int(steps[at]))
        name = machine.header["functions"][instruction["function"]]["name"]
        places = [Place(place.file, place.line), *(Place(*call) for call in place.callers)]
        found += [
            Frame(name_at(machine, one.file, one.line) or "inlined code", one)
            for one in places[:-1]
        ]
        found.append(Frame(demangled(name).plain, places[-1]))
        depth = depths[at]
        at -= 1
        while at >= 0 and depths[at] >= depth:
            at -= 1
        if depth == 0:
            break
    return found
