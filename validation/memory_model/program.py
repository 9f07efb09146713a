"""Litmus tests of PTX, in the format of Dat3M: reading, stepping through, and writing as a kernel.

A test has one column per thread, whose head says its block and GPU (`P0@cta 0,gpu 0`). Its
condition is over final values of registers (`P0:r1`) and locations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

State = dict[str, int]


class NotSupported(Exception):
    """The test has something that this runner does not have; the message says what."""


@dataclass(frozen=True)
class Op:
    """An instruction. `args`: registers, constants, and at most one location."""

    # ld, st, atom, red, fence, bar, alu, branch, label; cluster: barrier.cluster, arrive and wait
    kind: str
    # of an atom, an alu operation, a branch; of a barrier: sync or arrive; "surface"
    what: str = ""
    order: str = ""
    scope: str = ""
    location: str = ""
    args: tuple[str, ...] = ()

    @property
    def strong(self) -> bool:
        return self.order != "weak"


@dataclass
class Thread:
    block: int
    ops: list[Op] = field(default_factory=list)


@dataclass
class Litmus:
    name: str
    initial: State
    threads: list[Thread]
    quantifier: str  # exists, ~exists, forall
    condition: str
    cluster: int = 1  # blocks per cluster: block b is in cluster b // cluster

    @cached_property
    def locations(self) -> list[str]:
        used = {op.location for t in self.threads for op in t.ops if op.location}
        return sorted(used | {name for name in self.initial if ":" not in name})

    @property
    def blocks(self) -> list[int]:
        """All blocks of clusters that have threads."""
        clusters = sorted({t.block // self.cluster for t in self.threads})
        return [c * self.cluster + k for c in clusters for k in range(self.cluster)]

    def holds(self, state: State, condition: str | None = None) -> bool:
        return evaluate(condition or self.condition, state)

    @property
    def loops(self) -> bool:
        for t in self.threads:
            labels = {op.what: k for k, op in enumerate(t.ops) if op.kind == "label"}
            for k, op in enumerate(t.ops):
                if op.kind == "branch" and labels[op.args[-1]] <= k:
                    return True
        return False

    def weaker(self, location: str) -> Litmus:
        """The same with weak loads and stores of one location."""

        def weak(op: Op) -> Op:
            plain = op.kind in ("ld", "st") and op.location == location
            return replace(op, order="weak", scope="") if plain else op

        threads = [Thread(t.block, [weak(op) for op in t.ops]) for t in self.threads]
        return replace(self, name=f"{self.name} with weak {location}", threads=threads)


# ---- conditions


def clauses(condition: str) -> list[str]:
    """The conjuncts of a condition that is one; else the condition itself."""
    inner = condition.strip()
    while inner.startswith("(") and inner.endswith(")"):
        inner = inner[1:-1].strip()
    return [inner] if "\\/" in inner or "(" in inner else [c.strip() for c in inner.split("/\\")]


def evaluate(condition: str, state: State) -> bool:
    """Comparisons, /\\, \\/ and parentheses; a name without a value is 0."""
    tokens = re.findall(r"/\\|\\/|[()]|[!=<>]=?|[\w:]+", re.sub(r"\s*:\s*", ":", condition))
    tokens.append("")

    def value(token: str) -> int:
        name = re.sub(r"^(\d+):", r"P\1:", token)
        return int(token) if token.isdigit() else state.get(name, 0)

    def atom() -> bool:
        if tokens[0] == "(":
            tokens.pop(0)
            inner = disjunction()
            tokens.pop(0)
            return inner
        left, sign, right = (tokens.pop(0) for _ in range(3))
        same = value(left) == value(right)
        return same if sign in ("=", "==") else not same

    def conjunction() -> bool:
        result = atom()
        while tokens[0] == "/\\":
            tokens.pop(0)
            result = atom() and result
        return result

    def disjunction() -> bool:
        result = conjunction()
        while tokens[0] == "\\/":
            tokens.pop(0)
            result = conjunction() or result
        return result

    return disjunction()


# ---- reading

ALU: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "exch": lambda a, b: b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
BRANCHES: dict[str, Callable[[int, int], bool]] = {
    "beq": lambda a, b: a == b,
    "bne": lambda a, b: a != b,
    "bge": lambda a, b: a >= b,
    "ble": lambda a, b: a <= b,
    "bgt": lambda a, b: a > b,
    "blt": lambda a, b: a < b,
}


def is_register(text: str) -> bool:
    return re.fullmatch(r"r\d+", text) is not None


def read_op(text: str) -> Op:
    if label := re.fullmatch(r"(LC\d+):", text):
        return Op("label", label[1])
    head, _, rest = text.partition(" ")
    parts, args = head.split("."), tuple(a for a in re.split(r"[,\s]+", rest) if a)
    opcode = parts[0]
    if opcode in ("tld", "suld", "cold", "sust", "suatom", "sured") or "proxy" in parts:
        raise NotSupported("another proxy than the generic one")
    if opcode == "goto":
        return Op("branch", "beq", args=("0", "0", args[0]))
    if opcode in BRANCHES:
        return Op("branch", opcode, args=args)
    if opcode == "bar":
        return Op("bar", parts[2], args=args)
    if opcode == "fence":
        return Op("fence", order=parts[1], scope=parts[2])
    scope = parts[2] if len(parts) > 2 else ""
    if opcode in ("atom", "red"):
        operation, result = parts[3], args[0] if opcode == "atom" else ""
        location, *values = args[opcode == "atom" :]
        return Op(opcode, operation, parts[1], scope, location, (result, *values))
    if opcode == "st":
        return Op("st", "", parts[1], scope, args[0], args[1:])
    if opcode == "ld" and len(parts) > 1:
        return Op("ld", "", parts[1], scope, args[1], args[:1])
    if opcode == "ld":
        return Op("alu", "add", args=(args[0], args[1], "0"))
    if opcode in ALU:
        return Op("alu", opcode, args=args)
    raise NotSupported(f"the instruction {opcode}")


def read(text: str, name: str) -> Litmus:
    found = re.search(r"\{(.*?)\}\s*;?(.*?)(~?\s*exists|forall)(.*)", text, re.DOTALL)
    if not found:
        raise NotSupported("no condition")
    declared, program, quantifier, condition = found.groups()
    if "@" in declared or "aliases" in declared:
        raise NotSupported("another proxy than the generic one")
    initial = {}
    for one in filter(None, (d.strip() for d in declared.split(";"))):
        left, _, right = one.replace(" ", "").partition("=")
        if not right.isdigit():
            raise NotSupported("a location as a value")
        initial[left] = int(right)
    rows = [row.split("|") for row in program.strip().rstrip(";").split(";")]
    heads = [re.fullmatch(r"P(\d+)@cta\s*(\d+)\s*,\s*gpu\s*(\d+)", h.strip()) for h in rows[0]]
    if any(h is None for h in heads):
        raise NotSupported("a head without a block")
    if len({h[3] for h in heads if h}) > 1:
        raise NotSupported("several GPUs")
    threads = [Thread(int(h[2])) for h in heads if h]
    for row in rows[1:]:
        for thread, cell in zip(threads, row, strict=False):
            if cell.strip():
                thread.ops.append(read_op(" ".join(cell.split())))
    return Litmus(name, initial, threads, "".join(quantifier.split()), " ".join(condition.split()))


BARRIERS = ("bar", "cluster")


# ---- steps: a sequentially consistent execution


@dataclass(frozen=True)
class Step:
    thread: int
    index: int
    op: Op
    generation: int = -1  # of a barrier: which completion it belongs to


@dataclass
class Machine:
    """Runs one operation of one thread at a time."""

    test: Litmus
    state: State = field(default_factory=dict)
    at: list[int] = field(default_factory=list)
    waits: dict[int, tuple[int, str]] = field(default_factory=dict)  # thread: block, barrier
    arrived: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    generation: int = 0
    trace: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.at:
            self.state = dict(self.test.initial)
            self.at = [0] * len(self.test.threads)

    def copy(self) -> Machine:
        arrived = {k: list(v) for k, v in self.arrived.items()}
        return Machine(
            *(self.test, dict(self.state), list(self.at), dict(self.waits), arrived),
            *(self.generation, list(self.trace)),
        )

    def key(self) -> tuple[object, ...]:
        return (tuple(sorted(self.state.items())), tuple(self.at), tuple(sorted(self.waits)))

    def runnable(self) -> list[int]:
        return [
            t
            for t, thread in enumerate(self.test.threads)
            if t not in self.waits and self.at[t] < len(thread.ops)
        ]

    def done(self) -> bool:
        return all(self.at[t] == len(thread.ops) for t, thread in enumerate(self.test.threads))

    def value(self, t: int, text: str) -> int:
        return self.state.get(f"P{t}:{text}", 0) if is_register(text) else int(text)

    def step(self, t: int) -> None:
        """Runs the thread's next operation."""
        op = self.test.threads[t].ops[self.at[t]]
        generation = self.generation if op.kind in BARRIERS else -1
        self.trace.append(Step(t, self.at[t], op, generation))
        self.at[t] += 1
        getattr(self, f"run_{op.kind}")(t, op)

    def run_label(self, t: int, op: Op) -> None:
        pass

    def run_fence(self, t: int, op: Op) -> None:
        pass

    def run_ld(self, t: int, op: Op) -> None:
        self.state[f"P{t}:{op.args[0]}"] = self.state.get(op.location, 0)

    def run_st(self, t: int, op: Op) -> None:
        self.state[op.location] = self.value(t, op.args[0])

    def run_atom(self, t: int, op: Op) -> None:
        old = self.state.get(op.location, 0)
        values = [self.value(t, v) for v in op.args[1:]]
        if op.what == "cas":
            new = values[1] if old == values[0] else old
        else:
            new = ALU[op.what](old, values[0])
        self.state[op.location] = new
        if op.args[0]:
            self.state[f"P{t}:{op.args[0]}"] = old

    run_red = run_atom

    def run_alu(self, t: int, op: Op) -> None:
        a, b = (self.value(t, v) for v in op.args[1:])
        self.state[f"P{t}:{op.args[0]}"] = ALU[op.what](a, b)

    def run_branch(self, t: int, op: Op) -> None:
        if BRANCHES[op.what](self.value(t, op.args[0]), self.value(t, op.args[1])):
            ops = self.test.threads[t].ops
            self.at[t] = next(k for k, o in enumerate(ops) if o == Op("label", op.args[-1]))

    def run_bar(self, t: int, op: Op) -> None:
        block = self.test.threads[t].block
        n = quorum(self.test, block, op)
        self.arrive(t, (block, barrier_id(self, t, op)), n, op.what == "sync")

    def run_cluster(self, t: int, op: Op) -> None:
        size = self.test.cluster
        cluster = self.test.threads[t].block // size
        n = sum(other.block // size == cluster for other in self.test.threads)
        self.arrive(t, (cluster, "cluster"), n, True)

    def arrive(self, t: int, barrier: tuple[int, str], n: int, waits: bool) -> None:
        """The trace's last step arrives at a barrier that n threads complete."""
        arrived = self.arrived.setdefault(barrier, [])
        arrived.append(len(self.trace) - 1)
        if waits:
            self.waits[t] = barrier
        if len(arrived) < n:
            return
        for k in arrived:
            self.trace[k] = replace(self.trace[k], generation=self.generation)
        self.generation += 1
        del self.arrived[barrier]
        self.waits = {u: w for u, w in self.waits.items() if w != barrier}


def barrier_id(machine: Machine, t: int, op: Op) -> str:
    """Without a number of its own a barrier is named by its first constant."""
    return str(machine.value(t, op.args[1 if len(op.args) > 1 else 0]))


def quorum(test: Litmus, block: int, op: Op) -> int:
    """Threads that complete the barrier: those of the block that name it, if no count is given."""
    if len(op.args) > 2:
        return int(op.args[2])
    mine = [t for t in test.threads if t.block == block]
    return sum(any(o.kind == "bar" and o.args == op.args for o in t.ops) for t in mine)


def ends(test: Litmus, limit: int = 200_000) -> Iterator[Machine]:
    """A sequentially consistent execution to every final state."""
    todo, seen = [Machine(test)], set()
    while todo:
        machine = todo.pop()
        if machine.key() in seen:
            continue
        seen.add(machine.key())
        if len(seen) > limit:
            raise NotSupported("too many states")
        if machine.done() and not machine.waits:
            yield machine
        for t in machine.runnable():
            after = machine.copy()
            after.step(t)
            todo.append(after)


def outcomes(test: Litmus, limit: int = 200_000) -> Iterator[State]:
    """The final states of all sequentially consistent executions."""
    return (machine.state for machine in ends(test, limit))


# ---- a kernel that runs one interleaving

# A warp runs 4096 instructions before the next warp does; this loop takes more than one turn.
DELAY = """
    mov.u32 %n, {count};
{label}:
    sub.u32 %n, %n, 1;
    setp.ne.u32 %p, %n, 0;
    @%p bra {label};"""
TURN = 4096
SLOT = 4 * TURN
OUT = "registers_of_threads"  # a parameter's name that is no location's


def operand(text: str) -> str:
    return f"%{text}" if is_register(text) else text


def sem(op: Op) -> str:
    return ".".join(filter(None, (op.order, op.scope)))


def write_op(op: Op, t: int, test: Litmus) -> str:
    """The instruction in PTX."""
    where = f"[%a_{op.location}]"
    if op.kind == "fence":
        return f"fence.{op.order}.{op.scope};"
    if op.what == "surface" and op.kind == "ld":
        return f"suld.b.1d.b32.trap {{%{op.args[0]}}}, [s_{op.location}, {{%zero}}];"
    if op.what == "surface":
        return f"sust.b.1d.b32.trap [s_{op.location}, {{%zero}}], {{%n}};"
    if op.kind == "ld":
        return f"ld.{sem(op)}.global.u32 %{op.args[0]}, {where};"
    if op.kind == "st":
        return f"st.{sem(op)}.global.u32 {where}, {operand(op.args[0])};"
    if op.kind in ("atom", "red"):
        values, what = [operand(v) for v in op.args[1:]], op.what
        if what == "sub":
            values, what = [str(-int(values[0]) & 0xFFFFFFFF)], "add"
        bits = "u32" if what == "add" else "b32"
        result = f"%{op.args[0]}" if op.args[0] else "%n"
        return f"atom.{sem(op)}.global.{what}.{bits} {result}, {where}, {', '.join(values)};"
    if op.kind == "alu":
        opcode = {"mul": "mul.lo.u32", "add": "add.u32", "sub": "sub.u32"}[op.what]
        return f"{opcode} %{op.args[0]}, {', '.join(operand(v) for v in op.args[1:])};"
    if op.kind == "cluster":
        return f"barrier.cluster.arrive.{op.order};\n    barrier.cluster.wait.acquire;"
    number = operand(op.args[1 if len(op.args) > 1 else 0])
    count = 32 * quorum(test, test.threads[t].block, op)
    return f"bar.{op.what} {number}, {count};"


def write_column(test: Litmus, t: int, slots: list[tuple[Step, int, int]]) -> list[str]:
    """One thread's instructions, in the order in which it runs them: each delayed to its slot, and
    without branches, which the trace has decided. All lanes of a warp run its barriers."""
    lines, now = [], 0
    for name, value in test.initial.items():
        if name.startswith(f"P{t}:"):
            lines.append(f"    mov.u32 %{name.partition(':')[2]}, {value};")
    for k, (step, slot, completed) in enumerate(slots):
        if step.thread != t or step.op.kind in ("branch", "label"):
            continue
        if slot > now:
            lines.append(DELAY.format(count=(slot - now) * SLOT // 3, label=f"D{t}_{k}"))
        now = max(slot, completed)
        if step.op.what == "surface" and step.op.kind == "st":
            lines.append(f"    mov.u32 %n, {operand(step.op.args[0])};")
        guard = "" if step.op.kind in (*BARRIERS, "alu") else "@%one "
        lines.append(f"    {guard}{write_op(step.op, t, test)}")
    return lines


def slots_of(
    test: Litmus, trace: list[Step], group_of: dict[int, int]
) -> list[tuple[Step, int, int]]:
    """The steps, with the time of each among its group of blocks, and that at which a barrier that
    it waits at completes (else 0)."""
    times: dict[int, int] = {}
    slots = []
    for step in trace:
        group = group_of[test.threads[step.thread].block]
        times[group] = times.get(group, 0) + 1
        slots.append((step, times[group]))
    completed = {step.generation: slot for step, slot in slots if step.op.kind in BARRIERS}
    waits = [step.op.what == "sync" or step.op.kind == "cluster" for step in trace]
    return [
        (step, slot, completed[step.generation] if wait else 0)
        for (step, slot), wait in zip(slots, waits, strict=True)
    ]


def registers(test: Litmus) -> list[list[str]]:
    names: list[list[str]] = []
    for t, thread in enumerate(test.threads):
        used = {a for op in thread.ops for a in op.args if is_register(a)}
        used |= {n.partition(":")[2] for n in test.initial if n.startswith(f"P{t}:")}
        names.append(sorted(used))
    return names


def surfaces(test: Litmus) -> list[str]:
    """The locations that some operation accesses as a surface."""
    return sorted({o.location for t in test.threads for o in t.ops if o.what == "surface"})


def kernel(
    test: Litmus, blocks: list[int], trace: list[Step], one_by_one: bool, together: bool = False
) -> str:
    """PTX whose block k runs the threads of the test's block blocks[k], one per warp, interleaved
    as in the trace. The last parameter is an array of the registers' final values. one_by_one: a
    fence that no thread runs makes the emulator run clusters one after the other. together: for a
    cooperative launch, whose blocks run in turns."""
    parameters = [f".param .u64 p_{name}" for name in [*test.locations, OUT]]
    cluster = f" .explicitcluster .reqnctapercluster {test.cluster}" if test.cluster > 1 else ""
    lines = [
        ".version 8.3\n.target sm_90\n.address_size 64",
        *(f".global .surfref s_{name};" for name in surfaces(test)),
        f".visible .entry k({', '.join(parameters)}){cluster}\n{{",
        "    .reg .pred %p, %one;\n    .reg .u32 %n, %warp, %block, %lane, %zero;",
        f"    .reg .u64 %a_{OUT};\n    mov.u32 %zero, 0;",
    ]
    everything = sorted({r for names in registers(test) for r in names})
    lines += [f"    .reg .u32 %{r};\n    mov.u32 %{r}, 0;" for r in everything]
    for name in [*test.locations, OUT]:
        if name != OUT:
            lines.append(f"    .reg .u64 %a_{name};")
        lines.append(f"    ld.param.u64 %a_{name}, [p_{name}];")
    lines += [
        "    mov.u32 %warp, %tid.x;\n    and.b32 %lane, %warp, 31;\n    shr.u32 %warp, %warp, 5;",
        "    mov.u32 %block, %ctaid.x;\n    setp.eq.u32 %one, %lane, 0;",
    ]
    if not any(op.kind in BARRIERS for thread in test.threads for op in thread.ops):
        lines.append("    @!%one ret;")
    groups = {b: 0 if together else b // test.cluster for b in blocks}
    slots, n_warps = slots_of(test, trace, groups), dict.fromkeys(blocks, 0)
    out = 0
    for t, thread in enumerate(test.threads):
        warp = n_warps[thread.block]
        n_warps[thread.block] += 1
        lines += [
            f"    setp.ne.u32 %p, %block, {blocks.index(thread.block)};\n    @%p bra END_{t};",
            f"    setp.ne.u32 %p, %warp, {warp};\n    @%p bra END_{t};",
        ]
        lines += write_column(test, t, slots)
        for name in registers(test)[t]:
            lines.append(f"    @%one st.global.u32 [%a_{OUT}+{4 * out}], %{name};")
            out += 1
        lines.append(f"    ret;\nEND_{t}:")
    lines.append("    ret;")
    if one_by_one:
        lines.append("    fence.acq_rel.gpu;")
    return "\n".join([*lines, "    ret;\n}\n"])
