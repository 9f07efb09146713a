"""What records of runs share: when, of what and where they were made."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
Record = dict[str, Any]


def cpu_name() -> str:
    text = Path("/proc/cpuinfo").read_text()
    found = re.search(r"model name\s*: (.*)", text) or re.search(r"CPU part\s*: (.*)", text)
    return found[1].strip() if found else "unknown CPU"


def commit() -> str:
    if given := os.environ.get("SMEMKERN_COMMIT"):
        return given
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def first_line(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout.partition("\n")[0]


def facts() -> Record:
    """Of this run, without a name of the machine."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version() + ("" if gil else "t"),
    }


def write(path: Path, record: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def read(name: str) -> Record | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def put_row(path: Path, row: Record, *same: str) -> None:
    """Adds the row to the file's, in place of the one that is equal in these fields."""
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    kept = [other for other in rows if any(other.get(key) != row[key] for key in same)]
    write(path, {"rows": sorted([*kept, row], key=lambda r: [str(r[key]) for key in same])})
