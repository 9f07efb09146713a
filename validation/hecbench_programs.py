"""Runs programs of HeCBench under `smemkern run`, and writes which pass and what is found.

    python validation/hecbench_programs.py CHECKOUT [--seed N] [--minutes 20] [--limit 20] [--write]

CHECKOUT is a folder of https://github.com/ORNL/HeCBench. The programs are drawn by the seed, after
those with races that its issues describe (KNOWN). Each is compiled by nvcc as its Makefile says,
and run with smaller numbers than those of `make run`. Its own output says whether it passed. The
first two launches of each kernel are examined. Takes nvcc.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from public_programs import BAD, GOOD, NEEDS, NO_DATA, Program, read_makefile

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "hecbench-programs.json"
OPTIONS = ("-w", "-O3", "-g", "-lineinfo", "-std=c++17", "-arch=sm_80")
ISSUES = "https://github.com/ORNL/HeCBench/issues/"


class Known:
    """A race that an issue describes: arguments with which it shows, and a change of the source."""

    def __init__(
        self, issue: int, kernel: str, arguments: str, volatile: str = "", source: str = ""
    ) -> None:
        self.issue = issue
        self.kernel = kernel
        self.arguments = arguments.split()
        self.sources = source.split()  # which its Makefile compiles by a rule of their own
        self.volatile = volatile  # a pattern of declarations, as the issue changes them


KNOWN = {
    "dxtc2-cuda": Known(
        133,
        "compress",
        "../dxtc2-sycl/data/lena_std.ppm ../dxtc2-sycl/data/lena_ref.dds 1",
        source="../boxfilter-sycl/shrUtils.cpp",
    ),
    "surfel-cuda": Known(253, "surfel_render", "1024 64 64 1"),
    "marchingCubes-cuda": Known(
        254,
        "generatingTriangles",
        "1",
        r"__shared__ (?=unsigned int sums(Vertices|Triangles)\[32\])",
    ),
    "morphology-cuda": Known(255, "vhgw_", "64 64 128 128 1"),
    "sosfil-cuda": Known(256, "sosfilt", "1"),
}


def compile_program(program: Program, out: Path, include: Path) -> str:
    """The compiler's complaint; empty: it compiled."""
    command = ["nvcc", *OPTIONS, *program.options, f"-I{include}", *program.sources, "-o", out]
    try:
        done = subprocess.run(
            list(map(str, command)),
            cwd=program.folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
    except subprocess.TimeoutExpired:
        return "the compiler took too long"
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
    return re.sub(r"/\S+/(?=[^/\s]+)", "", (lines or ["it does not compile"])[0])[:160]


def include_options(makefile: str) -> list[str]:
    """-D and -I, with the Makefile's own variables."""
    for name, value in re.findall(r"^(\w+)\s*:?=\s*(\S+)$", makefile, re.M):
        makefile = makefile.replace(f"$({name})", value)
    return re.findall(r"-D\w+(?:=\w+)?|-I[\w./-]+", makefile)


def run_program(program: Program, out: Path, limit: float) -> dict[str, object]:
    words = [sys.executable, "-m", "smemkern", "run", "--json", "--launches", "2"]
    started = subprocess.Popen(
        [*words, str(out), *program.arguments],
        cwd=program.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    slow = False
    try:
        raw = started.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        slow = True
        started.terminate()  # the report of what it did until now follows
        try:
            raw = started.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            started.kill()
            raw = started.communicate()
    printed, told = (text.decode(errors="replace") for text in raw)
    try:
        found = json.loads(printed)
    except ValueError:
        return {"result": "too slow" if slow else "fail", "why": told.strip().splitlines()[-1:]}
    return {
        **verdict(found, told, slow),
        "arguments": program.arguments,
        "kernels": len(found["kernels"]),
        "launches": sum(kernel["launches"] for kernel in found["kernels"]),
        "hazards": dict(
            Counter(row["kind"] for kernel in found["kernels"] for row in kernel["hazards"])
        ),
        "racy": sorted({one["kernel"] for one in found["kernels"] if is_racy(one)}),
        "misuses": dict(Counter(one["kind"] for one in found["misuses"])),
    }


def is_racy(kernel: dict[str, object]) -> bool:
    return any(row["kind"] in ("RAW", "WAR", "WAW") for row in kernel["hazards"])


def verdict(found: dict[str, object], told: str, slow: bool) -> dict[str, object]:
    whys = [one["call"] for one in found["unsupported"]]
    whys += [one["message"][:160] for one in found["misuses"] if one["kind"] == "module"]
    whys += [error[:160] for kernel in found["kernels"] for error in kernel["errors"]]
    if slow:
        return {"result": "too slow"}
    if NO_DATA.search(told):
        return {"result": "left out", "why": "it needs a data file"}
    if found["status"] != 0 and not found["started"]:
        return {"result": "left out", "why": f"status {found['status']} before it calls CUDA"}
    if whys or found["status"] != 0 or BAD.search(told):
        lines = [line[:120] for line in told.splitlines() if BAD.search(line)]
        return {"result": "fail", "why": (whys or lines or [f"status {found['status']}"])[:3]}
    return {"result": "pass" if GOOD.search(told) else "ends"}


def examine(folder: Path, root: Path, limit: float, known: Known | None) -> dict[str, object]:
    main = folder / "main.cu"
    if needed := NEEDS.search(main.read_text(errors="replace")):
        return {"result": "left out", "why": f"it needs {needed[0]}"}
    program = read_makefile(main, root)
    program.options[:] = include_options((folder / "Makefile").read_text())
    if known:
        program.arguments[:] = known.arguments
        program.sources.extend(known.sources)
    before = main.read_text(errors="replace")
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, folder.name)
        try:
            if known and known.volatile:
                main.write_text(re.sub(known.volatile, "__shared__ volatile ", before))
            complaint = compile_program(program, out, root / "src" / "include")
        finally:
            main.write_text(before)
        if complaint:
            return {"result": "left out", "why": f"nvcc: {complaint}"}
        row = run_program(program, out, limit)
    if known:
        racy = row.get("racy", [])
        row["issue"] = f"{ISSUES}{known.issue}"
        row["reported"] = any(known.kernel in name for name in racy)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="", help="programs whose name contains this text")
    parser.add_argument("--minutes", type=float, default=20, help="begin no program after that")
    parser.add_argument("--limit", type=float, default=20, help="seconds per program")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    chosen = parser.parse_args()
    root, started, rows = chosen.checkout.resolve(), time.monotonic(), {}
    names = sorted(path.parent.name for path in root.glob("src/*-cuda/main.cu"))
    random.Random(chosen.seed).shuffle(names)
    for name in [*KNOWN, *(one for one in names if one not in KNOWN)]:
        if chosen.only not in name or time.monotonic() - started > 60 * chosen.minutes:
            continue
        known = KNOWN.get(name)
        limit = chosen.limit * (5 if known else 1)
        rows[name] = examine(root / "src" / name, root, limit, known)
        print(f"{name}: {rows[name]}", flush=True)
        if chosen.write:
            counts = Counter(str(row["result"]) for row in rows.values())
            document = {"seed": chosen.seed, "limit": chosen.limit, "of": len(names)}
            document |= {"counts": counts, "programs": rows}
            RESULTS.write_text(json.dumps(document, indent=1) + "\n")
    print(dict(Counter(str(row["result"]) for row in rows.values())))


if __name__ == "__main__":
    main()
