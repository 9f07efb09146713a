"""The PTX memory model for small programs: which executions it allows, and which accesses race.

Written from the PTX ISA, "Memory Consistency Model" (Scope, Morally Strong Operations, Conflict
and Data-races, Release and Acquire Patterns, Ordering of memory operations, Axioms), for one GPU
and the generic proxy. It shares no code with the detector. litmus.py compares it with the
published verdicts first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product

from memory_model.program import ALU, BRANCHES, Litmus, NotSupported, Op, State, Step, is_register

Pairs = set[tuple[int, int]]
SCOPES = ("cta", "cluster", "gpu", "sys")


@dataclass(frozen=True)
class Event:
    thread: int  # -1: an initial write
    block: int
    kind: str  # R, W, F, B; A, D: arrival and wait at barrier.cluster
    op: Op
    index: int = -1  # of the operation in its thread
    generation: int = -1  # of a barrier
    cluster: int = -1

    @property
    def strong(self) -> bool:
        return self.kind == "F" or (self.kind in "RW" and self.op.strong)

    @property
    def releases(self) -> bool:
        return self.kind in "WF" and self.op.order in ("release", "acq_rel", "sc")

    @property
    def acquires(self) -> bool:
        return self.kind in "RF" and self.op.order in ("acquire", "acq_rel", "sc")

    @property
    def is_sc(self) -> bool:
        return self.kind == "F" and self.op.order == "sc"


def closure(pairs: Iterable[tuple[int, int]], n: int) -> Pairs:
    after = [0] * n
    for a, b in pairs:
        after[a] |= 1 << b
    for k in range(n):
        for a in range(n):
            if after[a] >> k & 1:
                after[a] |= after[k]
    return {(a, b) for a in range(n) for b in range(n) if after[a] >> b & 1}


def join(left: Pairs, right: Pairs) -> Pairs:
    """Relational composition."""
    by_first: dict[int, list[int]] = {}
    for a, b in right:
        by_first.setdefault(a, []).append(b)
    return {(a, c) for a, b in left for c in by_first.get(b, ())}


class Execution:
    """Events in program order by thread, and where each read reads from (rf: read -> write)."""

    def __init__(self, events: list[Event], rf: dict[int, int]) -> None:
        self.events, self.rf, self.n = events, rf, len(events)
        self.po = {
            (a, b)
            for a, b in permutations(range(self.n), 2)
            if events[a].thread == events[b].thread >= 0 and self.position(a) < self.position(b)
        }
        self.rmw = {
            (a, b)
            for a, b in self.po
            if events[a].index == events[b].index and events[a].kind == "R"
        }
        self.strong = {(a, b) for a, b in permutations(range(self.n), 2) if self.is_strong(a, b)}
        self.sync = self.synchronises()
        self.barriers = {
            (a, b)
            for a, b in permutations(range(self.n), 2)
            if events[a].kind == events[b].kind == "B"
            and events[a].block == events[b].block
            and events[a].generation == events[b].generation
            and events[b].op.what == "sync"
        }

    def position(self, a: int) -> tuple[int, int]:
        return (self.events[a].index, a)

    def location(self, a: int) -> str:
        return self.events[a].op.location

    def includes(self, a: int, b: int) -> bool:
        """The scope of a includes the thread of b."""
        x, y = self.events[a], self.events[b]
        needed = "cta" if x.block == y.block else "cluster" if x.cluster == y.cluster else "gpu"
        return SCOPES.index(x.op.scope or "cta") >= SCOPES.index(needed)

    def is_strong(self, a: int, b: int) -> bool:
        """Morally strong."""
        x, y = self.events[a], self.events[b]
        if x.thread < 0 or y.thread < 0:
            return False
        if x.kind in "RW" and y.kind in "RW" and x.op.location != y.op.location:
            return False
        same = x.thread == y.thread and {x.kind, y.kind} <= set("RWF")
        return same or (x.strong and y.strong and self.includes(a, b) and self.includes(b, a))

    def synchronises(self) -> Pairs:
        events, po = self.events, self.po
        reads_from = {(w, r) for r, w in self.rf.items() if (w, r) in self.strong}
        observed = closure(reads_from | self.rmw, self.n)
        writes = {k for k in range(self.n) if events[k].kind == "W" and events[k].strong}
        reads = {k for k in range(self.n) if events[k].kind == "R" and events[k].strong}
        alone = {(k, k) for k in range(self.n)}
        release = {
            (a, b)
            for a, b in po | alone
            if events[a].releases
            and b in writes
            and (events[a].kind == "F" or self.location(a) == self.location(b))
        }
        acquire = {
            (a, b)
            for a, b in po | alone
            if events[b].acquires
            and a in reads
            and (events[b].kind == "F" or self.location(a) == self.location(b))
        }
        return join(join(release, observed), acquire) & self.strong | self.cluster_barriers()

    def cluster_barriers(self) -> Pairs:
        """From arrivals at barrier.cluster, or from a fence before a relaxed one, to the waits."""
        events = self.events
        arrivals = [k for k in range(self.n) if events[k].kind == "A"]
        waits = [k for k in range(self.n) if events[k].kind == "D"]
        phase = {(a, d) for a, d in product(arrivals, waits) if self.same_phase(a, d)}
        relaxed = {(a, d) for a, d in phase if events[a].op.order == "relaxed"}
        fences = {
            (f, d)
            for f, d in join({(f, a) for f, a in self.po if events[f].kind == "F"}, relaxed)
            if events[f].releases and self.includes(f, d)
        }
        return phase - relaxed | fences

    def same_phase(self, a: int, b: int) -> bool:
        x, y = self.events[a], self.events[b]
        return (x.cluster, x.generation) == (y.cluster, y.generation)

    # ---- with an order of fence.sc

    def sc_orders(self) -> Iterator[Pairs]:
        """Every order of the fence.sc that are morally strong with each other."""
        fences = [k for k in range(self.n) if self.events[k].is_sc]
        if len(fences) > 5:
            raise NotSupported("too many fence.sc")
        seen = set()
        for order in permutations(fences):
            pairs = frozenset(
                (a, b)
                for k, a in enumerate(order)
                for b in order[k + 1 :]
                if (a, b) in self.strong and self.events[a].thread != self.events[b].thread
            )
            if pairs not in seen:
                seen.add(pairs)
                yield set(pairs)

    def causality_base(self, sc: Pairs) -> Pairs:
        return closure(self.po | self.sync | self.barriers | sc, self.n)

    def causality(self, base: Pairs) -> Pairs:
        """Of operations on one location."""
        same = {
            (a, b) for a, b in base if self.location(a) and self.location(a) == self.location(b)
        }
        reads_from = {(w, r) for r, w in self.rf.items() if (w, r) in self.strong}
        return same | join(reads_from | self.rmw, same)

    def coherences(self, cause: Pairs) -> Iterator[Pairs]:
        """Every coherence order: it orders what causality orders, and morally strong writes."""
        writes = [k for k in range(self.n) if self.events[k].kind == "W"]
        fixed, free = set(), []
        for k, a in enumerate(writes):
            for b in writes[k + 1 :]:
                if self.location(a) != self.location(b):
                    continue
                if self.events[a].thread < 0:
                    fixed.add((a, b))
                elif (a, b) in cause or (b, a) in cause:
                    fixed |= {(a, b), (b, a)} & cause
                elif (a, b) in self.strong:
                    free.append((a, b))
        if len(free) > 10:
            raise NotSupported("too many writes")
        for turned in product((False, True), repeat=len(free)):
            chosen = {(b, a) if t else (a, b) for (a, b), t in zip(free, turned, strict=True)}
            co = closure(fixed | chosen, self.n)
            if not any((a, a) in co for a in writes):
                yield co

    def is_consistent(self, sc: Pairs, base: Pairs, cause: Pairs, co: Pairs) -> bool:
        """The axioms Coherence (by construction), Fence-SC, Atomicity and Causality."""
        if any((b, a) in base for a, b in sc):
            return False
        from_read = {
            (r, w) for r, origin in self.rf.items() for (o, w) in co if o == origin and r != w
        }
        reads_from = {(w, r) for r, w in self.rf.items()}
        strong_between = join(from_read & self.strong, co & self.strong)
        if strong_between & self.rmw:
            return False
        back = {(b, a) for a, b in reads_from | from_read}
        return not (back & cause)

    def consistent(self) -> Iterator[tuple[Pairs, Pairs]]:
        """(causality base, coherence order) of each choice that the axioms allow."""
        for sc in self.sc_orders():
            base = self.causality_base(sc)
            cause = self.causality(base)
            for co in self.coherences(cause):
                if self.is_consistent(sc, base, cause, co):
                    yield base, co

    def races(self) -> set[str]:
        """Locations with a data race: two conflicting accesses, not morally strong, that some order
        of the fences leaves without causality order."""
        bases = [self.causality_base(sc) for sc in self.sc_orders()]
        if len(bases) > 1:
            bases = [base for base, _ in self.consistent()]
        return {name for base in bases for name in self.unordered(base)}

    def unordered(self, base: Pairs) -> Iterator[str]:
        for a, b in permutations(range(self.n), 2):
            x, y = self.events[a], self.events[b]
            conflict = x.kind == "W" and y.kind in "RW" and x.op.location == y.op.location
            ordered = (a, b) in self.strong or {(a, b), (b, a)} & base
            if conflict and min(x.thread, y.thread) >= 0 and not ordered:
                yield x.op.location


# ---- of a sequentially consistent trace


def events_of(test: Litmus, op: Op, thread: int, index: int, generation: int) -> list[Event]:
    kinds = {
        "ld": "R",
        "st": "W",
        "atom": "RW",
        "red": "RW",
        "fence": "F",
        "bar": "B",
        "cluster": "AD",
    }
    block = test.threads[thread].block
    cluster = block // test.cluster
    return [Event(thread, block, k, op, index, generation, cluster) for k in kinds.get(op.kind, "")]


def initial_events(test: Litmus) -> list[Event]:
    return [Event(-1, -1, "W", Op("st", "", "weak", "", name)) for name in test.locations]


def of_trace(test: Litmus, trace: list[Step]) -> Execution:
    """Reads read the last write before them."""
    events = initial_events(test)
    last = {e.op.location: k for k, e in enumerate(events)}
    rf = {}
    for index, step in enumerate(trace):
        for e in events_of(test, step.op, step.thread, index, step.generation):
            if e.kind == "R":
                rf[len(events)] = last[e.op.location]
            if e.kind == "W":
                last[e.op.location] = len(events)
            events.append(e)
    return Execution(events, rf)


# ---- all executions of a test


def paths(ops: list[Op]) -> Iterator[list[tuple[int, Op, bool]]]:
    """Straight lines through a thread: (index, operation, whether a branch is taken)."""

    def walk(k: int, line: list[tuple[int, Op, bool]]) -> Iterator[list[tuple[int, Op, bool]]]:
        if k == len(ops):
            yield line
            return
        op = ops[k]
        if op.kind == "branch":
            target = next(j for j, o in enumerate(ops) if o == Op("label", op.args[-1]))
            yield from walk(target, [*line, (k, op, True)])
        yield from walk(k + 1, [*line, (k, op, False)])

    return walk(0, [])


class Values:
    """The values of one choice of paths and reads-from."""

    def __init__(self, test: Litmus, lines: list[list[tuple[int, Op, bool]]]) -> None:
        self.test, self.lines = test, lines

    def final(self, rf: dict[tuple[int, int], tuple[int, int] | None]) -> State | None:
        """rf: by (thread, index) of the reader; None: the initial value. None: the paths contradict
        the values, or values depend on themselves (No Thin Air)."""
        written: dict[tuple[int, int], int] = {}
        before = -1
        while len(written) > before:
            before = len(written)
            regs: State = {}
            known = [self.run_thread(t, rf, regs, written) for t in range(len(self.lines))]
        return {**regs, **{f"{t}.{k}": v for (t, k), v in written.items()}} if all(known) else None

    def run_thread(
        self,
        t: int,
        rf: dict[tuple[int, int], tuple[int, int] | None],
        regs: State,
        written: dict[tuple[int, int], int],
    ) -> bool:
        """Computes what is known so far, up to a branch whose values are not known. False: some
        value is not known, or a branch goes the other way."""
        mine: dict[str, int | None] = {
            name.partition(":")[2]: v
            for name, v in self.test.initial.items()
            if name.startswith(f"P{t}:")
        }

        def value(text: str) -> int | None:
            return mine.get(text, 0) if is_register(text) else int(text)

        for k, op, taken in self.lines[t]:
            source = rf.get((t, k))
            start = self.test.initial.get(op.location, 0)
            read = written.get(source) if source else start
            values = [value(v) for v in op.args[op.kind not in ("st", "branch") :][:2]]
            unknown = None in values or (op.kind in ("ld", "atom", "red") and read is None)
            if op.kind == "branch":
                if unknown or BRANCHES[op.what](*values) != taken:
                    return False
            elif op.kind == "ld":
                mine[op.args[0]] = read
            elif op.kind == "alu":
                mine[op.args[0]] = None if unknown else ALU[op.what](*values)
            elif op.kind in ("st", "atom", "red"):
                if not unknown:
                    written[t, k] = stored(op, read or 0, values)
                if op.kind == "atom":
                    mine[op.args[0]] = read
        regs.update({f"P{t}:{name}": v for name, v in mine.items() if v is not None})
        return None not in mine.values() and all(
            (t, k) in written for k, op, _ in self.lines[t] if op.kind in ("st", "atom", "red")
        )


def stored(op: Op, old: int, values: list[int]) -> int:
    if op.kind == "st":
        return values[0]
    if op.what == "cas":
        return values[1] if old == values[0] else old
    return ALU[op.what](old, values[0])


def barrier_name(op: Op) -> int:
    """Barriers that name the same constants are one barrier."""
    if len(op.args) > 2 or any(is_register(a) for a in op.args):
        raise NotSupported("a barrier with a count or a number in a register")
    return hash(op.args)


def candidates(
    test: Litmus,
) -> Iterator[tuple[Execution, State, dict[int, tuple[int, int]]]]:
    """Executions with their registers' final values, and by event which operation it is."""
    if test.loops:
        raise NotSupported("a loop")
    for lines in product(*(list(paths(t.ops)) for t in test.threads)):
        events, name_of = initial_events(test), {}
        for t, line in enumerate(lines):
            for k, op, _ in line:
                generation = barrier_name(op) if op.kind == "bar" else -1
                for e in events_of(test, op, t, k, generation):
                    name_of[len(events)] = (t, k)
                    events.append(e)
        reads = [k for k, e in enumerate(events) if e.kind == "R"]
        choices = [
            [
                w
                for w, e in enumerate(events)
                if e.kind == "W"
                and e.op.location == events[r].op.location
                and name_of.get(w) != name_of[r]
            ]
            for r in reads
        ]
        values = Values(test, list(lines))
        for chosen in product(*choices):
            rf = dict(zip(reads, chosen, strict=True))
            state = values.final({name_of[r]: name_of.get(w) for r, w in rf.items()})
            if state is not None:
                yield Execution(events, rf), state, name_of


def allowed(test: Litmus) -> Iterator[State]:
    """The final states that the model allows. A location has the value of any write that no other
    one follows in coherence order."""
    for execution, state, name_of in candidates(test):
        for _, co in execution.consistent():
            last = []
            for name in test.locations:
                writes = [
                    k
                    for k, e in enumerate(execution.events)
                    if e.kind == "W" and e.op.location == name
                ]
                ends = [w for w in writes if not any((w, v) in co for v in writes)]
                last.append([(name, end) for end in ends])
            for chosen in product(*last):
                final = dict(state)
                for name, w in chosen:
                    t_k = name_of.get(w)
                    final[name] = state[f"{t_k[0]}.{t_k[1]}"] if t_k else test.initial.get(name, 0)
                yield final


def verdict(test: Litmus) -> bool:
    """What Dat3M's record says: whether exists, ~exists or forall is true."""
    if test.quantifier == "forall":
        return all(test.holds(state) for state in allowed(test))
    found = any(test.holds(state) for state in allowed(test))
    return found == (test.quantifier == "exists")


def racy_locations(test: Litmus, trace: list[Step]) -> set[str]:
    return of_trace(test, trace).races()
