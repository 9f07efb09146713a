"""Runs whole CUDA programs that others wrote, with their own checks, on the emulator.

    git clone https://github.com/ORNL/HeCBench FOLDER/HeCBench
    python validation/public_programs.py FOLDER [--only HeCBench] [--minutes 60]

The sample is that of suites/table.py. nvcc compiles each program to host code and PTX. Instead of
libcudart it is linked with host/cudart.cpp, which holds device memory and launches kernels through
suites/host_launch.py. Programs that need a library (cuBLAS, MPI, ...) are left out. Numbers among
a program's usual arguments are made smaller, since the emulator is slower than a GPU. A program
that says that its results are wrong, or that the emulator refuses, fails this check. The rows go to
RESULTS/public-programs.json.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import os
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import records
from suites import build, table

HERE = Path(__file__).resolve().parent
RECORD = "public-programs.json"
NEEDS = re.compile(
    r"cublas|cusparse|cufft|cusolver|cudnn|mpi\.h|nccl|curand\.h|omp\.h|TextureObject"
)
GOOD = re.compile(r"\bPASS(?:ED)?\b|SUCCESS|\bcorrect\b|match!|\bOK\b", re.I)
BAD = re.compile(r"FAIL|mismatch|incorrect|wrong|\bnot (?:equal|match)", re.I)
NO_DATA = re.compile(
    r"failed to read|(?:can ?not|opening|open) (?:input )?(?:the )?file|Bad file", re.I
)
REPORTED = re.compile(r"EMULATOR: (.*)")
OPTIONS = ("-w", "-O1", "-std=c++17", "--expt-relaxed-constexpr", "--extended-lambda")
TARGET = ("-gencode", "arch=compute_90a,code=compute_90a", "-cudart", "none")


@dataclasses.dataclass(frozen=True)
class Program:
    """A folder with a Makefile: its sources, options, and the arguments of `make run`."""

    name: str
    folder: Path
    sources: list[str]
    options: list[str]
    arguments: list[str]


def read_makefile(main: Path, root: Path) -> Program:
    makefile = main.parent / "Makefile"
    text = makefile.read_text() if makefile.exists() else ""
    recipe = re.search(r"^run:.*\n((?:\t.*\n?)+)", text, re.M)
    lines = [line for line in (recipe[1] if recipe else "").splitlines() if "program" in line]
    arguments = re.sub(r".*?\$\(program\)", "", lines[0]).split() if lines else []
    listed = re.search(r"^source\s*:?=\s*((?:.*\\\n)*.*)", text, re.M)
    sources = listed[1].replace("\\", " ").split() if listed else [main.name]
    options = re.findall(r"-D\w+(?:=\w+)?|-I[\w./]+", text)
    name = str(main.parent.relative_to(root))
    return Program(name, main.parent, sources, options, smaller(arguments))


def smaller(arguments: list[str]) -> list[str]:
    """Multiples of ten up to 10000 are repetitions and become 1; sizes a sixteenth or less."""

    def small(value: int) -> int:
        if value % 10 == 0 and value <= 10000:
            return 1
        if value >= 100000:
            return max(1024, 1 << (value.bit_length() - 9))
        return max(64, value // 16) if value >= 512 else value

    return [str(small(int(one))) if one.isdigit() else one for one in arguments]


def runtime(folder: Path) -> Path:
    """Compiles host/cudart.cpp."""
    out = folder / "cudart.o"
    python = sysconfig.get_config_var("INCLUDEPY")
    command = ["nvcc", "-O1", "-std=c++17", "-w", f"-I{python}", "-c"]
    subprocess.run([*command, str(HERE / "host" / "cudart.cpp"), "-o", str(out)], check=True)
    return out


def compile_program(program: Program, folder: Path, cudart: Path) -> str:
    """Leaves `main` and its PTX in the folder; returns the first error."""
    library = sysconfig.get_config_var("LIBDIR")
    version = sysconfig.get_config_var("LDVERSION")
    link = [str(cudart), f"-L{library}", f"-lpython{version}"]
    link += [f"-Xlinker=-rpath={library}", "-Xlinker=--export-dynamic"]
    keep = ["--keep", "--keep-dir", str(folder), "-o", str(folder / "main")]
    command = ["nvcc", *OPTIONS, *TARGET, *program.options, *program.sources, *keep, *link]
    try:
        done = subprocess.run(
            command, cwd=program.folder, capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired:
        return "the compiler took too long"
    if done.returncode == 0:
        return ""
    missing = re.search(r"undefined reference to `(\w+)", done.stderr)
    return f"needs {missing[1]}" if missing else build.reason(done.stderr + done.stdout)


def run(program: Program, folder: Path, seconds: float) -> str:
    """`passed`, `no verdict`, `too large`, `not built: ...`, or what went wrong."""
    paths = [HERE.parent, HERE, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    given = os.environ | {
        "HOST_PTX": ":".join(map(str, sorted(folder.glob("*.ptx")))),
        "HOST_SECONDS": str(seconds),
        "PYTHONPATH": ":".join(map(str, paths)),
        "PYTHONHOME": sys.base_prefix,
    }
    command = [str(folder / "main"), *program.arguments]
    try:
        done = subprocess.run(
            command, cwd=program.folder, env=given, capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return "too large"
    said = (done.stdout + done.stderr).decode(errors="replace")
    if found := REPORTED.search(said):
        large = "time limit" in found[1] or "no memory left" in found[1]
        return "too large" if large else found[1][:300]
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}"
    if NO_DATA.search(said):
        return "not built: needs a data file"
    if BAD.search(said):
        return "its check fails"
    return "passed" if GOOD.search(said) else "no verdict"


def one(main: Path, root: Path, suite: table.Suite, cudart: Path, seconds: float) -> str:
    if needed := NEEDS.search(main.read_text(errors="replace")):
        return f"not built: needs {needed[0]}"
    program = read_makefile(main, root)
    program.options.extend(f"-I{root / folder}" for folder in suite.include)
    with tempfile.TemporaryDirectory() as folder:
        error = compile_program(program, Path(folder), cudart)
        return f"not built: {error}" if error else run(program, Path(folder), seconds)


def examine(suite: table.Suite, given: argparse.Namespace) -> records.Record:
    """In a shuffled order, so that a part that fits in the time is a sample, too."""
    root = build.repository(suite, given.folder)
    until = time.monotonic() + 60 * given.minutes
    files = build.files(suite, root)
    random.Random(suite.seed).shuffle(files)
    results: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        cudart = runtime(Path(folder))
        for main in files:
            if time.monotonic() > until:
                break
            name = str(main.parent.relative_to(root))
            results[name] = one(main, root, suite, cudart, given.seconds)
            print(f"{name}: {results[name]}", flush=True)
    return row_of(suite, root, results)


def row_of(suite: table.Suite, root: Path, results: dict[str, str]) -> records.Record:
    kinds = ("passed", "no verdict", "too large")
    counts = collections.Counter(
        "not built" if r.startswith("not built") else r if r in kinds else "failed"
        for r in results.values()
    )
    return {
        "suite": suite.name,
        "repository": suite.repository,
        "repository_commit": build.commit(root),
        **{kind: counts[kind] for kind in (*kinds, "not built", "failed")},
        "programs": results,
        **records.facts(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the repositories are in FOLDER/NAME")
    parser.add_argument("--only", action="append", default=None, help="HeCBench if not given")
    parser.add_argument("--minutes", type=float, default=60, help="for each suite")
    parser.add_argument("--seconds", type=float, default=30, help="for one program")
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    given = parser.parse_args()
    given.folder = given.folder.resolve()
    failed = False
    for suite in table.UNSEEN:
        if suite.name in (given.only or ["HeCBench"]):
            row = examine(suite, given)
            failed |= row["failed"] > 0
            records.put_row(given.results / RECORD, row, "suite")
    return failed


if __name__ == "__main__":
    sys.exit(main())
