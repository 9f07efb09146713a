"""A long run of a fuzz target under libFuzzer, and what came of it as a row of a record.

    python benchmarks/fuzz.py fuzz_ptx --seed 7001 --seconds 3600 [--folder FOLDER]
    python benchmarks/fuzz.py fuzz_core --seed 8001 --executions 2000000 --workers 2

Builds the targets in FOLDER by tests/fuzz/build.py (needs clang), and begins with the inputs that
FOLDER/found-TARGET has of earlier runs. What ends a process is kept in FOLDER/reports-TARGET, with
the log beside it; the run goes on. Adds a row to RESULTS/fuzz.json: another run of the same seed
and commit takes its place. Fails if there was a report.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import records

sys.path.insert(0, str(records.ROOT / "tests" / "fuzz"))
import build  # noqa: E402

LIMITS = {"fuzz_ptx": ["-max_len=3000", "-malloc_limit_mb=6000"], "fuzz_core": ["-max_len=600"]}
PROGRESS = re.compile(
    r"^#(\d+): cov: (\d+) .*corp: (\d+) .*oom/timeout/crash: (\d+)/(\d+)/(\d+)", re.MULTILINE
)


def outcome(log: str) -> records.Record:
    """From the last line in which libFuzzer's parent process sums up its workers."""
    lines = PROGRESS.findall(log)
    if not lines:
        raise SystemExit(f"libFuzzer did not run:\n{log[-3000:]}")
    names = ("executions", "edges", "inputs", "out_of_memory", "timeouts", "crashes")
    return dict(zip(names, map(int, lines[-1]), strict=True))


def command_of(program: Path, folder: Path, options: argparse.Namespace) -> list[str]:
    found, reports = (folder / f"{what}-{options.target}" for what in ("found", "reports"))
    found.mkdir(exist_ok=True)
    reports.mkdir(exist_ok=True)
    begin = [folder / "ptx"] if options.target == "fuzz_ptx" else []
    given = [
        *(f"-fork={options.workers}", f"-seed={options.seed}", "-timeout=25"),
        *("-rss_limit_mb=3000", f"-artifact_prefix={reports}/", *LIMITS[options.target]),
        *("-ignore_crashes=1", "-ignore_timeouts=1", "-ignore_ooms=1"),
    ]
    if options.seconds:
        given.append(f"-max_total_time={options.seconds}")
    return [*map(str, (program, *given, found, *begin))]


def run(command: list[str], log: Path, executions: int | None) -> float:
    """Until libFuzzer ends, or has run so many executions: the seconds that it took."""
    started = time.monotonic()
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=log.parent)
        try:
            while process.poll() is None:
                time.sleep(1)
                lines = PROGRESS.findall(log.read_text(errors="replace")) if executions else []
                if lines and int(lines[-1][0]) >= executions:
                    process.terminate()
                    process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
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
        log = folder / f"{options.target}-{options.seed}.log"
        seconds = run(command_of(program, folder, options), log, options.executions)
        came = outcome(log.read_text(errors="replace"))
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
