"""A long run of a fuzz target under libFuzzer; adds the results as a row of a record.

    python validation/fuzz.py fuzz_ptx --seed 7001 --seconds 3600 [--folder FOLDER]
    python validation/fuzz.py fuzz_core --seed 8001 --executions 2000000 --workers 2

Builds the targets in FOLDER with tests/fuzz/build.py (needs clang), and starts from the inputs that
earlier runs stored in FOLDER/found-TARGET. Each worker is a process with its own seed: --seed, the
next, and so on. A report ends its worker only. The input goes to FOLDER/reports-TARGET, the log to
FOLDER. Adds a row to RESULTS/fuzz.json, replacing that of the same seed and commit. Fails if there
was a report.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import records

sys.path.insert(0, str(records.ROOT / "tests" / "fuzz"))
import build  # noqa: E402

LIMITS = {
    "fuzz_ptx": ["-max_len=3000", "-malloc_limit_mb=6000"],
    "fuzz_core": ["-max_len=600"],
    "fuzz_image": ["-max_len=10000"],
}
EXECUTED = re.compile(r"^stat::number_of_executed_units: +(\d+)", re.MULTILINE)
EDGES = re.compile(r"^#\d+\t.* cov: (\d+)", re.MULTILINE)
REPORTS = {"out_of_memory": "libFuzzer: out-of-memory", "timeouts": "libFuzzer: timeout"}


def outcome(logs: list[str]) -> records.Record:
    """Totals from the workers' logs, and how many workers ended with a report."""
    executed, edges = ([regex.findall(log) for log in logs] for regex in (EXECUTED, EDGES))
    if not all(executed):
        raise SystemExit(f"libFuzzer did not run:\n{logs[0][-3000:]}")
    ends = ["".join(re.findall(r"^SUMMARY: (.*)", log, re.MULTILINE)) for log in logs]
    counts = {kind: sum(said in end for end in ends) for kind, said in REPORTS.items()}
    return {
        "executions": sum(int(found[-1]) for found in executed),
        "edges": max(int(n) for found in edges for n in found),
        **counts,
        "crashes": sum(map(bool, ends)) - sum(counts.values()),
    }


def commands(program: Path, folder: Path, options: argparse.Namespace) -> list[list[str]]:
    """The command line of each worker."""
    found, reports = (folder / f"{what}-{options.target}" for what in ("found", "reports"))
    found.mkdir(exist_ok=True)
    reports.mkdir(exist_ok=True)
    begin = [folder / build.SEEDS[options.target]] if options.target in build.SEEDS else []
    given = ["-timeout=25", "-rss_limit_mb=3000", f"-artifact_prefix={reports}/"]
    given += [*LIMITS[options.target], "-entropic=0", "-print_final_stats=1"]
    if options.seconds:
        given.append(f"-max_total_time={options.seconds}")
    else:
        given.append(f"-runs={-(-options.executions // options.workers)}")
    return [
        [*map(str, (program, f"-seed={options.seed + k}", *given, found, *begin))]
        for k in range(options.workers)
    ]


def run(commands: list[list[str]], logs: list[Path]) -> float:
    """Runs all at once; returns the seconds until the last one ended."""
    started, processes = time.monotonic(), []
    try:
        for command, log in zip(commands, logs, strict=True):
            with log.open("w") as out:
                processes.append(
                    subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=log.parent)
                )
        for process in processes:
            process.wait()
    finally:
        for process in processes:
            process.kill()
    return time.monotonic() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=build.TARGETS)
    parser.add_argument("--seed", type=int, required=True)
    until = parser.add_mutually_exclusive_group(required=True)
    until.add_argument("--seconds", type=int)
    until.add_argument("--executions", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="kept; else a temporary one")
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        [program] = build.build(folder, replay=False, only=[options.target])
        logs = [folder / f"{options.target}-{options.seed + k}.log" for k in range(options.workers)]
        seconds = run(commands(program, folder, options), logs)
        came = outcome([log.read_text(errors="replace") for log in logs])
    row = {
        "target": options.target,
        "seed": options.seed,
        **came,
        "seconds": round(seconds),
        "workers": options.workers,
        "compiler": records.first_line("clang", "--version"),
        **records.facts(),
    }
    records.put_row(options.results / "fuzz.json", row, "target", "seed", "commit")
    print(", ".join(f"{key} {value}" for key, value in row.items()))
    return 1 if came["crashes"] or came["timeouts"] or came["out_of_memory"] else 0


if __name__ == "__main__":
    sys.exit(main())
