"""Random PTX modules on the emulator, a GPU and a Python model; invalid modules are rejected.

    python validation/random_modules.py --count 20000 --mistakes 20000
    python validation/random_modules.py --show 17       # one module, without a GPU
    python validation/random_modules.py --show-mistake 17

tests/emu/module_writer.py generates modules, and module_mistakes.py adds mistakes. As in
random_programs.py, results and printed text of the entries are compared bit for bit: with the GPU,
and except for one checksum with the Python model. The record has digests of the first modules.
Modules with mistakes run only on the emulator, so they need no GPU (--count 0). The record counts
the outcomes of each kind of mistake. A crash of the process is a failure, and so is a meaningless
module that is accepted.

An access outside memory makes the GPU unusable for its process, and an endless kernel occupies it.
So modules run in separate processes (--part); after a failure a new process continues. The record
is written as processes end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "tests" / "emu"), str(HERE.parent / "tests")]
sys.path += [str(HERE.parent / "benchmarks"), str(HERE.parent)]

import module_mistakes as mistakes  # noqa: E402
import module_run as modules  # noqa: E402
from module_writer import Launch, Module  # noqa: E402

import seeds  # noqa: E402
from random_programs import (  # noqa: E402
    Record,
    add_apart,
    compiled_unoptimised,
    digest,
    recorded,
    smaller,
    summary,
)
from records import load, stored, write  # noqa: E402

TOGETHER = 100
SECONDS = 150  # per process; some of them wait for an endless one


def unoptimised(module: Module) -> modules.Left:
    """The results of the entries on the GPU, compiled with ptxas -O0."""
    import cupy

    text, given = module.text(), cupy.asarray(modules.inputs(module))

    def launched(launch: Launch, out: np.ndarray, scalars: list[object]) -> None:
        kernel, on_gpu = compiled_unoptimised(text, launch.entry), cupy.asarray(out)
        by_value = [np.frombuffer(bits, f"V{len(bits)}") for _, bits in launch.scalars]
        kernel((launch.grid,), (launch.block,), (on_gpu, given, *by_value))
        out[:] = on_gpu.get()

    return [modules.run_entry(launch, "cuda", launched) for launch in module.entries]


def right_unoptimised(module: Module, emu: modules.Left) -> bool:
    """Whether code of ptxas -O0 gives the results of the emulator and of the model."""
    wrong = modules.differences(emu, modules.model(module), True)
    return not wrong and not modules.differences(emu, unoptimised(module))


def difference(seed: int, apart: bool) -> tuple[str, Record | None]:
    """The digest of the emulator's results, and the difference from the others."""
    module = Module(seed)

    def both() -> list[modules.Left]:
        return [modules.run(module, device) for device in ("emu", "cuda")]

    def differ(emu: modules.Left, gpu: modules.Left) -> tuple[list[str], list[str]]:
        known = modules.differences(emu, modules.model(module), True)
        return modules.differences(emu, gpu), known

    emu, gpu = both()
    kept = digest(seed, module.text(), modules.flat(emu))
    entries, modelled = differ(emu, gpu)
    if not entries and not modelled:
        return kept, None
    optimiser = right_unoptimised(module, emu)
    left = None
    if apart:
        functions = [f for f in module.at.values() if f.body]
        for function in functions:
            smaller(function.body, lambda: any(differ(*both())))
        left = {f.name: [line for step in f.body for line in step.lines()] for f in functions}
    return kept, {
        "seed": seed,
        "entries": entries,
        "model": modelled,
        "optimiser": optimiser,
        "left": left,
    }


def print_part(some: range, apart: int) -> None:
    """Prints one line per module, up to the first failure."""
    differ = 0
    for seed in some:
        record: Record = {"digest": "", "differs": None, "error": None}
        try:
            record["digest"], record["differs"] = difference(seed, differ < apart)
        except Exception as error:
            record["error"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(record), flush=True)
        if record["error"]:
            return
        differ += record["differs"] is not None


def said_apart(*arguments: str) -> tuple[list[Any], str]:
    """Runs this script in a process; returns its lines of JSON, and how it ended."""
    command = [sys.executable, __file__, *arguments]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=SECONDS)
        said, end = done.stdout, f"its process ended with status {done.returncode}"
    except subprocess.TimeoutExpired as late:
        said, end = late.stdout or b"", f"no end within {SECONDS} seconds"
    return [json.loads(line) for line in said.splitlines()], end


def part(some: range, apart: int) -> Record:
    """The lines of print_part for all these modules, with a new process after each failure."""
    found: Record = {"differ": [], "errors": [], "digests": []}
    while some:
        span = f"{some.start}:{some.stop}"
        records, end = said_apart("--part", span, "--apart", str(apart))
        if len(records) < len(some) and not (records and records[-1]["error"]):
            records.append({"digest": "", "differs": None, "error": end})
        for seed, record in zip(some, records, strict=False):
            found["digests"].append(record["digest"])
            found["differ"] += [record["differs"]] if record["differs"] else []
            if record["error"]:
                right = said_apart("--unoptimised", str(seed))[0] == [True]
                found["errors"].append({"seed": seed, "error": record["error"], "optimiser": right})
        some = some[len(records) :]
    return found


def run_modules(options: argparse.Namespace, path: Path, kept: Record) -> bool:
    """Runs the modules, and updates the record after each part."""
    starts = range(options.seed, options.seed + options.count, TOGETHER)
    parts = [range(k, min(k + TOGETHER, starts.stop)) for k in starts]
    found: list[Record] = []
    with ThreadPoolExecutor(options.processes) as pool:
        for some, one in zip(parts, pool.map(lambda s: part(s, options.apart), parts), strict=True):
            found.append(one)
            options.count = some.stop - options.seed
            if len(found) % 20 == 0:
                write(path, recorded(found, options) | kept)
    return summary(recorded(found, options) | kept, path, "modules")


def count_mistakes(options: argparse.Namespace) -> Record:
    """Counts the outcomes of modules with mistakes."""
    options.count = options.mistakes
    found = [e for f in seeds.in_parts(mistakes.run_apart, options, TOGETHER) for e in f]
    kinds: dict[str, Counter[str]] = {}
    for end in found:
        kinds.setdefault(end.kind, Counter())[end.how] += 1
    return {
        "seed": options.seed,
        "count": options.mistakes,
        "ended": dict(Counter(end.how for end in found)),
        "kinds": {kind: dict(ended) for kind, ended in sorted(kinds.items())},
        "died": [[end.seed, end.kind, end.message] for end in found if "died" in end.how],
        "taken": [[end.seed, end.kind] for end in found if end.refused and end.how == "ran"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    seeds.add_arguments(parser, 20000)
    add_apart(parser)
    parser.add_argument("--mistakes", type=int, default=0, help="how many modules with mistakes")
    parser.add_argument("--show", type=int, metavar="SEED")
    parser.add_argument("--show-mistake", type=int, metavar="SEED")
    parser.add_argument("--unoptimised", type=int, metavar="SEED", help="true: right with -O0")
    parser.add_argument("--part", metavar="FIRST:END", help="a line of JSON for each of these")
    options = parser.parse_args()
    if options.show is not None:
        print(Module(options.show).text())
        return 0
    if options.show_mistake is not None:
        print("//", *mistakes.module(options.show_mistake)[:3:2], sep="\n")
        return 0

    os.environ["CUDA_CACHE_DISABLE"] = "1"  # each module runs once
    if options.unoptimised is not None:
        module = Module(options.unoptimised)
        print(json.dumps(right_unoptimised(module, modules.run(module, "emu"))), flush=True)
        os._exit(0)
    if options.part:
        print_part(range(*map(int, options.part.split(":"))), options.apart)
        os._exit(0)  # a normal exit would wait for an endless kernel
    path, failed = options.results / "random-modules.json", False
    record: Record = load(path) if stored(path) else {}
    if options.count:
        kept = {key: record[key] for key in ("mistakes",) if key in record}
        failed = run_modules(options, path, kept)
    if options.mistakes:
        record = load(path) if stored(path) else {}
        record["mistakes"] = found = count_mistakes(options)
        write(path, record)
        print(f"{found['count']} modules with mistakes:", found["ended"])
        for seed, kind, *why in (*found["died"], *found["taken"]):
            print(f"{'died' if why else 'not refused'}: {kind}, --show-mistake {seed}", *why)
        failed |= bool(found["died"] or found["taken"])
    return failed


if __name__ == "__main__":
    sys.exit(main())
