"""Holds the race detector against published litmus tests of the PTX memory model.

    python validation/litmus.py FOLDER      # a checkout of github.com/hernanponcedeleon/Dat3M
    python validation/hazard_docs.py        # puts the record's table into docs/hazards.md

FOLDER/litmus/PTX has the tests, and FOLDER/dartagnan/src/test/resources/PTXv7_5-expected.csv the
verdicts: whether the condition of a test (exists, ~exists, forall) is true. The emulator runs
sequentially consistent executions only, so it never shows a weak outcome itself. What the
detector can be held to is this.

By a published verdict. Take the bad outcome: the condition of exists and ~exists, the negation of
that of forall. It must be a conjunction with exactly one clause about a register that a weak load
sets, of a location that exactly one operation of another thread writes. Call the rest of the
conjunction the flags. It must be possible to reach the flags in a sequentially consistent
execution, but not the whole outcome. Then the flags decide nothing about the weak load, and it is
the load that reads the wrong one of two writes, the initial one and the other.

 - If the outcome is allowed, causality does not order load and write where the flags are as the
   outcome says: a data race on that location, which must be reported in each such execution.
 - If it is forbidden, causality must order them: there must be no report on that location.

A test of which no such execution can be run is "not reached". All others are "not judged", with
the reason.

By the outcome. All sequentially consistent executions are looked through for the outcome that the
test asks about. If there is one, the emulator runs it, and the verdict must allow the outcome. If
there is none, an allowed outcome is a weak one, which the emulator does not show.

By the model. memory_model/model.py is a second, independent account of the PTX memory model. It is
compared with the published verdicts first. Then, for each execution that is run, it says on which
locations there are data races, and the detector must report exactly those. This judges every test
that can be run, and tests for which no verdict is published: those derived by making the loads
and stores of one location weak, and random ones.

Not run at all: other proxies, several GPUs. Of tests with loops, executions of up to 60 steps are.

A kernel runs one interleaving, chosen at random: each thread has a warp of its own, which loops
before each operation until it is that operation's turn. It has no branches: the trace has decided
them. Half of the kernels are cooperative launches, in which operations of all blocks interleave. In
the others those of a cluster do, and clusters run one after the other, in a random order. Where the
test has no fence that makes the emulator run them so, half of these kernels have one that no thread
runs.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import records
import smemkern
from memory_model import model, program
from memory_model.program import Litmus, Machine, NotSupported, Op, State, Step, Thread

MAX_STEPS = 60  # of an execution of a test with a loop
MAX_STATES = 50_000  # of a test that are looked through for an outcome
VERDICTS = "dartagnan/src/test/resources/PTXv7_5-expected.csv"


@dataclass
class Run:
    trace: list[Step]
    state: State
    reported: set[str]
    racy: set[str]

    @property
    def agrees(self) -> bool:
        return self.reported == self.racy


# ---- executions


def interleave(
    test: Litmus, rng: random.Random, together: bool
) -> tuple[list[int], Machine] | None:
    """A random execution in which clusters run one after the other, or all blocks together; None: a
    cluster hangs, or loops for too long."""
    size = test.cluster
    clusters = [test.blocks[k : k + size] for k in range(0, len(test.blocks), size)]
    rng.shuffle(clusters)
    blocks = [b for cluster in clusters for b in cluster]
    machine = Machine(test)
    for group in [blocks] if together else clusters:
        while mine := [t for t in machine.runnable() if test.threads[t].block in group]:
            machine.step(rng.choice(mine))
            if len(machine.trace) > MAX_STEPS:
                return None
    return None if machine.waits else (blocks, machine)


def execute(
    test: Litmus, blocks: list[int], machine: Machine, one_by_one: bool, together: bool = False
) -> set[str] | None:
    """Runs the trace on the emulator: the locations with a reported race; None: the emulator's host
    threads ran blocks in another order."""
    names = program.registers(test)
    arrays = [np.array([test.initial.get(name, 0)], "u4") for name in test.locations]
    out = np.zeros(max(1, sum(map(len, names))), "u4")
    warps = max(sum(t.block == b for t in test.threads) for b in blocks)
    ptx = program.kernel(test, blocks, machine.trace, one_by_one, together)
    kernel = smemkern.Kernel(ptx, "k")
    by_name = dict(zip(test.locations, arrays, strict=True))
    trace = smemkern.trace(
        kernel,
        *(len(blocks), 32 * warps, *arrays, out),
        hazards=True,
        equal_writes=True,
        cooperative=together,
        textures={f"s_{name}": smemkern.Surface(by_name[name]) for name in program.surfaces(test)},
    )
    got = {name: int(array[0]) for name, array in by_name.items()}
    flat = [f"P{t}:{r}" for t, registers in enumerate(names) for r in registers]
    got |= dict(zip(flat, (int(v) for v in out), strict=False))
    if any(v != machine.state.get(name, 0) & 0xFFFFFFFF for name, v in got.items()):
        if one_by_one or together or len(blocks) == 1:
            raise RuntimeError(f"{test.name}: the emulator ran another interleaving")
        return None
    if any(h.kind not in ("RAW", "WAR", "WAW", "proxy") for h in trace.hazards):
        raise RuntimeError(f"{test.name}: {trace.hazards}")
    return {test.locations[h.argument] for h in trace.hazards if h.argument is not None}


def run(
    test: Litmus, blocks: list[int], machine: Machine, one_by_one: bool, together: bool
) -> Run | None:
    """One execution; None: the model has too many orders to look through."""
    reported = execute(test, blocks, machine, one_by_one, together)
    if reported is None:
        reported = execute(test, blocks, machine, True, together)
    assert reported is not None
    try:
        racy = model.racy_locations(test, machine.trace)
    except NotSupported:
        return None
    return Run(machine.trace, machine.state, reported, racy)


def runs(test: Litmus, count: int, rng: random.Random) -> Iterator[Run]:
    """Up to `count` different executions, half of them with the blocks' operations interleaved."""
    seen: set[tuple[object, ...]] = set()
    for _ in range(2 * count):
        together = len(test.blocks) > 1 and rng.random() < 0.5
        found = interleave(test, rng, together)
        if not found or len(seen) == count:
            continue
        blocks, machine = found
        key = (together, tuple(blocks), tuple((s.thread, s.index) for s in machine.trace))
        if key not in seen:
            seen.add(key)
            done = run(test, blocks, machine, rng.random() < 0.5, together)
            if done:
                yield done


def run_to(test: Litmus, clauses: list[str]) -> Run | None:
    """An execution whose final state has them, with all blocks interleaved; None: there is none."""
    for machine in program.ends(test):
        if all(test.holds(machine.state, c) for c in clauses):
            return run(test, test.blocks, machine, True, len(test.blocks) > 1)
    return None


# ---- the rule for published verdicts


@dataclass
class Rule:
    location: str
    flags: list[str]
    racy: bool


def negated(clause: str) -> str:
    return clause.replace("!=", "==") if "!=" in clause else clause.replace("==", "!=")


def bad_outcome(test: Litmus) -> list[str]:
    """The clauses of the conjunction whose outcome the test asks about."""
    inner = test.condition.strip().removeprefix("(").removesuffix(")")
    if "(" in inner:
        raise NotSupported("the bad outcome is no conjunction")
    if test.quantifier != "forall":
        if "\\/" in inner:
            raise NotSupported("the bad outcome is no conjunction")
        return program.clauses(test.condition)
    if "/\\" in inner:
        raise NotSupported("the bad outcome is no conjunction")
    return [negated(clause.strip()) for clause in inner.split("\\/")]


def weak_load(test: Litmus, clause: str) -> tuple[int, Op] | None:
    """The thread and the weak load that sets the register of the clause; None: there is none."""
    name = clause.replace(" ", "").partition("=")[0].rstrip("!")
    thread, _, register = name.rpartition(":")
    if not thread:
        return None
    t = int(thread.removeprefix("P"))
    setters = [
        op
        for op in test.threads[t].ops
        if op.args and op.args[0] == register and op.kind in ("ld", "atom", "alu")
    ]
    last = setters[-1] if setters else None
    return (t, last) if last and last.kind == "ld" and not last.strong else None


def rule_of(test: Litmus, holds: bool) -> Rule:
    """What the published verdict demands; NotSupported: nothing, and why."""
    accesses = [op for t in test.threads for op in t.ops if op.location]
    if test.loops:
        raise NotSupported("a loop")
    if all(op.strong for op in accesses):
        raise NotSupported("no weak access")
    bad = bad_outcome(test)
    loads = [(clause, found) for clause in bad if (found := weak_load(test, clause))]
    if len(loads) != 1:
        raise NotSupported("not exactly one clause about a weak load")
    clause, (thread, load) = loads[0]
    writes = [
        (t, op)
        for t, other in enumerate(test.threads)
        for op in other.ops
        if op.location == load.location and op.kind in ("st", "atom", "red")
    ]
    if len(writes) != 1 or writes[0][0] == thread:
        raise NotSupported("not exactly one write that the load may read")
    flags = [c for c in bad if c != clause]
    states = list(program.outcomes(test))
    if any(all(test.holds(s, c) for c in bad) for s in states):
        raise NotSupported("the outcome is sequentially consistent")
    if not any(all(test.holds(s, c) for c in flags) for s in states):
        raise NotSupported("the flags are not sequentially consistent")
    return Rule(load.location, flags, is_allowed(test, holds))


def is_allowed(test: Litmus, holds: bool) -> bool:
    """Whether the verdict allows the outcome that the test asks about."""
    return not holds if test.quantifier in ("forall", "~exists") else holds


def judge_outcome(test: Litmus, holds: bool) -> str:
    """Compares the verdict about the outcome with what the emulator can show."""
    allowed = is_allowed(test, holds)

    def asked(state: State) -> bool:
        return test.holds(state) != (test.quantifier == "forall")

    try:
        found = next((m for m in program.ends(test, MAX_STATES) if asked(m.state)), None)
    except NotSupported:
        return "not judged: too many executions"
    if found is None:
        return "allowed, but weak: not shown" if allowed else "forbidden, not shown"
    together = len(test.blocks) > 1
    execute(test, test.blocks, found, True, together)  # fails if the emulator shows another one
    return "allowed, shown" if allowed else "forbidden, shown"


def judge(test: Litmus, rule: Rule, done: list[Run]) -> str:
    reached = [r for r in done if all(test.holds(r.state, c) for c in rule.flags)]
    if not reached:
        return "not reached"
    right = all((rule.location in r.reported) == rule.racy for r in reached)
    kind = "race" if rule.racy else "ordered"
    return f"{kind}, {'right' if right else 'wrong'}"


# ---- derived and random tests


def derived(test: Litmus) -> Iterator[Litmus]:
    """The test with weak loads and stores of one location, where they were strong."""
    for location in test.locations:
        plain = [
            op for t in test.threads for op in t.ops if op.location == location and op.kind != "bar"
        ]
        if any(op.strong and op.kind in ("ld", "st") for op in plain):
            yield test.weaker(location)


SCOPES = ("cta", "cluster", "gpu", "gpu", "sys")
FENCES = ("acq_rel", "acq_rel", "sc")


def random_op(rng: random.Random, t: int, k: int) -> Op:
    scope, value = rng.choice(SCOPES), str(10 * t + k + 1)
    location = rng.choice(("x", "x", "f", "g"))
    weak = location == "x" and rng.random() < 0.9
    kind = rng.choices(("ld", "st", "atom", "fence"), (4, 4, 0 if weak else 2, 3))[0]
    if kind == "fence":
        return Op("fence", order=rng.choice(FENCES), scope=scope)
    if weak:
        return Op(kind, "", "weak", "", location, (f"r{k}" if kind == "ld" else value,))
    if kind == "atom":
        order = rng.choice(("relaxed", "acquire", "release", "acq_rel"))
        return Op("atom", rng.choice(("exch", "add")), order, scope, location, (f"r{k}", value))
    order = rng.choice(("relaxed", "acquire" if kind == "ld" else "release"))
    return Op(kind, "", order, scope, location, (f"r{k}" if kind == "ld" else value,))


def random_test(rng: random.Random, name: str) -> Litmus:
    """Two to four threads in one to three blocks, of clusters of one or two. x is mostly data, f
    and g are flags."""
    threads = [
        Thread(rng.randrange(rng.choice((1, 2, 3)))) for _ in range(rng.choice((2, 2, 3, 4)))
    ]
    for t, thread in enumerate(threads):
        thread.ops = [random_op(rng, t, k) for k in range(rng.randint(2, 6))]
    for block in {t.block for t in threads}:
        if rng.random() < 0.3:
            for thread in threads:
                if thread.block == block:
                    at = rng.randint(0, len(thread.ops))
                    thread.ops.insert(at, Op("bar", "sync", args=("0",)))
    cluster = rng.choice((1, 2))
    for number in {t.block // cluster for t in threads}:
        if rng.random() < 0.2:
            for thread in threads:
                if thread.block // cluster == number:
                    order = rng.choice(("release", "relaxed"))
                    thread.ops.insert(rng.randint(0, len(thread.ops)), Op("cluster", order=order))
    return Litmus(name, {"x": 0, "f": 0, "g": 0}, threads, "exists", "0 == 0", cluster)


# ---- suites


def load(folder: Path) -> Iterator[tuple[str, Litmus | None, bool | None, str]]:
    """Every test: name, test or None, published verdict or None, and why it is not run."""
    with (folder / VERDICTS).open() as lines:
        verdicts = {row[0]: row[1] == "1" for row in csv.reader(lines) if len(row) == 2}
    for path in sorted((folder / "litmus" / "PTX").rglob("*.litmus")):
        name = path.relative_to(folder).as_posix()
        short, holds = name.removeprefix("litmus/PTX/"), verdicts.get(name)
        try:
            test = program.read(path.read_text(), short)
        except NotSupported as why:
            yield short, None, holds, str(why)
            continue
        yield short, test, holds, ""


class Suite:
    """Counts executions of a group of tests against the model."""

    def __init__(self, count: int, rng: random.Random) -> None:
        self.count, self.rng = count, rng
        self.tests = self.executions = 0
        self.cells: Counter[str] = Counter()
        self.misses: list[str] = []

    def add(self, test: Litmus) -> list[Run]:
        done = list(runs(test, self.count, self.rng))
        self.tests += bool(done)
        for run in done:
            self.executions += 1
            for location in test.locations:
                racy, reported = location in run.racy, location in run.reported
                self.cells[f"{'race' if racy else 'none'}, {'report' if reported else 'none'}"] += 1
                if racy != reported:
                    order = " ".join(f"{s.thread}.{s.index}" for s in run.trace)
                    what = "missed" if racy else "false"
                    self.misses.append(f"{test.name}: {what} {location} [{order}]")
        return done

    def record(self) -> records.Record:
        return {
            "tests": self.tests,
            "executions": self.executions,
            "cells": dict(sorted(self.cells.items())),
            "misses": self.misses,
        }


def published(folder: Path, suite: Suite, weak: Suite) -> records.Record:
    """All tests of the folder: by verdict and by the model; and the derived ones."""
    judged: dict[str, str] = {}
    by_outcome: dict[str, str] = {}
    model: Counter[str] = Counter()
    model_misses = []
    for name, test, holds, why in load(folder):
        if test is None:
            judged[name] = f"not run: {why}"
            continue
        done = suite.add(test)
        for other in derived(test):
            weak.add(other)
        if holds is None:
            judged[name] = "not judged: no verdict" if done else "not run: no verdict"
            continue
        by_outcome[name] = judge_outcome(test, holds)
        try:
            agrees = model.verdict(test) == holds
            model["same" if agrees else "different"] += 1
            model_misses += [] if agrees else [name]
        except NotSupported as reason:
            model[f"not computed: {reason}"] += 1
        try:
            rule = rule_of(test, holds)
            reached = run_to(test, rule.flags)
            done += [reached] if reached else []
            judged[name] = judge(test, rule, done) if done else "not run: a deadlock"
        except NotSupported as reason:
            judged[name] = f"not judged: {reason}"
    return {
        "tests": len(judged),
        "counts": dict(sorted(Counter(judged.values()).items())),
        "judged": {n: j for n, j in judged.items() if not j.startswith("not ")},
        "outcomes": dict(sorted(Counter(by_outcome.values()).items())),
        "by_outcome": by_outcome,
        "model": dict(sorted(model.items())),
        "model_misses": model_misses,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a checkout of Dat3M")
    parser.add_argument("--executions", type=int, default=8, help="of a test, at most")
    parser.add_argument("--random", type=int, default=1000, help="how many random tests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=records.RESULTS / "litmus.json")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    suites = {name: Suite(args.executions, rng) for name in ("published", "derived", "random")}
    record = {
        **records.facts(),
        "source": f"Dat3M {records.first_line('git', '-C', str(args.folder), 'rev-parse', 'HEAD')}",
        "seed": args.seed,
        "by_verdict": published(args.folder, suites["published"], suites["derived"]),
    }
    for k in range(args.random):
        suites["random"].add(random_test(rng, f"random {k}"))
    record["by_model"] = {name: suite.record() for name, suite in suites.items()}
    records.write(args.out, record)
    by_verdict = record["by_verdict"]
    wrong = sum(v.endswith("wrong") for v in by_verdict["judged"].values())
    wrong += by_verdict["outcomes"].get("forbidden, shown", 0)
    misses = sum(len(suite.misses) for suite in suites.values())
    print(f"{wrong} wrong by verdict, {misses} misses by the model")
    return 1 if wrong or misses else 0


if __name__ == "__main__":
    sys.exit(main())
