"""What can be removed from the checks of a kernel that are not a branch of their own.

`row < M && col < N` is two setp and one and.pred or or.pred: each side of it is a term, and without
one term the other side is all of the check. Where a check only chooses a number, such as how many
bytes a cp.async reads and from where, there is no branch at all but selp or min. Without the check
the number is the one that it allows: of selp the side that is not 0, of min either side, and so of
a selp without a 0 that no other one explains.

Not touched: selp of floats, which chooses between results, and max, which the compiler makes from
how often a loop runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple


class Removal(NamedTuple):
    line: int  # index into the lines of the PTX
    kind: str  # "term" or "choice"
    instead: str  # the instruction that stands there now


class Instruction(NamedTuple):
    line: int
    opcode: str
    operands: list[str]


WHOLE = r"\s*([a-z][\w.]*)\s+([^;]*);"
INTEGER = r"[bsu](32|64)"


def instructions(lines: list[str], opcodes: str) -> list[Instruction]:
    """Those without a guard whose opcode matches."""
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
    # One check behind several choices, such as a size and an address, goes as a whole too.
    uses = Counter(choice.operands[3] for choice in choices)
    for line, _, (predicate, *_) in instructions(lines, r"setp\..*"):
        if uses[predicate] > 1 and predicate in allows:
            value = -1 if allows[predicate] else 0
            yield Removal(line, "choice", f"mov.pred {predicate}, {value};")
    for line, opcode, (to, *sides) in instructions(lines, rf"min\.{INTEGER}"):
        for side in sides:
            yield Removal(line, "choice", f"mov{opcode.removeprefix('min')} {to}, {side};")
