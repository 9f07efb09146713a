"""The same programs on the emulator and on a GPU: do they print the same?

    python -m validation.programs.on_gpu prepare --cuda-samples CHECKOUT --hecbench CHECKOUT FOLDER
    python3 FOLDER/on_gpu.py run FOLDER RECORD.json         on a machine with a GPU
    python -m validation.programs.on_gpu compare FOLDER RECORD.json

`prepare` draws programs that pass under `smemkern run`, and makes FOLDER: the programs, the files
that they open, what they print under `smemkern run`, and this file, which takes no package. It
takes nvcc, make and strace.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

Row = dict[str, Any]

SEED = 27
PROGRAMS, BYTES = 60, 40 << 20
GPU_LIMIT = 60  # seconds of one program on the GPU
MAX_TEXT = 100_000  # bytes of its output

# ---- on a machine with a GPU ----


def run(folder: Path, record: Path) -> None:
    """Runs all programs of the folder. The record is written after each of them."""
    rows: dict[str, Row] = {}
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    asked = shutil.which(query[0]) and subprocess.run(query, capture_output=True, text=True)
    gpu = asked.stdout.strip() if asked else "not known"
    for row in json.loads((folder / "programs.json").read_text()):
        start = time.monotonic()
        rows[row["name"]] = executed(folder / row["folder"], row["command"])
        rows[row["name"]]["seconds"] = round(time.monotonic() - start, 1)
        record.write_text(json.dumps({"gpu": gpu, "programs": rows}, indent=1) + "\n")
        print(f"{row['name']}: {rows[row['name']]['status']}", flush=True)


def executed(folder: Path, command: list[str]) -> Row:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GPU_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": None, "text": "", "errors": f"not done after {GPU_LIMIT} s"}
    text = done.stdout[:MAX_TEXT].decode(errors="replace")
    return {"status": done.returncode, "text": text, "errors": done.stderr[-500:].decode("latin-1")}


# ---- comparison ----

# Lines of what differs from one run or device to the next: times and rates, the device, addresses.
MASKED = re.compile(
    r"\btimes?\b|timer|seconds?\b|\bsec\b|\b[mun]?s\b|\d[mun]?s\b|\bmsec\b|per second|/s\b|FLOPS?\b"
    r"|bandwidth|throughput|speed|elapsed|latency|\bfps\b|cycles|clock|memory transfer|Mpixel"
    r"|device|GPU|Hopper|H[12]00|compute capability|multiprocessor|driver|0x[0-9a-f]+",
    re.I,
)
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan\b|inf\b)", re.I)
TOLERANCE = 1e-4  # of a number to its magnitude, where a program prints what it has rounded


def close(a: str, b: str) -> bool:
    x, y = float(a), float(b)
    return x == y or (x != x and y != y) or abs(x - y) <= TOLERANCE * max(abs(x), abs(y))


def same_lines(ours: list[str], theirs: list[str]) -> bool:
    """Equal but for numbers that are close."""
    return len(ours) == len(theirs) and all(
        NUMBER.sub("#", a) == NUMBER.sub("#", b)
        and all(map(close, NUMBER.findall(a), NUMBER.findall(b)))
        for a, b in zip(ours, theirs, strict=True)
    )


def judged(ours: Row, theirs: Row) -> Row:
    kept = [
        [line.rstrip() for line in one["text"].splitlines() if not MASKED.search(line)]
        for one in (ours, theirs)
    ]
    if ours["status"] != theirs["status"]:
        why = f"status {theirs['status']} on the GPU, {ours['status']} on the emulator"
        return {"result": "another status", "why": why, "errors": theirs["errors"][-200:]}
    if ours["text"] == theirs["text"]:
        return {"result": "same bytes"}
    if kept[0] == kept[1]:
        return {"result": "same but for times and the device"}
    if same_lines(*kept):
        return {"result": "numbers within the tolerance"}
    pairs = [pair for pair in zip(*kept, strict=False) if pair[0] != pair[1]]
    return {"result": "another text", "first": pairs[:2], "lines": [len(one) for one in kept]}


def compare(folder: Path, record: Path) -> Row:
    gpu = json.loads(record.read_text())
    rows = {
        row["name"]: judged(row, gpu["programs"][row["name"]])
        for row in json.loads((folder / "programs.json").read_text())
        if row["name"] in gpu["programs"]
    }
    counts = Counter(row["result"] for row in rows.values())
    return {"gpu": gpu["gpu"], "seed": SEED, "counts": dict(counts), "programs": rows}


# ---- preparation ----


def emulated(folder: Path, command: list[str], options: list[str]) -> Row:
    """What a program prints and returns under `smemkern run`, without observers."""
    from .running import limited

    with tempfile.NamedTemporaryFile() as out:
        run = [sys.executable, "-m", "smemkern", "run", *options]
        run += ["--kernel", "^$", "--launches", "1"]
        words = ["sh", "-c", f'exec "$@" > {out.name}', "sh", *command]
        status, _, errors = limited([*run, *words], 8 * GPU_LIMIT, folder, cpu=GPU_LIMIT)
        text = Path(out.name).read_bytes()[:MAX_TEXT].decode(errors="replace")
    return {"status": status, "text": text, "errors": errors[-500:]}


def opened(folder: Path, command: list[str], *below: Path) -> list[Path]:
    """The files below some folders that the program reads."""
    from .running import limited

    with tempfile.NamedTemporaryFile() as log:
        traced = ["strace", "-f", "-y", "-e", "trace=open,openat", "-o", log.name]
        run = [sys.executable, "-m", "smemkern", "run", "--kernel", "^$"]
        limited([*run, *traced, *command], 8 * GPU_LIMIT, folder, cpu=GPU_LIMIT)
        text = Path(log.name).read_text(errors="replace")
    names = re.findall(r"O_RDONLY.* = \d+<([^>]+)>", text)
    files = {Path(name) for name in names}
    return sorted(file for file in files if file.is_file() and set(below) & set(file.parents))


def needs_only_the_system(program: Path) -> bool:
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    known = r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|cuda)\.so|ld-linux|linux-vdso"
    return all(re.search(known, line) for line in told.splitlines())


def prepare(chosen: argparse.Namespace) -> None:
    """One program after the other, until there are enough."""
    from . import cuda_samples, hecbench
    from .__main__ import RESULTS

    hecbench.FLAGS = "-w"
    rows: list[Row] = []
    candidates = []
    for suite, module in (("cuda-samples", cuda_samples), ("hecbench", hecbench)):
        checkout = getattr(chosen, suite.replace("-", "_")).resolve()
        record = json.loads((RESULTS / f"programs-{suite}.json").read_text())["programs"]
        passing = {name for name, row in record.items() if row["result"] == "pass"}
        found = {program.name: program for program in module.programs(checkout, passing)}
        candidates += [(suite, checkout, found[name]) for name in sorted(passing & set(found))]
    random.Random(chosen.seed).shuffle(candidates)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(__file__, chosen.folder)
    (chosen.folder / "run.sh").write_text(RUN)
    for suite, checkout, program in candidates:
        size = sum(file.stat().st_size for file in chosen.folder.rglob("*") if file.is_file())
        if len(rows) == chosen.programs or size > BYTES:
            break
        with tempfile.TemporaryDirectory() as scratch:
            row = prepared(suite, checkout, program, Path(scratch), chosen.folder, BYTES - size)
        print(f"{program.name}: {row['status'] if row else 'left out'}", flush=True)
        if row:
            rows.append(row)
            (chosen.folder / "programs.json").write_text(json.dumps(rows, indent=1) + "\n")


RUN = """#!/bin/sh
# Runs the programs of this folder on the GPU; their record is $OUT/programs-gpu.json.
folder=$(cd "$(dirname "$0")" && pwd)
exec python3 "$folder/on_gpu.py" run "$folder" "${OUT:-.}/programs-gpu.json"
"""


def prepared(
    suite: str, checkout: Path, program: Any, scratch: Path, to: Path, room: int
) -> Row | None:
    """Builds a program, runs it, and copies what it needs to run elsewhere. None: not possible."""
    if program.left_out or program.build(scratch):
        return None
    folder = program.folder or scratch
    binary = (folder / program.command[0].replace("{out}", str(scratch))).resolve()
    given = [f"./{binary.name}", *program.command[1:]]  # some programs print their name
    if not binary.is_file() or not needs_only_the_system(binary):
        return None
    subprocess.run(["strip", binary], check=True)
    try:
        row = emulated(folder, given, program.options)
        below = (program.folder.parent,) if program.folder else (checkout, scratch.resolve())
        files = [file for file in opened(folder, given, *below) if file != binary]
    except subprocess.TimeoutExpired:
        return None
    if sum(file.stat().st_size for file in (binary, *files)) > min(room, BYTES // 8):
        return None
    # A sample runs in a folder with links to its files; HeCBench's in their folder of the suite.
    source = program.folder.parent if program.folder else checkout / "Samples" / program.name
    place = to / suite / (program.name if program.folder is None else "")
    for file in files:
        base = next((one for one in (scratch, source) if file.is_relative_to(one)), None)
        if base is None:
            return None
        (place / file.relative_to(base)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place / file.relative_to(base))
    inside = place if program.folder is None else place / program.folder.name
    inside.mkdir(parents=True, exist_ok=True)
    shutil.copy(binary, inside / binary.name)
    return {
        "name": f"{suite}/{program.name}",
        "folder": str(inside.relative_to(to)),
        "command": given,
        **row,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("prepare")
    making.add_argument("--cuda-samples", type=Path, required=True)
    making.add_argument("--hecbench", type=Path, required=True)
    making.add_argument("--seed", type=int, default=SEED)
    making.add_argument("--programs", type=int, default=PROGRAMS)
    making.add_argument("folder", type=Path)
    for name in ("run", "compare"):
        one = commands.add_parser(name)
        one.add_argument("folder", type=Path)
        one.add_argument("record", type=Path)
    chosen = parser.parse_args()
    if chosen.command == "prepare":
        prepare(chosen)
    elif chosen.command == "run":
        run(chosen.folder.resolve(), chosen.record)
    else:
        print(json.dumps(compare(chosen.folder, chosen.record), indent=1))


if __name__ == "__main__":
    main()
