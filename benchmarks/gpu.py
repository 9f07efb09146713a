"""Runs all measurements on a GPU: build, tests, sanitizers, counters, timings.

    python benchmarks/gpu.py                       # all steps, in this order
    python benchmarks/gpu.py build tests           # some of them
    python benchmarks/gpu.py gemm transpose --commit abc1234

Each step replaces its part of benchmarks/results/<gpu>.json, from which benchmarks/tables.py writes
the README's tables. `exact` also writes its own file (validation/exact.py). Needs nvcc, PyTorch
(for cuBLAS, and as a peer) and, for the sanitizers and `exact`, compute-sanitizer and ncu. `build`
installs into a separate folder (--site) without network access. Other steps take any such folder,
also one that was built elsewhere for this Python and this GPU.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import records

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "validation"))
STEPS = (
    "build",
    "tests",
    "sanitizers",
    "exact",
    "packing",
    "gemv",
    "columns",
    "tune",
    "gemm",
    "transpose",
    "sweep",
    "overhead",
)
STEPS = (*STEPS, "host", "portable", "limits")
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
TF32_BITS = 10  # bits of precision of each product

Record = dict[str, Any]


def output_of(*command: str | Path) -> str:
    """The output of a program; "" if it is missing or fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


# ---- machine and version of a measurement


def nvidia_smi(*fields: str) -> list[str]:
    text = output_of(
        "nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", "--id=0"
    )
    return [part.strip() for part in text.split(",")] if text else [""] * len(fields)


def facts(commit: str | None) -> Record:
    fields = {
        "gpu": "name",
        "driver": "driver_version",
        "sm_clock_mhz": "clocks.max.sm",
        "memory_clock_mhz": "clocks.max.mem",
        "power_limit_w": "power.limit",
    }
    record: Record = dict(zip(fields, nvidia_smi(*fields.values()), strict=True))
    if not record["gpu"]:
        raise SystemExit("expected a GPU, but nvidia-smi shows none")
    release = re.search(r"release ([\d.]+)", output_of(os.environ.get("NVCC", "nvcc"), "--version"))
    changed = "+" if output_of("git", "status", "--porcelain", "--untracked-files=no") else ""
    return {
        **record,
        "toolkit": release[1] if release else "",
        "date": datetime.date.today().isoformat(),
        "commit": commit or output_of("git", "rev-parse", "--short=12", "HEAD") + changed,
        "python": ".".join(map(str, sys.version_info[:3])),
    }


class Results:
    """The JSON file of one GPU; a step replaces its own part of it."""

    def __init__(self, folder: Path, commit: str | None) -> None:
        self.facts = facts(commit)
        slug = re.sub(r"[^a-z0-9]+", "-", self.facts["gpu"].lower()).strip("-")
        self.path = folder / f"{slug}.json"
        self.all: Record = records.load(self.path) if records.stored(self.path) else {}

    def add(self, step: str, part: Record) -> None:
        # Steps may be run on different days, so each part has its own facts.
        records.write(self.path, {**self.all, step: {**self.facts, **part}})
        self.all = records.load(self.path)  # as tables.py reads it: with lists for tuples


# ---- build, tests, sanitizers


def build(site: Path) -> Record:
    started = time.perf_counter()
    command = [sys.executable, "-m", "pip", "install", "-v", "--no-build-isolation", "--no-deps"]
    done = subprocess.run(
        [*command, "--upgrade", "--target", site, "."],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"the build failed:\n{done.stdout[-8000:]}")
    images = re.search(r"smemkern: (\d+ kernel images.*)", done.stdout)
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "images": images[1] if images else "",
        "cores": len(os.sched_getaffinity(0)),
    }


def tests(arguments: str) -> Record:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments.split(), "-rfE"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    print(done.stdout[-6000:])
    summary = done.stdout.rstrip().splitlines()[-1]
    wrong = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    counts = {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", summary)}
    keep = ("passed", "failed", "errors", "error", "skipped", "xfailed", "deselected")
    return {
        "command": "pytest " + arguments,
        "exit_status": done.returncode,
        **{word: counts[word] for word in keep if word in counts},
        **({"wrong": wrong} if wrong else {}),
    }


def sanitize(tool: str) -> tuple[Record, str]:
    start = time.perf_counter()
    done = subprocess.run(
        ["timeout", "-k", "9", "300", "compute-sanitizer", "--tool", tool, "--error-exitcode", "9"]
        + [sys.executable, "validation/each_variant.py", "--device", "cuda", "--tool", tool],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # "ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
    said = re.search(r"SUMMARY: (\d+) (?:errors?|hazards? displayed)", done.stdout)
    calls = re.search(r"CALLS (\d+) WRONG (\d+)", done.stdout)
    clean = done.returncode == 0 and said is not None and calls is not None
    record = {
        "clean": clean and int(said[1]) == 0,
        "findings": int(said[1]) if said else None,
        "calls": int(calls[1]) if calls else None,
        "seconds": round(time.perf_counter() - start),
    }
    print(tool, record["seconds"], "s", flush=True)
    return record, "" if record["clean"] else done.stdout[-6000:]


def sanitizers() -> Record:
    """Every variant under every tool, in parallel processes: nothing is timed."""
    with ThreadPoolExecutor(len(TOOLS)) as pool:
        found = dict(zip(TOOLS, pool.map(sanitize, TOOLS), strict=True))
    for tool, (record, text) in found.items():
        print(tool, record, text, flush=True)
    return {tool: record for tool, (record, _) in found.items()}


# ---- counters


def exact(folder: Path, commit: str | None, patterns: int) -> Record:
    """Bank model and variants against Nsight Compute; the counts go to a separate file."""
    command = [sys.executable, "validation/exact.py", "--results", str(folder)]
    command += ["--patterns", str(patterns), *(("--commit", commit) if commit else ())]
    done = subprocess.run(command, cwd=ROOT)
    return {"exit_status": done.returncode, "patterns": patterns}


# ---- timings


def median_of(times_ms: list[float]) -> Record:
    return {"ms": statistics.median(times_ms), "best_ms": min(times_ms), "runs": len(times_ms)}


GEMM_SHAPES = [(1024,) * 3, (4096,) * 3, (4095, 4097, 4093), (8192,) * 3]


def gemm_lines(
    shape: tuple[int, int, int], dtype: str, seconds: float, rates: dict[str, float]
) -> Iterator[Record]:
    """Every variant on GPU arrays, each interleaved with cuBLAS of the same accuracy.

    `rates`: operations a second of a rung, from one size to the next: what would take over 0.4
    seconds is left out.
    """
    import torch

    import smemkern
    from rows import parameter_sets
    from sweep import in_turns, operands

    a, b, out = operands(torch, 1, shape, "NN", getattr(torch, dtype))
    theirs = torch.empty_like(out)
    reference = a.double() @ b.double()
    operations = 2 * math.prod(shape)

    def cublas(tf32: bool) -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.matmul(a, b, out=theirs)

    def line(name: str, result, times: list[float], **more: Any) -> Record:
        timing = median_of(times)
        # Relative Frobenius norm. cuBLAS in float64 is the reference.
        error = torch.linalg.norm(result.double() - reference) / torch.linalg.norm(reference)
        return {
            **{"variant": name, "dtype": dtype, "shape": shape, "params": {}, **timing},
            **{"tflops": operations / timing["ms"] * 1e-9, "error": float(error), **more},
        }

    for tf32 in (False, True) if dtype == "float32" else (False,):
        [times] = in_turns(torch, [partial(cublas, tf32)], seconds)
        yield line("cuBLAS TF32" if tf32 else "cuBLAS", theirs, times)
    for row in smemkern.variants("gemm"):
        for params in parameter_sets(row) if dtype in row.dtypes else ():
            name = f"{row.name} {params} {dtype}"
            if operations / rates.get(name, math.inf) > 0.4:
                continue
            out.fill_(math.nan)
            ours = partial(smemkern.gemm, a, b, variant=row.name, out=out, **params)
            peer = partial(cublas, row.product_bits == TF32_BITS)
            times, peers = in_turns(torch, [ours, peer], seconds)
            rates[name] = operations / min(times) * 1e3
            yield line(row.name, out, times, params=params, peer_ms=statistics.median(peers))


def gemm(seconds: float, sizes: list[tuple[int, int, int]]) -> Record:
    import torch

    torch.manual_seed(2026)
    lines: list[Record] = []
    rates: dict[str, float] = {}
    for shape in sizes:
        for dtype in ("float32", "float64", "float16", "bfloat16"):
            for line in gemm_lines(shape, dtype, seconds, rates):
                lines.append(line)
                print(json.dumps(line), flush=True)
    count = torch.cuda.get_device_properties(0).multi_processor_count
    return {"torch": torch.__version__, "multiprocessors": count, "lines": lines}


def transpose(seconds: float) -> Record:
    import movement

    return movement.transpose(seconds)


def save_apart(results: Results, what: str, measured: Record) -> Record:
    """Saves the times of random calls to a file of their own."""
    path = results.path.with_name(f"{what}-{results.path.stem}.json.xz")
    records.save(path, json.dumps({**results.facts, **measured}))
    return {"seed": measured["seed"], "calls": len(measured["lines"])}


def tune(results: Results, minutes: float, dtypes: list[str], also: list[str]) -> Record:
    """Of variants: tune.py fits the GPU's table to them."""
    from tune import measure

    return save_apart(results, "times", measure(minutes, dtypes, also))


def packing(results: Results, minutes: float) -> Record:
    """Of launches that pack operands: packing.py fits the planner's prediction to them."""
    from packing import measure

    return save_apart(results, "packing", measure(minutes))


def gemv(results: Results, minutes: float) -> Record:
    """Of matrices times vectors: gemv.py fits the planner's prediction to them."""
    from gemv import measure

    return save_apart(results, "gemv", measure(minutes))


def columns(results: Results, minutes: float, dtypes: list[str]) -> Record:
    """Of tiles: columns.py fits the planner's table to them."""
    from columns import measure

    return save_apart(results, "columns", measure(minutes, dtypes))


def sweep(draws: int) -> Record:
    """The 101 calls of sweep.py, and random ones with a seed that is new in each run."""
    import drawn
    import sweep as shapes

    return {**shapes.sweep(), "drawn": drawn.sweep(draws)}


def overhead() -> Record:
    import sweep as shapes

    return shapes.overhead()


def portable(seconds: float) -> Record:
    import portable as rows

    return rows.portable(seconds)


def limits() -> Record:
    import sanitizer_limits

    return sanitizer_limits.limits()


def host() -> Record:
    import host as calls

    return calls.measure()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "steps", nargs="*", metavar="step", help=f"{', '.join(STEPS)}; default: all"
    )
    parser.add_argument(
        "--commit",
        default=os.environ.get("SMEMKERN_COMMIT"),
        help="commit to record if git is not available",
    )
    parser.add_argument(
        "--site", type=Path, default=ROOT / "build" / "gpu-site", help="folder to install into"
    )
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    parser.add_argument(
        "--patterns", type=int, default=120, help="patterns per operation in `exact`"
    )
    parser.add_argument(
        "--draws", type=int, default=60, help="random calls of each kind in `sweep`"
    )
    parser.add_argument(
        "--minutes", type=float, default=6, help="that `packing`, `gemv`, `columns` or `tune` takes"
    )
    parser.add_argument(
        "--dtypes", nargs="*", default=[], help="that `columns` or `tune` draws; all"
    )
    parser.add_argument(
        "--also", nargs="*", default=[], help="variants that `tune` times though `auto` lacks them"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.1, help="time budget of each gemm and each transpose"
    )
    parser.add_argument(
        "--pytest",
        default="-o addopts=-ra -q --all --benchmark-disable --durations=5",  # one GPU: one process
        help="arguments for the tests",
    )
    options = parser.parse_args()
    if unknown := set(options.steps) - set(STEPS):
        parser.error(f"no step {', '.join(unknown)}; there are {', '.join(STEPS)}")

    sys.path.insert(0, str(options.site))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(options.site), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    results = Results(options.results, options.commit)
    work = {
        "build": lambda: build(options.site),
        "tests": lambda: tests(options.pytest),
        "sanitizers": sanitizers,
        "exact": lambda: exact(options.results, options.commit, options.patterns),
        "packing": lambda: packing(results, options.minutes),
        "gemv": lambda: gemv(results, options.minutes),
        "columns": lambda: columns(results, options.minutes, options.dtypes),
        "tune": lambda: tune(results, options.minutes, options.dtypes, options.also),
        "gemm": lambda: gemm(options.seconds, GEMM_SHAPES),
        "transpose": lambda: transpose(options.seconds),
        "sweep": lambda: sweep(options.draws),
        "overhead": overhead,
        "portable": lambda: portable(options.seconds),
        "limits": limits,
        "host": host,
    }
    for step in options.steps or STEPS:
        print(f"==> {step}", flush=True)
        started = time.perf_counter()
        results.add(step, work[step]())
        print(f"    {time.perf_counter() - started:.0f} s", flush=True)

    import tables

    print(tables.report(results.all))
    print(results.path)
    return 0 if tables.is_clean(results.all) else 1


if __name__ == "__main__":
    sys.exit(main())
