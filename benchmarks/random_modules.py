"""Random PTX modules on the emulator, on a GPU and in the model; modules with mistakes are refused.

    python benchmarks/random_modules.py --count 20000 --mistakes 20000
    python benchmarks/random_modules.py --show 17       # one module, without a GPU
    python benchmarks/random_modules.py --show-mistake 17

tests/emu/module_writer.py says what a module is, and module_mistakes.py what a mistake. What the
entries leave and print is compared bit for bit, as random_programs.py does with programs: with the
GPU, and but for one checksum with the model in Python. The record keeps digests of the first ones.
Modules with a mistake run on the emulator only, so without a GPU too (--count 0): the record counts
how each kind ends. A process that dies of one is a failure, and so
is a mistake without any meaning that is not refused.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "tests" / "emu"), str(HERE.parent / "tests")]
sys.path.append(str(HERE.parent))

import module_mistakes as mistakes  # noqa: E402
import module_run as modules  # noqa: E402
from module_writer import Launch, Module  # noqa: E402

import seeds  # noqa: E402
from random_programs import (  # noqa: E402
    Record,
    add_apart,
    compiled_unoptimised,
    digest,
    in_turn,
    recorded,
    smaller,
    summary,
)

TOGETHER = 25


def unoptimised(module: Module) -> modules.Left:
    """What the entries leave on the GPU as ptxas -O0 compiles them."""
    import cupy

    text, given = module.text(), cupy.asarray(modules.inputs(module))

    def launched(launch: Launch, out: np.ndarray, scalars: list[object]) -> None:
        kernel, on_gpu = compiled_unoptimised(text, launch.entry), cupy.asarray(out)
        by_value = [np.frombuffer(bits, f"V{len(bits)}") for _, bits in launch.scalars]
        kernel((launch.grid,), (launch.block,), (on_gpu, given, *by_value))
        out[:] = on_gpu.get()

    return [modules.run_entry(launch, "cuda", launched) for launch in module.entries]


def difference(seed: int, apart: bool) -> tuple[str, Record | None]:
    """The digest on the emulator, and what is different."""
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
    optimiser = not modelled and not modules.differences(emu, unoptimised(module))
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


def part(some: range, apart: int) -> Record:
    return in_turn(some, difference, apart)


def count_mistakes(options: argparse.Namespace) -> Record:
    """How modules with mistakes end."""
    options.count = options.mistakes
    found = [e for f in seeds.in_parts(mistakes.run_apart, options, 4 * TOGETHER) for e in f]
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
    options = parser.parse_args()
    if options.show is not None:
        print(Module(options.show).text())
        return 0
    if options.show_mistake is not None:
        print("//", *mistakes.module(options.show_mistake)[:3:2], sep="\n")
        return 0

    os.environ["CUDA_CACHE_DISABLE"] = "1"  # each module runs once
    path, failed = options.results / "random-modules.json", False
    record: Record = json.loads(path.read_text()) if path.exists() else {}
    kept = record.get("mistakes")
    if options.count:
        record = recorded(seeds.in_parts(part, options, TOGETHER, options.apart), options)
        if kept:
            record["mistakes"] = kept
        failed = summary(record, path, "modules")
    if options.mistakes:
        record["mistakes"] = found = count_mistakes(options)
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(f"{found['count']} modules with mistakes:", found["ended"])
        for seed, kind, *why in (*found["died"], *found["taken"]):
            print(f"{'died' if why else 'not refused'}: {kind}, --show-mistake {seed}", *why)
        failed |= bool(found["died"] or found["taken"])
    return failed


if __name__ == "__main__":
    sys.exit(main())
