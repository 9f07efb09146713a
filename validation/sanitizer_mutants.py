"""Runs the mutants of mutation.py and smemkern.mistakes under compute-sanitizer.

    python validation/sanitizer_mutants.py --seconds 360    # on a GPU; resumes where it stopped
    python validation/sanitizer_mutants.py --device emu     # no sanitizer: tries the script itself

Each mutant and tool has its own process, because a fault destroys the CUDA context; one process per
core runs at a time. The record is written after each, so an interrupted run keeps its results.
Barriers, waits and commits come first, then the mistakes, then bounds in random order.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mutation
import records
import smemkern
import smemkern.mistakes

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SECONDS = 60  # for one process
ORDERING = ("barrier", "wait", "commit")
SAMPLED = ("bounds", "value")


def jobs() -> list[tuple[str, str]]:
    """(name, tool), the most important first; tool "" is a run without any tool."""
    every = [m for image in mutation.images(True) for m in mutation.mutants(image)]
    order = [m for m in every if m.kind in ORDERING]
    others = [m for m in every if m.kind in SAMPLED]
    random.Random(3).shuffle(others)
    mistakes = [row.name for row in smemkern.mistakes.rows()]
    values = [m for m in others if m.kind == "value"][:24]
    found = [(m.name, "racecheck") for m in order]
    found += [(name, tool) for name in mistakes for tool in TOOLS]
    found += [(m.name, "memcheck") for m in others if m.kind == "bounds"][:96]
    found += [(m.name, "synccheck") for m in order]
    found += [(m.name, "initcheck") for m in values]
    found += [(m.name, "") for m in order]
    found += [(m.name, "memcheck") for m in others if m.kind == "bounds"][96:]
    return list(dict.fromkeys(found))


def call(name: str, device: str) -> dict[str, Any]:
    """Executes the runs under a tool, and counts wrong results."""
    for row in smemkern.mistakes.rows():
        if row.name == name:
            kernel = smemkern._core.Kernel(row.ptx, row.name)
            kernel(
                *(row.grid, row.block, *row.arguments()),
                shared_bytes=row.shared_bytes,
                device=device,
            )
            return {"wrong": None}
    every = [m for image in mutation.images(True) for m in mutation.mutants(image)]
    mutant = next(m for m in every if m.name == name)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"{mutant.image.name}.ptx").write_text(mutation.mutate(mutant))
        smemkern._core.configure(images=folder, kernels=smemkern._core.config()["kernels"])
        for given, keywords in mutation.calls(mutant.image):
            result = getattr(smemkern, mutant.image.op)(*given, device=device, **keywords)
            wrong += not mutation.is_right(mutant.image, given, result, keywords)
    return {"wrong": wrong}


def watch(name: str, tool: str, device: str) -> dict[str, Any]:
    """Runs one process; returns the number and the text of the tool's reports."""
    sanitizer = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"]
    if tool == "initcheck":
        sanitizer += ["--print-limit", "3"]
    command = [*sanitizer] if tool and device == "cuda" else []
    command += [sys.executable, __file__, "--device", device, "--one", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"ended": False, "reported": None}
    except OSError as error:
        return {"ended": False, "reported": None, "said": str(error)}
    said = re.search(r"SUMMARY: (\d+) (?:errors?|hazards? displayed)", done.stdout)
    ran = re.search(r"^CALLED (.*)$", done.stdout, re.M)
    findings = re.findall(r"^=========\s+((?:Error|Warning|Invalid|Uninit|Barrier|Race).*)$",
                          done.stdout, re.M)  # fmt: skip
    return {
        "ended": True,
        "reported": int(said[1]) > 0 if said else None,
        "findings": int(said[1]) if said else None,
        "said": (findings or [done.stderr[-300:] if not ran else ""])[0],
        **(json.loads(ran[1]) if ran else {"wrong": None, "failed": True}),
    }


def run(path: Path, device: str, seconds: float, workers: int) -> dict[str, Any]:
    record: records.Record = records.load(path) if records.stored(path) else {"runs": []}
    known = {(r["name"], r["tool"]) for r in record["runs"]}
    todo = [job for job in jobs() if job not in known]
    ends = time.monotonic() + seconds
    lock = threading.Lock()

    def one(job: tuple[str, str]) -> None:
        if time.monotonic() > ends:
            return
        result = {"name": job[0], "tool": job[1], **watch(*job, device)}
        with lock:
            record["runs"].append(result)
            records.write(path, record)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, todo))
    record["left"] = len(jobs()) - len(record["runs"])
    if device == "cuda":
        said = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True)
        version = re.search(r"[Vv]ersion ([\d.]+)", said.stdout)
        record["version"] = version[1] if version else ""
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0"]
        record["device"] = subprocess.run(query, capture_output=True, text=True).stdout.strip()
    records.write(path, record)
    return record


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=360)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument(
        "--results", type=Path, default=records.RESULTS / "mutation-sanitizer.json.xz"
    )
    options = parser.parse_args()
    if options.one:
        try:
            said = call(options.one, options.device)
        except smemkern.Error as error:
            said = {"wrong": None, "failed": True, "error": str(error)[:200]}
        print("CALLED", json.dumps(said))
        return 0
    record = run(options.results, options.device, options.seconds, options.workers)
    print(len(record["runs"]), "runs,", record["left"], "left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
