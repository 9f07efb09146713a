"""Runs public kernels on the emulator: which decode, which give the right result, which race.

    git clone https://github.com/karpathy/llm.c FOLDER/llm.c     # and so on: suites/table.py
    python validation/public_suites.py FOLDER [--only llm.c] [--cache FOLDER/ptx]
    python validation/public_suites.py FOLDER --unseen

The folder of repositories is beside the tree. Every .cu file is compiled to PTX (needs nvcc), once:
the PTX stays in the cache. Triton and Numba compile with --python PATH. Each .entry is decoded; a
refusal is counted by what is missing. Kernels that suites/adapters or ZLUDA's table has a reference
for are run, their results compared, and run again with hazard detection. The rows go to
RESULTS/public-suites.json, which docs/public-suites.md shows (benchmarks/tables.py); --unseen takes
the repositories that the emulator was not written with, and RESULTS/unseen-suites.json. Fails if a
result is wrong that suites/explained.py does not explain, and if an explained run does not give
exactly what suites/fingerprints.json says; --accept writes that file.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import math
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import records
from suites import adapters, build, decode, fingerprints, reference, table, zluda
from suites.explained import EXPLAINED, Explanation
from suites.reference import Outcome

RECORD, UNSEEN_RECORD = "public-suites.json", "unseen-suites.json"
assert adapters.__all__  # importing them registers their cases
MESSAGE = 300  # characters of a finding that the record keeps


def explanation(unit: build.Unit, name: reference.Name) -> Explanation | None:
    return next(
        (
            one
            for one in EXPLAINED
            if one.suite == unit.suite
            and re.search(one.file, unit.file)
            and re.fullmatch(one.kernel, name.kernel)
            and re.search(one.template, ", ".join(name.template))
        ),
        None,
    )


class Tally:
    """The row of one suite."""

    def __init__(self, suite: table.Suite, root: Path, files: int) -> None:
        self.suite, self.begun = suite, time.monotonic()
        self.recorded = fingerprints.Record()
        self.explained: set[str] = set()  # runs, as the record names them
        self.changed: list[str] = []  # ... that are not as recorded
        self.counts: collections.Counter[str] = collections.Counter(files=files)
        self.not_compiled: list[dict[str, str]] = []
        self.refused: dict[str, dict[str, Any]] = {}
        self.findings: list[dict[str, Any]] = []
        self.commit = build.commit(root)

    def refuse(self, unit: build.Unit, entry: decode.Entry, error: Exception) -> None:
        """Counts a refusal; the row keeps the instance of the smallest module as an example."""
        row = self.refused.setdefault(decode.reason(error), {"count": 0, "bytes": sys.maxsize})
        row["count"] += 1
        if len(unit.ptx or "") < row["bytes"]:
            row |= {"bytes": len(unit.ptx or ""), "file": unit.file, "entry": entry.name}

    def compare(
        self, unit: build.Unit, name: reference.Name, outcome: reference.Outcome
    ) -> reference.Outcome:
        """An explained run: the outcome, with the difference from the record if there is one."""
        key = self.recorded.key(unit.file, name)
        recorded = self.recorded.find(self.suite.name, unit.file, name)
        changed = fingerprints.difference(fingerprints.of(outcome), recorded)
        self.explained.add(key)
        if not changed:
            return outcome
        self.changed.append(f"{key}: {changed}")
        return dataclasses.replace(outcome, right=False, detail=f"not as recorded: {changed}")

    def missing(self) -> list[str]:
        """Explained runs of the record that gave nothing to explain, or did not run."""
        return sorted(self.recorded.names(self.suite.name) - self.explained)

    def add(self, unit: build.Unit, name: reference.Name, outcome: reference.Outcome) -> None:
        known = explanation(unit, name)
        if known and (not outcome.right or outcome.hazards):
            outcome = self.compare(unit, name, outcome)
            known = None if outcome.detail.startswith("not as recorded") else known
        self.counts["run"] += 1
        self.counts["right"] += outcome.right
        self.counts["hazards"] += bool(outcome.hazards)
        if not outcome.right:
            self.counts["explained" if known and known.harmful else "wrong"] += 1
        if not outcome.right or outcome.hazards:
            self.find(unit, name, outcome, known)

    def find(
        self,
        unit: build.Unit,
        name: reference.Name,
        outcome: reference.Outcome,
        known: Explanation | None,
    ) -> None:
        """One finding for all instances of a template; the first one's message is kept."""
        same = {
            "file": unit.file,
            "kernel": name.kernel,
            "wrong": not outcome.right,
            "explained": known.reason if known else "",
            "harmful": known.harmful if known else None,
        }
        for one in self.findings:
            if same.items() <= one.items():
                one["instances"].append(", ".join(name.template))
                return
        message = outcome.detail or outcome.hazards[0]
        instances = [", ".join(name.template)]
        self.findings.append({**same, "message": message[:MESSAGE], "instances": instances})

    def row(self) -> records.Record:
        first = table.FIRST_LOOK.get(self.suite.name)
        keys = ("files", "entries", "decoded", "run", "right", "explained", "wrong", "hazards")
        refused = dict(sorted(self.refused.items(), key=lambda item: -item[1]["count"]))
        return {
            "suite": self.suite.name,
            "repository": self.suite.repository,
            "repository_commit": self.commit,
            **{key: self.counts[key] for key in keys},
            **(
                {"first_look": dict(zip(("decoded", "entries"), first, strict=True))}
                if first
                else {}
            ),
            "not_compiled": self.not_compiled,
            "refused": refused,
            "findings": self.findings,
            "seconds": round(time.monotonic() - self.begun),
            **records.facts(),
        }


Accepted = dict[str, fingerprints.Fingerprint]


def accept(
    accepted: Accepted, unit: build.Unit, name: reference.Name, rerun: Callable[[], Outcome]
) -> None:
    """Adds the fingerprint that several runs of an explained kernel have in common."""
    if not explanation(unit, name):
        return
    outcomes = [rerun() for _ in range(fingerprints.RUNS)]
    if any(not one.right or one.hazards for one in outcomes):
        several = [fingerprints.of(one) for one in outcomes]
        accepted[fingerprints.Record.key(unit.file, name)] = fingerprints.common(several)


def examine(
    tally: Tally, unit: build.Unit, programs: dict[str, Any], accepted: Accepted | None
) -> None:
    """Decodes all entries of a file, and runs those with a reference; accepted: only adds the
    fingerprints of explained runs there."""
    assert unit.ptx is not None
    found = decode.entries(unit.ptx)
    names = reference.demangled(entry.name for entry in found)
    for entry in found:
        tally.counts["entries"] += 1
        if error := decode.refusal(unit.ptx, entry):
            tally.refuse(unit, entry, error)
            continue
        tally.counts["decoded"] += 1
        name = reference.read_name(names[entry.name])
        make = launch_of(unit, entry, name, programs)
        if not make:
            continue
        module = decode.alone(unit.ptx, entry.name)
        if accepted is None:
            tally.add(unit, name, reference.run(module, entry.name, make()))
        else:
            rerun = functools.partial(rerun_of, module, entry.name, make)
            accept(accepted, unit, name, rerun)


def rerun_of(module: str, entry: str, make: Callable[[], reference.Launch]) -> Outcome:
    return reference.run(module, entry, make())


def launch_of(
    unit: build.Unit, entry: decode.Entry, name: reference.Name, programs: dict[str, Any]
) -> Callable[[], reference.Launch] | None:
    """Makes a launch with the same arguments each time; None: the kernel has no reference."""
    case = reference.find(unit.suite, unit.file, name)
    if case:
        return lambda: reference.as_declared(
            name, case.launch(name, reference.generator(entry.name))
        )
    if programs.get(entry.name):
        return lambda: zluda.launch(programs[entry.name], len(entry.zeros))
    return None


def run(suite: table.Suite, given: argparse.Namespace) -> records.Record | None:
    """The suite's row; None: its fingerprints were accepted."""
    root = build.repository(suite, given.folder)
    listed = build.files(suite, root)
    tally = Tally(suite, root, len(listed))
    if suite.package:
        tally.commit = build.package_version(suite.package, given.python)
    programs = zluda.table(root) if suite.name == "ZLUDA" else {}
    accepted: Accepted | None = {} if given.accept else None
    units = build.units(
        suite,
        given.folder,
        given.cache,
        print_line,
        jobs=given.jobs,
        python=given.python,
        seconds=given.seconds,
    )
    for unit in units:
        if unit.ptx is None:
            tally.not_compiled.append({"file": unit.file, "error": unit.error})
        else:
            examine(tally, unit, programs, accepted)
    if accepted is not None:
        tally.recorded.replace(suite.name, accepted)
        return None
    for line in tally.changed:
        print_line(f"not as recorded: {line}")
    for line in tally.missing():
        print_line(f"explained, but right now, or not run: {line}")
    return tally.row() | {"changed": len(tally.changed) + len(tally.missing())}


def print_line(text: str) -> None:
    print(text, flush=True)


def summary(row: records.Record) -> str:
    counts = ("files", "entries", "decoded", "run", "right", "explained", "wrong", "hazards")
    said = ", ".join(f"{row[key]} {key}" for key in counts)
    return f"{row['suite']}: {said}; {row['seconds']} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the repositories are in FOLDER/NAME")
    parser.add_argument("--cache", type=Path, help="of PTX; FOLDER/ptx if not given")
    names = [suite.name for suite in table.SUITES + table.UNSEEN]
    parser.add_argument("--only", action="append", choices=names)
    parser.add_argument("--unseen", action="store_true", help="the suites of docs, At first sight")
    parser.add_argument("--jobs", type=int, default=1, help="compilers at the same time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="to compile one suite")
    parser.add_argument("--python", default=sys.executable, help="has triton and numba-cuda")
    parser.add_argument("--accept", action="store_true", help="write suites/fingerprints.json")
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    given = parser.parse_args()
    given.folder = given.folder.resolve()
    given.cache = (given.cache or given.folder / "ptx").resolve()
    failed = False
    for suite in table.UNSEEN if given.unseen else table.SUITES:
        if given.only and suite.name not in given.only:
            continue
        if not build.repository(suite, given.folder).is_dir():
            print_line(f"{suite.name}: no folder {build.repository(suite, given.folder)}; left out")
            continue
        row = run(suite, given)
        if row is None:
            continue
        print_line(summary(row))
        failed |= row["wrong"] > 0 or row["changed"] > 0
        record = UNSEEN_RECORD if given.unseen else RECORD
        records.put_row(given.results / record, row, "suite")
    return failed


if __name__ == "__main__":
    sys.exit(main())
