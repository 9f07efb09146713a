"""Reads and writes the records in benchmarks/results; all other files use these functions.

A record is JSON. A large one is compressed: NAME.json.xz in place of NAME.json, which
`xz -dc FILE` prints. load() accepts either name and reads the file that exists.
"""

from __future__ import annotations

import argparse
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


def of_command_line(description: str | None) -> list[Record]:
    """The records that the arguments name."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", nargs="+", help="of one GPU, in benchmarks/results")
    return [load(RESULTS / f"{name}.json") for name in parser.parse_args().records]


def first_line(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout.partition("\n")[0]


def facts() -> Record:
    """Date, commit, CPU and Python of this run, without the name of the machine."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version() + ("" if gil else "t"),
    }


def stored(path: Path) -> Path | None:
    """The existing file of the record: plain or compressed; None if there is neither."""
    plain = path.with_name(path.name.removesuffix(".xz"))
    files = (plain, plain.with_name(plain.name + ".xz"))
    return next((file for file in files if file.exists()), None)


def load(path: Path) -> Record:
    file = stored(path)
    if file is None:
        raise FileNotFoundError(f"no record {path}, compressed or not")
    data = file.read_bytes()
    if file.suffix == ".xz":
        import lzma  # only here: some builds of Python lack it

        data = lzma.decompress(data)
    record: Record = json.loads(data)
    return record


def save(path: Path, text: str) -> None:
    """Writes JSON, compressed if the name ends in .xz, and deletes the record's other form."""
    data = text.encode()
    if path.suffix == ".xz":
        import lzma

        data = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
    path.parent.mkdir(parents=True, exist_ok=True)
    old = stored(path)
    path.write_bytes(data)
    if old and old != path:
        old.unlink()


def write(path: Path, record: Record) -> None:
    save(path, json.dumps(record, indent=1) + "\n")


def names(prefix: str) -> list[str]:
    """Names of the records in RESULTS that begin with `prefix`, without .json or .json.xz."""
    return sorted({file.name.split(".json")[0] for file in RESULTS.glob(f"{prefix}*.json*")})


def read(name: str) -> Record | None:
    path = RESULTS / f"{name}.json"
    return load(path) if stored(path) else None


def put_row(path: Path, row: Record, *same: str) -> None:
    """Adds a row to the file, replacing the row that is equal in the fields `same`."""
    rows = load(path)["rows"] if stored(path) else []
    kept = [other for other in rows if any(other.get(key) != row[key] for key in same)]
    write(path, {"rows": sorted([*kept, row], key=lambda r: [str(r[key]) for key in same])})
