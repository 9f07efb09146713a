"""Compiles and runs the programs of one suite, and records what came of each.

    python -m validation.programs SUITE --source CHECKOUT [--only TEXT] [--again RESULT] [--resume]

The record is benchmarks/results/programs-SUITE.json. It is written after each program, and keeps
the rows of programs that are not run again. Takes nvcc and make.
"""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from . import SUITES, running

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


def commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def write(file: Path, suite: str, checkout: Path, of: int, rows: dict[str, running.Row]) -> None:
    document = {
        "suite": suite,
        "repository": SUITES[suite],
        "repository_commit": commit(checkout),
        "of": of,
        "counts": dict(sorted(Counter(str(row["result"]) for row in rows.values()).items())),
        "programs": dict(sorted(rows.items())),
    }
    part = file.with_suffix(".part")
    part.write_text(json.dumps(document, indent=1) + "\n")
    part.replace(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--source", type=Path, required=True, help="a checkout of the suite")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="programs whose name contains one of these texts"
    )
    parser.add_argument("--again", help="only those that have this result in the record")
    parser.add_argument("--resume", action="store_true", help="only those not in the record")
    parser.add_argument("--limit", type=float, default=30, help="seconds of the processor per run")
    parser.add_argument("--unexamined", action="store_true", help="run no kernel with observers")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no program after that")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    until = time.monotonic() + 60 * chosen.minutes
    checkout = chosen.source.resolve()
    file = chosen.results / f"programs-{chosen.suite.replace('_', '-')}.json"
    rows = json.loads(file.read_text())["programs"] if file.is_file() else {}
    found = importlib.import_module(f".{chosen.suite}", __package__).programs(checkout)
    for program in found:
        result = rows.get(program.name, {}).get("result")
        wanted = any(text in program.name for text in chosen.only)
        if not wanted or (chosen.resume and result):
            continue
        if (chosen.again and result != chosen.again) or time.monotonic() > until:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            rows[program.name] = running.examine(
                program, Path(scratch), chosen.limit, not chosen.unexamined
            )
        print(f"{program.name}: {rows[program.name]}", flush=True)
        write(file, chosen.suite, checkout, len(found), rows)


if __name__ == "__main__":
    main()
