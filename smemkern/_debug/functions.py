"""The functions of the sources, by which inlined code has a name."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.outline import Item, Outline, every
from .machine import Machine

_NO_NAMES = ("__launch_bounds__", "__align__", "alignas", "decltype", "__attribute__", "noexcept")


class Function(NamedTuple):
    file: str
    first: int  # lines
    last: int
    name: str


@lru_cache(maxsize=64)
def _functions(file: str, text: str) -> tuple[Function, ...]:
    found = []
    for item in every(Outline(text).items):
        name = _name(item) if item.kind == "function" else None
        if name:
            first, last = (text.count("\n", 0, at) + 1 for at in (item.start, item.end))
            found.append(Function(file, first, last, name))
    return tuple(found)


def _name(item: Item) -> str | None:
    words = [token.text for token in item.head]
    for before, word in zip(words, words[1:], strict=False):
        if word == "(" and re.fullmatch(r"[^\W\d]\w*", before) and before not in _NO_NAMES:
            return before
    return None


def functions(machine: Machine) -> list[Function]:
    return [
        one
        for file in machine.header["files"]
        for one in _functions(file["name"], str(file.get("text") or ""))
    ]


def name_at(machine: Machine, file: str | None, line: int) -> str | None:
    """The innermost function that has a line."""
    around = [f for f in functions(machine) if f.file == file and f.first <= line <= f.last]
    return max(around, key=lambda f: f.first).name if around else None


def entries(machine: Machine, name: str) -> NDArray[np.int64]:
    """The steps at which warps come into the lines of a function."""
    named = [one for one in functions(machine) if one.name == name]
    inside = np.array(
        [
            any(p.file == f.file and f.first <= p.line <= f.last for f in named)
            for p in machine.places
        ]
        or [False]
    )[machine.columns["step_instruction"]]
    entered = inside.copy()
    for warp in range(len(machine.header["warps"])):
        steps = machine.steps_of(warp) - machine.first
        entered[steps[1:]] &= ~inside[steps[:-1]]
    return np.flatnonzero(entered) + machine.first
