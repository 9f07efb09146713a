"""Requests, wavefronts and ideal of shared loads and stores, derived from the machine code.

The emulator counts how often each PTX instruction runs. nvdisasm prints the machine code that ptxas
makes of the PTX, with the PTX line of each machine instruction. What links both is how often each
block of machine code runs:

    For some PTX instructions (anchors) ptxas makes exactly one machine instruction per execution,
    whatever it unrolls: barriers, multiply-adds (of matrices too) whose result is an operand of
    their next execution, and stores that no later one makes superfluous. So each anchor gives an
    equation: over its machine instructions, the sum of the executions of their blocks is the
    number of its executions.

    The machine accesses of a PTX load or store are such a sum as well. If it follows from the
    equations, it is the number of requests. Else the row keeps the numbers of the model
    (ptxas_vectorize.c). If the equations contradict each other, all rows do.

Wavefronts and ideal follow if all requests of the PTX instruction cost the same as accesses of that
width, or if each execution makes one access.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from .._compiler.cuda_tools import Resources, ToolError, compiled, disassembly

MAX_INSTRUCTIONS = 100_000
MAX_BLOCKS = 4000

WIDTHS = (4, 8, 16)  # as in _core's counts by instruction

# ---- the machine code


class Instruction(NamedTuple):
    block: int
    opcode: str  # with its modifiers: "LDS.128"
    guarded: bool
    ptx_line: int


# Warps can diverge or reconverge at these, so instructions after them begin another block.
_ENDS_BLOCK = (
    *("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "EXIT", "RET", "CALL", "BSYNC", "WARPSYNC"),
    *("BREAK", "BMOV", "KILL", "NANOSLEEP", "YIELD", "WARPSYNC", "BPT", "RTT"),
)
_LINE = re.compile(r'//## File "\.nv_debug_ptx_txt", line (\d+)')
_CODE = re.compile(r"/\*[0-9a-f]+\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)")


def instructions(listing: str, entry: str) -> list[Instruction]:
    """Parses the section of an entry in nvdisasm's listing."""
    text = listing.partition(f"\n.text.{entry}:\n")[2].partition("\n//-----")[0]
    found: list[Instruction] = []
    block = line = 0
    for row in text.splitlines():
        code = _CODE.search(row)
        if code:
            opcode = code[2]
            found.append(Instruction(block, opcode, code[1] is not None, line))
            block += opcode.split(".")[0] in _ENDS_BLOCK
        elif row.startswith("."):  # a label
            block += 1
        else:
            place = _LINE.search(row)
            line = int(place[1]) if place else line
    return found


def width_of(opcode: str) -> int:
    """Bytes per lane of LDS and STS."""
    parts = set(opcode.split(".")[1:])
    if parts & {"U8", "S8"}:
        return 1
    if parts & {"U16", "S16"}:
        return 2
    return 16 if "128" in parts else 8 if "64" in parts else 4


# ---- the PTX


class Statement(NamedTuple):
    opcode: str  # "ld.shared.f32"
    guarded: bool
    operands: str


class Code(NamedTuple):
    """The instructions of an entry by line; lines with several instructions are left out."""

    statements: dict[int, Statement]
    loops: list[tuple[int, int]]  # lines of a label and of a branch back to it
    begins: int  # the line of the first instruction, if no branch leads to it; else 0


_STATEMENT = re.compile(r"\s*(?:\{\s*)?(@!?%\w+\s+)?([a-z][\w.:]*)\s*([^;]*);\s*$")
_LABEL = re.compile(r"\s*([$%\w]+)\s*:(?!:)")
_NEXT = re.compile(r"\s*(\.visible\s+|\.weak\s+)?\.(entry|func)\b")
_REGISTER = re.compile(r"%\w+")


def _entry(ptx: str, name: str) -> re.Match[str] | None:
    return re.search(rf"\.entry\s+{re.escape(name)}\b", ptx)


def code_of(ptx: str, entry: str) -> Code:
    begin = _entry(ptx, entry)
    found: dict[int, Statement] = {}
    labels: dict[str, int] = {}
    if begin is None:
        return Code(found, [], 0)
    first = ptx.count("\n", 0, begin.start()) + 1
    for number, row in enumerate(ptx[begin.start() :].split("\n"), first):
        if number > first and _NEXT.match(row):
            break
        row = row.partition("//")[0]
        label = _LABEL.match(row)
        if label:
            labels[label[1]] = number
        match = _STATEMENT.match(row) if row.count(";") == 1 else None
        if match:
            found[number] = Statement(match[2], match[1] is not None, match[3])
    jumps = [(line, s.operands.strip()) for line, s in found.items() if s.opcode[:3] == "bra"]
    loops = [(labels[to], line) for line, to in jumps if labels.get(to, line + 1) <= line]
    begins = min(found, default=0)
    if any(line <= begins for line in labels.values()):
        begins = 0
    return Code(found, loops, begins)


def _cycles(edges: Mapping[str, set[str]]) -> dict[str, int]:
    """The strongly connected component of each node (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    component: dict[str, int] = {}
    stack: list[str] = []
    for root in edges:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        work = [(root, iter(edges[root]))]
        while work:
            node, left = work[-1]
            for other in left:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    work.append((other, iter(edges.get(other, ()))))
                    break
                if other not in component:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    while True:
                        member = stack.pop()
                        component[member] = index[node]
                        if member == node:
                            break
    return component


_CHAINED = ("fma.rn.f32", "fma.rn.f64", "fma.rn.ftz.f32")
_FLOAT = ("FFMA", "FMUL", "FADD", "DFMA", "DMUL", "DADD")
_MMA = ("HMMA", "DMMA", "IMMA", "QMMA")
_SHAPE = re.compile(r"\.m(\d+)n(\d+)k(\d+)\.")


def _result_and_sources(operands: str) -> tuple[list[str], list[str]]:
    result, _, sources = operands.partition("}" if operands.startswith("{") else ",")
    return _REGISTER.findall(result), _REGISTER.findall(sources)


def _recurrences(code: Mapping[int, Statement]) -> set[int]:
    """The lines of multiply-adds whose result is, perhaps through others, an operand of theirs.

    ptxas can neither move such an instruction out of its loop nor share it between steps.
    """
    edges: dict[str, set[str]] = defaultdict(set)
    chained = []
    for line, s in code.items():
        if not s.opcode.startswith(("fma.", "mov.", "add.", "mul.", "mma.sync.")):
            continue
        results, sources = _result_and_sources(s.operands)
        for source in sources:
            edges[source].update(results)
        if s.opcode.startswith((*_CHAINED, "mma.sync.")) and not s.guarded:
            chained.append((line, results, sources))
    component = _cycles(edges)
    return {
        line
        for line, results, sources in chained
        if any(component[a] == component[b] for a in results for b in sources if a in component)
    }


def _is_one_mma(opcode: str, s: Statement) -> bool:
    """Whether the machine instruction has the shape of the PTX instruction."""
    shape = _SHAPE.search(s.opcode)
    sizes = shape.groups() if shape else ()
    return opcode.split(".")[1:2] in (["".join(sizes)], ["x".join(sizes)])


_AFFINE = ("add", "sub", "mul", "mad", "shl", "cvt", "cvta", "mov")
_ORDERS = ("bar.", "barrier.", "membar.", "fence.")


def _never_dead(code: Code, line: int) -> bool:
    """Whether a store has no chance to be overwritten by its next execution, unread.

    Such a store ptxas may leave out in all steps of a loop but the last. Not if its address changes
    with each step, nor if a barrier lies between two steps.
    """
    around = [(last - first, first, last) for first, last in code.loops if first <= line <= last]
    if any(s.opcode.startswith("brx") for s in code.statements.values()):
        return False
    if not around:
        return True
    _, first, last = min(around)
    body = {at: s for at, s in code.statements.items() if first <= at <= last}
    if any(s.opcode.startswith(_ORDERS) for s in body.values()):
        return True
    edges: dict[str, set[str]] = defaultdict(set)
    for s in body.values():
        if s.opcode.split(".")[0] in _AFFINE and not s.guarded:
            results, sources = _result_and_sources(s.operands)
            for source in sources:
                edges[source].update(results)
    component = _cycles(edges)
    sizes = Counter(component.values())
    changing = [r for r, c in component.items() if sizes[c] > 1 or r in edges.get(r, ())]
    for register in changing:  # extended while it is read
        changing += [r for r in edges.get(register, ()) if r not in changing]
    address = re.search(r"\[\s*(%\w+)", code.statements[line].operands)
    return address is not None and address[1] in changing


# Machine opcodes of an anchor, by the beginning of its PTX opcode.
_EFFECTS = (
    ("st.shared.", ("STS",)),
    ("st.global.", ("STG",)),
    ("bar.sync", ("BAR",)),
    ("barrier.sync", ("BAR",)),
)
_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}


def _bytes(opcode: str) -> int:
    """Bytes per lane of a PTX load or store; 0: unknown."""
    parts = opcode.split(".")
    size = re.fullmatch(r"[busf](8|16|32|64)", parts[-1])
    lanes = 4 if "v4" in parts else 2 if "v2" in parts else 1
    return lanes * _SIZES[size[1]] if size else 0


def _is_whole(opcode: str, s: Statement) -> bool:
    """Whether the machine instruction does what the PTX instruction does, not more or less."""
    if s.opcode.startswith("st."):
        return width_of(opcode) == _bytes(s.opcode)
    return _is_one_mma(opcode, s) if s.opcode.startswith("mma.") else True


def _anchors(
    code: Code, machine: Mapping[int, list[Instruction]]
) -> Iterable[tuple[int, list[Instruction]]]:
    """Lines of PTX, with the machine instructions of each that run as often together."""
    chained = _recurrences(code.statements)
    for line, s in code.statements.items():
        names: tuple[str, ...] = ()
        names = next((names for start, names in _EFFECTS if s.opcode.startswith(start)), names)
        if line in chained:
            names = _MMA if s.opcode.startswith("mma.") else _FLOAT
        if not names or s.guarded:
            continue
        made = [i for i in machine.get(line, ()) if i.opcode.split(".")[0] in names]
        if not made or any(i.guarded or not _is_whole(i.opcode, s) for i in made):
            continue
        if not s.opcode.startswith("st.") or _never_dead(code, line):
            yield line, made


# ---- the equations

Row = dict[int, Fraction]  # coefficients by block


class Contradiction(Exception):
    """The equations have no solution: an assumption about the machine code is wrong."""


class Equations:
    """Linear equations of the executions of blocks, in reduced form by their leading block."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Row, Fraction]] = {}

    def _reduced(self, row: Row, value: Fraction) -> tuple[Row, Fraction]:
        row = dict(row)
        for block in sorted(row):
            factor = row.get(block, Fraction(0))
            if factor and block in self._rows:
                known, total = self._rows[block]
                for other, c in known.items():
                    row[other] = row.get(other, Fraction(0)) - factor * c
                value -= factor * total
        return {b: c for b, c in row.items() if c}, value

    def add(self, row: Row, value: int) -> None:
        """Raises Contradiction."""
        left, total = self._reduced(row, Fraction(value))
        if not left:
            if total:
                raise Contradiction(f"the sum of {sorted(row)} is off by {total}")
            return
        lead = min(left)
        scale = left[lead]
        left = {b: c / scale for b, c in left.items()}
        total /= scale
        for block, (known, old) in list(self._rows.items()):
            factor = known.get(lead)
            if factor:
                merged = {
                    b: known.get(b, Fraction(0)) - factor * left.get(b, Fraction(0))
                    for b in known.keys() | left.keys()
                }
                self._rows[block] = ({b: c for b, c in merged.items() if c}, old - factor * total)
        self._rows[lead] = (left, total)

    def value(self, row: Row) -> int | None:
        """The sum of these executions, if it follows from the equations."""
        left, total = self._reduced(row, Fraction(0))
        count = -total
        return int(count) if not left and count.denominator == 1 and count >= 0 else None


def _sum(made: Iterable[Instruction]) -> Row:
    row: Row = defaultdict(Fraction)
    for i in made:
        row[i.block] += 1
    return row


# ---- the result


class Machine(NamedTuple):
    """The numbers of a row, or of a PTX instruction, in the machine code."""

    requests: int
    wavefronts: int
    ideal: int


def _total(costs: Iterable[Machine]) -> Machine:
    every = [*costs]
    return Machine(
        sum(c.requests for c in every),
        sum(c.wavefronts for c in every),
        sum(c.ideal for c in every),
    )


def _equations(
    code: Code,
    machine: Mapping[int, list[Instruction]],
    executed: Mapping[int, int],
) -> Equations:
    equations = Equations()
    if executed.get(code.begins):
        equations.add({0: Fraction(1)}, executed[code.begins])
    for line, made in _anchors(code, machine):
        row, count = _sum(made), executed.get(line, 0)
        if count:
            equations.add(row, count)
        else:
            for block in row:
                equations.add({block: Fraction(1)}, 0)
    return equations


def _cost(made: list[Instruction], counted: Sequence[Any], equations: Equations) -> Machine | None:
    """The machine accesses of one PTX load or store. None: not certain."""
    requests, wider = counted[4], counted[5]
    by_width: dict[int, list[Instruction]] = defaultdict(list)
    for i in made:
        by_width[max(4, width_of(i.opcode))].append(i)
    if any(i.guarded for i in made):
        return None
    costs = []
    for width, some in by_width.items():
        runs = equations.value(_sum(some))
        wavefronts, ideal, low, high, low_ideal, high_ideal = wider[WIDTHS.index(width)]
        if runs is None or runs > requests or not high:
            return None
        if runs == requests:
            cost = Machine(runs, wavefronts, ideal)
        elif low == high and low_ideal == high_ideal:
            cost = Machine(runs, runs * low, runs * low_ideal)
        else:
            return None
        costs.append(cost)
    total = _total(costs)
    return total if total.requests <= requests else None


_OPS = {"ld.shared": "LDS", "ld.volatile.shared": "LDS", "st.shared": "STS"}
_OPS["st.volatile.shared"] = "STS"


def _machine_opcode(s: Statement | None) -> str | None:
    """LDS or STS for a plain load or store of shared memory."""
    start = s.opcode.replace("::cta.", ".") if s else ""
    return next((made for name, made in _OPS.items() if start.startswith(name + ".")), None)


def _is_access(s: Statement | None) -> bool:
    """Whether ptxas can make loads or stores of shared memory of it."""
    kinds = ("ld", "st", "atom", "red", "wmma", "mbarrier", "cp")
    return s is not None and s.opcode.split(".")[0] in kinds


def _costs(
    listing: str, ptx: str, entry: str, counted: Sequence[Sequence[Any]]
) -> list[Machine | None]:
    """For each PTX instruction of an entry with a row: its numbers, if they are certain."""
    code, made = code_of(ptx, entry), instructions(listing, entry)
    executed = {line: runs for _, line, runs, *_ in counted}
    wanted = [one for one in counted if one[3] >= 0]
    nothing: list[Machine | None] = [None] * len(wanted)
    small = 0 < len(made) <= MAX_INSTRUCTIONS and made[-1].block <= MAX_BLOCKS
    if not small or len(executed) != len(counted):  # a line with several instructions
        return nothing
    machine: dict[int, list[Instruction]] = defaultdict(list)
    for i in made:
        machine[i.ptx_line].append(i)
        if i.opcode.startswith(("LDS", "STS")) and not _is_access(code.statements.get(i.ptx_line)):
            return nothing
    try:
        equations = _equations(code, machine, executed)
    except Contradiction:
        return nothing
    found = []
    for one in wanted:
        opcode = _machine_opcode(code.statements.get(one[1]))
        accesses = [i for i in machine.get(one[1], ()) if i.opcode.split(".")[0] == opcode]
        found.append(_cost(accesses, one, equations) if opcode else None)
    return found


def rows_of(
    listings: Mapping[str, str], ptx: str, counted: Sequence[Sequence[Any]]
) -> dict[int, Machine]:
    """The rows of a trace whose numbers follow from the machine code, by index.

    listings: nvdisasm's, by entry. counted: _core's counts by instruction: (function, PTX line,
    executions, row, requests, costs).
    """
    found: dict[int, list[Machine | None]] = defaultdict(list)
    for name in {one[0] for one in counted}:
        some = [one for one in counted if one[0] == name]
        costs = _costs(listings.get(name, ""), ptx, name, some)
        for one, cost in zip((one for one in some if one[3] >= 0), costs, strict=True):
            found[one[3]].append(cost)
    return {
        row: _total([cost for cost in costs if cost])
        for row, costs in found.items()
        if None not in costs
    }


# ---- for a trace


class MachineCode(NamedTuple):
    """What ptxas and nvdisasm said of a traced kernel."""

    resources: Resources | None  # of the entry that ran most; None: ptxas is missing or failed
    rows: dict[int, Machine]  # those that follow from the machine code, by index
    note: str | None  # why there is no machine code to read


def read(
    ptx: str | None, arch: str | None, counted: Sequence[Sequence[Any]], complete: bool
) -> MachineCode:
    """Compiles the entries that ran and reads their machine code."""
    if ptx is None:
        return MachineCode(None, {}, "the PTX of this variant is compiled at its first use")
    runs: dict[str, int] = defaultdict(int)
    for name, _, warps, *_ in counted:
        runs[name] += warps
    entries = [name for name in sorted(runs, key=lambda name: -runs[name]) if _entry(ptx, name)]
    resources = None
    listings = {}
    try:
        for name in entries:
            made = compiled(ptx, name, arch)
            resources = resources or made.resources
            listings[name] = disassembly(made.cubin) if complete else ""
    except ToolError as error:
        return MachineCode(resources, {}, str(error))
    return MachineCode(resources, rows_of(listings, ptx, counted), None)
