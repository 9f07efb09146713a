"""The first wrong element of an argument, and how it is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .inputs import Array, Case
from .judgement import UNWRITTEN, WRONG, Problem
from .tolerance import Tolerance, unequal


class Compared(NamedTuple):
    """One argument after two runs of the reference and two of the candidate."""

    right: Array
    other_right: Array
    one: Array
    other: Array
    before: Array
    other_before: Array

    def difference(
        self, case: Case, at: int, tolerance: Tolerance, slack: float
    ) -> Iterator[Problem]:
        """The problem of the first wrong element."""
        kept = untouched(self.right, self.other_right, self.before, self.other_before)
        changed = unequal(self.one, self.before)
        other_changed = unequal(self.other, self.other_before)
        wrong_one = np.where(kept, changed, tolerance.wrong(self.right, self.one, slack))
        wrong_other = np.where(
            kept, other_changed, tolerance.wrong(self.other_right, self.other, slack)
        )
        wrong = wrong_one | wrong_other
        if not wrong.any():
            return
        place = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        pair = (self.one, self.right) if wrong_one[place] else (self.other, self.other_right)
        value, wanted = _shown(pair[0][place]), _shown(pair[1][place])
        where = f"argument {at}, element {place[0] if len(place) == 1 else place}"
        verdict = WRONG
        if kept[place]:
            message = f"{where} is written: {value!r}; the reference leaves it as it was"
        elif not changed[place] and not other_changed[place] and self._was_poison(place):
            message = f"{where} is never written; expected {wanted!r}"
        elif tolerance.wrong(self.one, self.other, slack)[place]:
            verdict = UNWRITTEN
            message = f"{where} differs between two runs on different contents of the outputs: "
            message += f"{value!r}; expected {wanted!r}"
        else:
            message = f"{where} is {value!r}; expected {wanted!r}"
        many = int(wrong.sum())
        message += f"; {many} of {wrong.size} elements are wrong" if many > 1 else ""
        rule = "uninitialised" if verdict == UNWRITTEN else "wrong-result"
        numbers = (wanted, value) if isinstance(value, int | float) else (None, None)
        yield Problem(verdict, rule, message, case.name, at, place, *numbers)

    def _was_poison(self, place: tuple[int, ...]) -> bool:
        return bool(unequal(self.before, self.other_before)[place])


def _shown(value: Any) -> Any:
    """An element as a Python object."""
    return value.item() if hasattr(value, "item") else value


def untouched(one: Array, other: Array, before: Array, other_before: Array) -> Array:
    """Which elements both runs of the reference left as they were, with different bits."""
    same = ~unequal(one, before) & ~unequal(other, other_before)
    return same & unequal(before, other_before)
