"""Runs kernels with labels of others under the hazard detector, and records every verdict.

    python validation/referee.py indigo FOLDER   # indigo/ of JohnJacobsonIII/HiRace-Artifact-SC24
    python validation/referee.py faial FOLDER    # examples/ of elliotsayes/faial
    python validation/referee.py consan FOLDER    # what suites/triton_tests.py has compiled
    python validation/referee.py cutracer FOLDER  # also
    python validation/referee.py indigo FOLDER --only neighbors_warp --jobs 2 --print

The suites are not part of this repository: fetch them to any folder. Each suite has a module
labels/SUITE.py, which knows its cases, their labels and their arguments. One record per suite goes
to benchmarks/results/referee-SUITE.json; validation/hazard_docs.py makes the tables of it. NVRTC
compiles the sources: pip install '.[nvrtc]'.

A case is a kernel with a label: "race", "bounds" (reads or writes out of bounds, and does not
race), "clean", or another that its suite explains. CUDA C++ runs twice: as the compiler's optimiser
leaves it, and unoptimised, because the optimiser removes stores that race. PTX runs as it is.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import records
import smemkern
from labels import reasons
from labels.cases import Case

SUITES = ("indigo", "faial", "consan", "cutracer")
RACES = frozenset(("RAW", "WAR", "WAW", "async-read", "async-write"))
BENIGN = frozenset(("cas-read", "proxy-init", "shuffle-outside"))
BARRIERS = frozenset(("barrier", "init-again"))
MAX_INSTRUCTIONS = 50_000_000  # per run
MAX_PLAIN_BYTES = 100_000  # of a record that is not compressed


def verdict(case: Case, form: str) -> dict[str, Any]:
    """What the detector finds in the case's runs: {kind: first message}; errors as "error".

    The runs end when a race and an access out of bounds have been found.
    """
    found: dict[str, str] = {}
    try:
        kernel = smemkern.Kernel(case.source, case.entry, (*case.options, *case.forms[form]))
    except smemkern.Error as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    for run in case.runs():
        try:
            trace = smemkern.trace(
                kernel,
                run.grid,
                run.block,
                *run.arguments,
                shared_bytes=run.shared_bytes,
                cluster=run.cluster,
                equal_writes=case.equal_writes,
                max_instructions=MAX_INSTRUCTIONS,
            )
        except (smemkern.Error, ValueError, TypeError) as error:
            found.setdefault("error", f"{run.name}: {type(error).__name__}: {error}"[:300])
            continue
        for row in (*trace.hazards, *trace.benign):
            across = row.kind in RACES and row.block != row.other_block
            if row.kind in RACES and case.across_blocks not in (None, across):
                continue
            found.setdefault(row.kind, f"{run.name}: {row.message}")
        if RACES & found.keys() and "out-of-bounds" in found:
            break
    return found


def judge(case: Case) -> dict[str, Any]:
    started = time.monotonic()
    forms = {form: verdict(case, form) for form in case.forms}
    made = {"label": case.label, **forms, "seconds": round(time.monotonic() - started, 2)}
    if any(says(found) != case.label for found in forms.values()):
        made["reason"] = reasons.of_case(case.name)
    return made


def says(found: dict[str, str]) -> str:
    """The detector's verdict in the terms of the labels."""
    if (RACES | {"proxy"}) & found.keys():
        return "race"
    if {"out-of-bounds", "misaligned"} & found.keys():
        return "bounds"
    if "deadlock" in found:
        return "deadlock"
    if BARRIERS & found.keys() or "mbarrier" in found.get("error", ""):
        return "barrier"
    return "error" if "error" in found else "hazard" if found.keys() - BENIGN else "clean"


def matrix(cases: dict[str, Any], form: str) -> dict[str, dict[str, int]]:
    """{label: {verdict: number of cases}}."""
    pairs = Counter((case["label"], says(case[form])) for case in cases.values())
    return {
        label: {said: pairs[label, said] for said in sorted({s for _, s in pairs})}
        for label in dict.fromkeys(label for label, _ in sorted(pairs))
    }


_cases: list[Case] = []


def _judge_number(number: int) -> tuple[str, dict[str, Any]]:
    return _cases[number].name, judge(_cases[number])


def judge_all(cases: list[Case], jobs: int) -> dict[str, Any]:
    """Verdicts by case. Worker processes inherit the list of cases."""
    global _cases
    _cases = cases
    done: dict[str, Any] = {}
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for name, result in pool.imap_unordered(_judge_number, range(len(cases))):
            done[name] = result
            print(f"\r{len(done)} of {len(cases)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {case.name: done[case.name] for case in cases}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--print", action="store_true", help="print the record, write no file")
    chosen = parser.parse_args()
    suite = importlib.import_module(f"labels.{chosen.suite}")
    cases = [case for case in suite.cases(chosen.folder) if chosen.only in case.name]
    if not cases:
        parser.error(f"no cases of {chosen.suite} in {chosen.folder}: is it {suite.FOLDER}?")
    judged = judge_all(cases, chosen.jobs)
    record = {
        **records.facts(),
        "suite": suite.FOLDER,
        **getattr(suite, "extra", lambda _: {})(chosen.folder),
        "matrix": {form: matrix(judged, form) for form in cases[0].forms},
        "cases": judged,
    }
    unexplained = [name for name, one in judged.items() if one.get("reason", "") is None]
    unexplained += [row["file"] for row in record.get("costs", []) if row.get("reason", "") is None]
    if unexplained:
        print("no reason in labels/reasons.py:", *unexplained, file=sys.stderr)
    if chosen.print:
        print(json.dumps(record, indent=1))
    else:
        text = json.dumps(record, indent=1) + "\n"
        small = len(text) < MAX_PLAIN_BYTES
        name = f"referee-{chosen.suite}.json{'' if small else '.xz'}"
        records.save(records.RESULTS / name, text)


if __name__ == "__main__":
    main()
