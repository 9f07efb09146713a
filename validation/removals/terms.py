"""Removes parts of checks in PTX, and checks that are not branches.

`row < M && col < N` compiles to two setp and one and.pred or or.pred. Each operand of the latter is
a term; removing one term leaves the other as the whole check. A check that only selects a number,
such as the byte count and the address of a cp.async, compiles to selp or min instead of a branch.
Removing it always gives the value of a passed check: for selp the operand that is not 0, for min
either operand. If a selp has no operand 0, and no other selp with the same predicate has one, each
operand is tried.

Not mutated: selp of floats, which selects between results, and max, which the compiler generates
for trip counts of loops.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple


class Removal(NamedTuple):
    line: int  # index into the lines of the PTX
    kind: str  # "term" or "choice"
    instead: str  # the replacement


class Instruction(NamedTuple):
    line: int
    opcode: str
    operands: list[str]


WHOLE = r"\s*([a-z][\w.]*)\s+([^;]*);"
INTEGER = r"[bsu](32|64)"


def instructions(lines: list[str], opcodes: str) -> list[Instruction]:
    """The instructions without a predicate guard whose opcode matches."""
    found = []
    for n, line in enumerate(lines):
        m = re.match(WHOLE, line)
        if m and re.fullmatch(opcodes, m[1]):
            found.append(Instruction(n, m[1], re.split(r",\s*", m[2].strip())))
    return found


def removals(lines: list[str]) -> Iterator[Removal]:
    for line, _, (to, *terms) in instructions(lines, r"(and|or)\.pred"):
        for other in terms:
            yield Removal(line, "term", f"mov.pred {to}, {other};")
    choices = instructions(lines, rf"selp\.{INTEGER}")
    allows = {  # whether the check allows more where the predicate is true
        predicate: second == "0"
        for _, _, (_, first, second, predicate) in choices
        if "0" in (first, second)
    }
    for line, opcode, (to, first, second, predicate) in choices:
        known = predicate in allows
        for side in (first if allows[predicate] else second,) if known else (first, second):
            yield Removal(line, "choice", f"mov{opcode.removeprefix('selp')} {to}, {side};")
    # If several selp use one check, such as for a size and an address, also remove it for all.
    uses = Counter(choice.operands[3] for choice in choices)
    for line, _, (predicate, *_) in instructions(lines, r"setp\..*"):
        if uses[predicate] > 1 and predicate in allows:
            value = -1 if allows[predicate] else 0
            yield Removal(line, "choice", f"mov.pred {predicate}, {value};")
    for line, opcode, (to, *sides) in instructions(lines, rf"min\.{INTEGER}"):
        for side in sides:
            yield Removal(line, "choice", f"mov{opcode.removeprefix('min')} {to}, {side};")
