"""Mutation testing of the C code in csrc/emu, csrc/core and csrc/module.

    python validation/c_mutants.py --measure           # which test runs which line; needs clang
    python validation/c_mutants.py --count 300 --seed 21   # resumes; writes results/c-mutants.json
    python validation/c_mutants.py --again --measure   # survivors again, with the current tests
    python validation/c_mutants.py --sanitized         # survivors with AddressSanitizer and UBSan
    python validation/c_mutants.py --only csrc/emu/machine/barrier.c --count 20 --results F

(mutation.py mutates kernels, to test the hazard detector.) c_mutant/sites.py has the operators:
comparisons, bounds, masks, roundings, off by one, removed calls and guards, negated conditions, &&
for ||. Mutants are drawn with a seed from all sites. Each is compiled and linked in
build/c_mutants, a copy of the tree. The tests that run its line run there until one fails: first
those that are quick and likely to fail, up to FIRST_SECONDS, with --again also THEN_SECONDS more.
A mutant is

    killed       a test fails, crashes or exceeds its time limit, but passes without the mutant;
                 with --sanitized, a report about the mutated file also counts
    survived     no test that runs the line fails; it needs a reason in c_mutant/reasons.py

Mutants that do not compile, or compile to the same machine code, do not count, and others are
drawn. Neither do those that c_mutant/reasons.py lists as equivalent to the original.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import records
from c_mutant import runner, sites
from c_mutant.build import DoesNotCompile, Equivalent, Tree
from c_mutant.reach import Reach, measure
from c_mutant.reasons import is_equivalent, reason_of
from c_mutant.sites import OPERATORS, Site
from sanitized import KINDS, LEFT_OUT, ROOT, path_of

RESULTS = records.RESULTS / "c-mutants.json"
FOLDER = ROOT / "build" / "c_mutants"
FIRST_SECONDS, FIRST_FILES = 20, 6  # of the first tests; generous, for a busy machine
FEW, MOST_FEW = (
    10,
    80,
)  # a test comes first if its block of the line runs in under 1/FEW of the line's tests
LEAKS = ("tests/test_references.py", "tests/test_module_cache.py")  # for removed calls
THEN_SECONDS = 300  # of the tests after them, with --again
Record = dict[str, Any]


# ---- which tests


class Choice:
    """The tests that run a mutant's line, the most likely killers first."""

    def __init__(self, reach: Reach, records: list[Record], first: list[str]) -> None:
        self.reach, self.first, self.distrusted = reach, tuple(first), set[str]()
        self.left_out = tuple(LEFT_OUT) if reach.sanitized else ()
        self.of_file = Counter(name.partition("::")[0] for name in reach.seconds)
        self.killers: dict[str, Counter[str]] = {}
        for record in records:
            self.note(record)

    def note(self, record: Record) -> None:
        if record.get("test"):
            killer = record["test"].partition("::")[0]
            for place in (record["file"], record["file"].rpartition("/")[0]):
                self.killers.setdefault(place, Counter())[killer] += 1

    def worth(self, file: str, tests: list[str], site: Site, all_tests: int) -> float:
        """Priority of a test file: higher if it killed mutants nearby, if an above-average share of
        its tests runs the line, and if those are quick."""
        here = self.killers.get(site.file, Counter())[file]
        near = self.killers.get(site.file.rpartition("/")[0], Counter())[file]
        share = len(tests) / max(1, self.of_file[file])
        lift = share * len(self.reach.seconds) / max(1, all_tests)
        seconds = sorted(self.reach.seconds.get(name, 5) for name in tests)
        return (min(lift, 30) + 10 * here + near) / (0.2 + seconds[len(seconds) // 4])

    def ordered(self, site: Site) -> list[str]:
        groups: dict[str, list[str]] = {}
        every = self.reach.tests(site.file, site.line)
        if not every and self.first:  # the line table lacks this line
            every = {name: 1 for name in self.reach.seconds if name.startswith(self.first)}
        for name in every:
            if name not in self.distrusted and not name.startswith(self.left_out):
                groups.setdefault(name.partition("::")[0], []).append(name)
        files = sorted(groups, key=lambda f: -self.worth(f, groups[f], site, len(every)))
        shuffled = random.Random(site.line)
        for tests in groups.values():
            shuffled.shuffle(tests)
            tests.sort(key=lambda name: max(1, round(self.reach.seconds.get(name, 5))))
        first = self.in_turns([groups[file] for file in files[:FIRST_FILES]])
        then = self.in_turns([groups[file] for file in files[FIRST_FILES:]])
        # Tests that take a rare path through the line, such as a guard's return.
        few = [name for name in first + then if every[name] * FEW < len(every)]
        rarest = sorted(few, key=lambda name: every[name])[:MOST_FEW]
        leaks = [n for n in first + then if n.startswith(LEAKS)] if "call" in site.operator else []
        asked = [n for n in first + then if n.startswith(self.first)] if self.first else []
        return list(dict.fromkeys(asked + rarest + leaks[:MOST_FEW] + first + then))

    @staticmethod
    def in_turns(groups: list[list[str]]) -> list[str]:
        return [name for name in chain(*zip_longest(*groups)) if name]

    def stages(self, site: Site, thorough: bool) -> Iterator[list[str]]:
        every, start = self.ordered(site), 0
        for budget in (FIRST_SECONDS, THEN_SECONDS)[: 2 if thorough else 1]:
            end, spent = start, 0.0
            while end < len(every) and spent < budget:
                spent += self.reach.seconds.get(every[end], 5)
                end += 1
            if end > start:
                yield every[start:end]
            start = end


# ---- one mutant


class Trial:
    def __init__(self, tree: Tree, choice: Choice, thorough: bool) -> None:
        self.tree, self.choice, self.thorough = tree, choice, thorough
        self.trusted: set[str] = set()

    def of(self, place: Key, site: Site) -> Record:
        text = (ROOT / site.file).read_text()
        before, after = sites.shown(text, site)
        record: Record = {"file": site.file, "line": site.line, "operator": site.operator}
        record |= {"before": before, "after": after}
        record |= {"alike": place[-1]} if place[-1] else {}
        began = time.monotonic()
        try:
            self.tree.build(site)
            record |= self.verdict(site)
        except Equivalent:
            record["verdict"] = "equivalent"
        except (DoesNotCompile, subprocess.SubprocessError):
            record["verdict"] = "not compiled"
        finally:
            self.tree.restore(site)
        return record | {"seconds": round(time.monotonic() - began, 1)}

    def verdict(self, site: Site) -> Record:
        tried = 0
        for chosen in self.choice.stages(site, self.thorough):
            while chosen:
                outcome = self.run(chosen)
                if outcome.how == "passed":
                    tried += len(chosen)
                    break
                if self.passes_without(outcome.test, site):
                    crashed = self.tree.sanitized and outcome.how == "crashed"
                    how = "sanitizer" if crashed else outcome.how
                    return {"verdict": "killed", "how": how, "test": outcome.test}
                self.choice.distrusted.add(outcome.test)
                chosen = [name for name in chosen if name != outcome.test]
        return {"verdict": "survived", "tests": tried}

    def run(self, chosen: list[str]) -> runner.Outcome:
        memory = None if self.tree.sanitized else runner.MEMORY
        return runner.run(self.tree.path, chosen, self.choice.reach.seconds, memory)

    def passes_without(self, test: str, site: Site) -> bool:
        """Whether the test passes without the mutant. A name that is no test's means an import."""
        if test in self.trusted or "::" not in test:
            return True
        mutant = (self.tree.path / site.file).read_bytes()
        self.tree.restore(site)
        self.tree.link_original(site)
        outcome = self.run([test])
        if outcome.how == "passed":
            self.trusted.add(test)
        else:
            print(f"unreliable test: {test} ({outcome.how} without a mutant)", flush=True)
            (self.tree.path / site.file).write_bytes(mutant)
            self.tree.link_mutant(site)
        return outcome.how == "passed"


# ---- all of them


Key = tuple[str, str, str, int]  # file, line before, line after, index among equal ones


def drawn(seed: int, only: list[str]) -> dict[Key, Site]:
    """All sites, ordered by a hash, so that changes of other code do not change the order."""
    texts: dict[str, str] = {}
    found: dict[tuple[str, ...], list[Site]] = {}
    for site in sites.every_site(ROOT):
        if not only or site.file in only:
            text = texts.setdefault(site.file, (ROOT / site.file).read_text())
            found.setdefault((site.file, *sites.shown(text, site)), []).append(site)
    order: list[tuple[bytes, Key, Site]] = []
    for (file, before, after), alike in found.items():
        for k, site in enumerate(alike):
            drawn = hashlib.sha256("\0".join((str(seed), file, before, after, str(k))).encode())
            order.append((drawn.digest(), (file, before, after, k), site))
    return {place: site for _, place, site in sorted(order)}


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def counts(record: Record) -> bool:
    return record["verdict"] in ("killed", "survived") and not is_equivalent(record)


class Journal:
    """A log with one line per mutant, written at once: an interrupted run keeps its results."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.records: dict[Key, Record] = {}
        for record in map(json.loads, lines):
            self.records[self.key(record)] = record

    @staticmethod
    def key(record: Record) -> Key:
        return record["file"], record["before"], record["after"], record.get("alike", 0)

    def add(self, record: Record) -> None:
        self.records[self.key(record)] = record
        with self.path.open("a") as out:
            out.write(json.dumps(record) + "\n")

    def mutants(self, order: dict[Key, Site], count: int) -> list[Record]:
        """The first so many mutants of the draw that count, as far as they were tried."""
        found: list[Record] = []
        for place in order:
            if place not in self.records or len(found) == count:
                break
            if counts(self.records[place]):
                found.append(self.records[place])
        return found


Draw = Iterator[tuple[Key, Site]]


def untried(order: dict[Key, Site], journal: Journal, count: int) -> Draw:
    """Yields sites until so many mutants count; the caller adds the record of each."""
    found = 0
    for place, site in order.items():
        if found == count:
            return
        if place not in journal.records:
            yield place, site
        found += counts(journal.records[place])


def survivors(order: dict[Key, Site], journal: Journal, count: int) -> Draw:
    for mutant in journal.mutants(order, count):
        if mutant["verdict"] == "survived" and not reason_of(mutant):
            yield journal.key(mutant), order[journal.key(mutant)]


def summary(options: argparse.Namespace, order: dict[Key, Site], journal: Journal) -> Record:
    mutants = journal.mutants(order, options.count)
    for record in mutants:
        record.pop("reason", None)
        if record["verdict"] == "survived" and (reason := reason_of(record)):
            record["reason"] = reason
    every = journal.records.values()
    by_operator = {
        operator: [
            sum(m["verdict"] == "killed" for m in mutants if m["operator"] == operator),
            sum(m["operator"] == operator for m in mutants),
        ]
        for operator in OPERATORS
    }
    return {
        "date": datetime.date.today().isoformat(),
        "commit": options.commit or commit(),
        "seed": options.seed,
        "sites": len(order),
        "mutants": len(mutants),
        "killed": sum(m["verdict"] == "killed" for m in mutants),
        "how": dict(Counter(m["how"] for m in mutants if m["verdict"] == "killed")),
        "not counted": {
            verdict: sum(r["verdict"] == verdict for r in every)
            for verdict in ("equivalent", "not compiled")
        },
        "told by no input": sum(map(is_equivalent, every)),
        "operators": by_operator,
        "records": mutants,
    }


def write(record: Record, path: Path) -> None:
    """JSON with one line per mutant."""
    lines = ",\n".join(f"  {json.dumps(line)}" for line in record["records"])
    text = json.dumps({**record, "records": []}, indent=1)
    records.save(path, text.replace('"records": []', f'"records": [\n{lines}\n ]') + "\n")


def sanitized_environment() -> dict[str, str]:
    kind = KINDS["address"]
    options = {
        k: f"{v}:abort_on_error=1:hard_rss_limit_mb=8192"
        for k, v in kind.options.items()
        if k.endswith("OPTIONS")
    }
    libraries = " ".join(map(path_of, kind.libraries))
    return {**os.environ, **kind.options, **options, "LD_PRELOAD": libraries}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=[], metavar="FILE")
    parser.add_argument(
        "--first", nargs="*", default=[], metavar="TEST", help="run these tests first"
    )
    parser.add_argument("--measure", action="store_true", help="measure new and changed tests")
    parser.add_argument("--again", action="store_true", help="retry survivors with more tests")
    parser.add_argument(
        "--sanitized", action="store_true", help="retry survivors with AddressSanitizer and UBSan"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--workers", type=int, default=1, help="parallel compilers")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--commit", default=os.environ.get("SMEMKERN_COMMIT"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.sanitized and "LD_PRELOAD" not in os.environ:
        os.execve(sys.executable, [sys.executable, *sys.argv], sanitized_environment())
    tree = Tree(options.folder, sanitized=options.sanitized)
    tree.prepare(options.workers)
    runner.import_once()
    if options.measure:
        measure(tree, options.workers)
    order = drawn(options.seed, options.only)
    journal = Journal(options.folder / f"seed-{options.seed}.jsonl")
    reach = Reach(tree)
    choice = Choice(reach, list(journal.records.values()), options.first)
    trial = Trial(tree, choice, options.again)

    todo = untried(order, journal, options.count)
    if options.again or options.sanitized:
        todo = chain(survivors(order, journal, options.count), todo)
    try:
        for place, site in todo:
            record = trial.of(place, site)
            journal.add(record)
            trial.choice.note(record)
            said = (record["verdict"], record.get("test") or record["after"], record["seconds"])
            print(f"{site.file}:{site.line} {site.operator}:", *said, flush=True)
    finally:
        tree.link_reference()
        result = summary(options, order, journal)
        write(result, options.results)
    print(f"{result['killed']} of {result['mutants']} killed")
    left = [r for r in result["records"] if r["verdict"] == "survived" and "reason" not in r]
    for record in left:
        print(record["file"], record["line"], record["before"], "->", record["after"])
    return 1 if left or result["mutants"] < options.count else 0


if __name__ == "__main__":
    sys.exit(main())
