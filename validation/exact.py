"""Compares the emulator's counts with Nsight Compute: random requests, variants, user kernels, TMA.

    python validation/exact.py --results DIR --seed 1 --patterns 120
    python validation/exact.py --results DIR --only corpus                       # or an operation
    python validation/exact.py --again benchmarks/results/exactness-h200.json.xz # with no GPU
    python validation/exact.py --forget benchmarks/results/exactness-h200.json.xz # likewise

Writes DIR/exactness-<gpu>.json.xz: for each operation the measured and predicted counts of
patterns, which the seed reproduces; for each call of the other parts (variants, corpus, bulk copies
and wgmma) the differences. Parts that --only leaves out are kept. --again compares with the rules
of today; --forget drops calls whose kernels have changed, which a GPU has to count again. Needs ncu
and access to the GPU's counters. benchmarks/tables.py generates the tables of docs/exactness.md
from the record.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [
    str(HERE),
    str(HERE.parent / "benchmarks"),
    str(HERE.parent),
]  # appended: the installed smemkern is found first

import records  # noqa: E402
from exactness.nsight import measure  # noqa: E402
from exactness.operations import GLOBAL, OPERATIONS, SHARED, Operation  # noqa: E402
from exactness.parts import (  # noqa: E402
    Part,
    compared,
    compared_again,
    is_as_recorded,
    metrics,
    totals,
)
from exactness.patterns import draw  # noqa: E402
from exactness.plan import hardware_metrics, launches, sass_metrics  # noqa: E402
from exactness.play import PARTS  # noqa: E402
from exactness.predict import predicted  # noqa: E402

Record = dict[str, Any]
CHUNK = 600  # launches per run of ncu


def play(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "exactness.play", *arguments]


def number(text: str) -> float:
    return float(text.replace(",", ""))


def operations(chosen: Sequence[Operation], seed: int, count: int, folder: Path) -> Record:
    """Measures operations that have the same counters."""
    sass = sass_metrics(chosen[0].kind) if chosen[0].space == "shared" else []
    hardware = hardware_metrics(chosen[0])
    plan = [
        launch
        for o in chosen
        for launch in launches(o, seed, max(count // 4, 2) if o.modelled else count)
    ]
    counted: dict[str, list[list[int]]] = {o.name: [[], []] for o in chosen}
    for first in range(0, len(plan), CHUNK):
        part = plan[first : first + CHUNK]
        depth = max(len(launch.table) for launch in part)
        tables = np.full((len(part), depth, 2, 32), -1, np.int32)
        repeats = np.ones((len(part), depth), np.int64)
        for k, launch in enumerate(part):
            tables[k, : len(launch.table)] = launch.table
            repeats[k, : len(launch.table)] = launch.repeats
        np.savez(
            folder / "plan.npz",
            names=[launch.operation.name for launch in part],
            tables=tables,
            repeats=repeats,
        )
        rows = measure(play(str(folder / "plan.npz")), [*sass, *hardware], folder)
        if len(rows) != len(part):
            raise SystemExit(f"ncu saw {len(rows)} launches of {len(part)}")
        for launch, row in zip(part, rows, strict=True):
            if launch.operation.name not in row["Kernel Name"]:
                raise SystemExit(f"ncu saw {row['Kernel Name']}, not {launch.operation.name}")
            into = counted[launch.operation.name]
            if sass:
                into[0] += launch.digits(sum(number(row[m]) for m in sass))
            if hardware:
                total = number(row[hardware[0]]) - sum(number(row[m]) for m in hardware[1:])
                if launch.operation.space == "global" and launch.operation.kind == "load":
                    total -= 4 * depth  # loads of the table of offsets
                into[1] += launch.digits(total)
    return {o.name: record(o, plan, *counted[o.name]) for o in chosen}


def record(operation: Operation, plan: Sequence, sass: list[int], hardware: list[int]) -> Record:
    patterns = [p for launch in plan if launch.operation is operation for p in launch.table]
    measured = {"sass": sass, "hardware": hardware}
    out = compare(operation, patterns, {name: m for name, m in measured.items() if m})
    print(operation.name, {k: v for k, v in out.items() if isinstance(v, int)}, flush=True)
    return out


def compare(operation: Operation, patterns: Sequence, measured: dict[str, list[int]]) -> Record:
    said = [predicted(operation, pattern) for pattern in patterns]
    out: Record = {
        "kind": operation.kind,
        "space": operation.space,
        "width": operation.width,
        "modelled": operation.modelled,
        "patterns": len(said),
        "predicted": said,
    }
    for name, counts in measured.items():
        out[name] = counts
        out[name + "_equal"] = sum(a == b for a, b in zip(counts, said, strict=True))
    return out


def again(path: Path) -> None:
    """Compares measured counts with the current rules; needs no GPU."""
    old = records.load(path)
    for name, row in old["operations"].items():
        patterns = draw(OPERATIONS[name], old["seed"], row["patterns"])
        measured = {key: row[key] for key in ("sass", "hardware") if key in row}
        old["operations"][name] = compare(OPERATIONS[name], patterns, measured)
    for name, part in PARTS.items():
        old[name]["calls"] = compared_again(part, old[name]["calls"])
    write(records.stored(path) or path, old)


def forget(path: Path) -> None:
    """Drops the calls of variants whose kernels have changed; needs no GPU."""
    old = records.load(path)
    part = PARTS["variants"]
    lines = {line["call"]: line for line in old["variants"]["calls"]}
    for call in part.calls():
        name = part.name(call)
        if name in lines and not is_as_recorded(part, call, lines[name]):
            print(f"changed: {name}", flush=True)
            del lines[name]
    old["variants"]["calls"] = list(lines.values())
    write(records.stored(path) or path, old)


def kinds(only: Sequence[str]) -> list[list[Operation]]:
    """The operations, grouped by their counters."""
    groups: dict[tuple[str, ...], list[Operation]] = {}
    for o in (*SHARED, *GLOBAL):
        if only and o.name not in only:
            continue
        groups.setdefault((o.space, o.kind, *hardware_metrics(o)), []).append(o)
    return list(groups.values())


def calls(name: str, part: Part, folder: Path) -> list[Record]:
    rows = measure(play(name), metrics(part), folder)
    counted = [{metric: number(row[metric]) for metric in metrics(part)} for row in rows]
    done, first = [], 0
    for call in part.calls():
        last = first + part.launches(call)
        done.append(compared(part, call, totals(part, counted[first:last])))
        if done[-1]["differs"]:
            print(done[-1], flush=True)
        first = last
    if first != len(rows):
        raise SystemExit(f"ncu saw {len(rows)} launches of {first}")
    equal = sum(not line["differs"] for line in done)
    print(f"{name}: {equal} calls of {len(done)} are equal", flush=True)
    return done


def exactness(about: Record, old: Record, options: argparse.Namespace) -> Record:
    """The record of the GPU: `old`, with the parts that are measured now replaced."""
    # The program under ncu must find the same packages as this one.
    here = [str(HERE), *sys.path]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, here)))
    only = options.only
    now = {**about, "seed": options.seed}
    new = {**now, **old} if only else {**old, **now}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for group in kinds(only):
            started = time.perf_counter()
            measured = operations(group, new["seed"], options.patterns, folder)
            new["operations"] = {**new.get("operations", {}), **measured}
            print(f"    {time.perf_counter() - started:.0f} s", flush=True)
        for name, part in PARTS.items():
            if not only or name in only:
                new[name] = {**about, "calls": calls(name, part, folder)}
    return new


def write(path: Path, record: Record) -> None:
    """JSON with one line per operation and call, so that diffs are small."""
    parts = []
    for key, value in record.items():
        if key == "operations":
            lines = [f'  "{name}": {json.dumps(o)}' for name, o in value.items()]
            parts.append(' "operations": {\n' + ",\n".join(lines) + "\n }")
        elif key in PARTS:
            about = {k: v for k, v in value.items() if k != "calls"}
            head = json.dumps({**about, "calls": []}).removesuffix("[]}")
            lines = ",\n  ".join(map(json.dumps, value["calls"]))
            parts.append(f' "{key}": {head}[\n  {lines}\n ]}}')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    records.save(path, "{\n" + ",\n".join(parts) + "\n}\n")


def main() -> int:
    from gpu import facts

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--patterns",
        type=int,
        default=120,
        help="of each operation; of those that are only modelled a quarter",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=(),
        choices=[*PARTS, *OPERATIONS],
        metavar="PART",
        help=f"{', '.join(PARTS)}, or names of operations",
    )
    parser.add_argument("--commit", default=os.environ.get("SMEMKERN_COMMIT"))
    parser.add_argument("--again", type=Path, metavar="FILE", help="measure nothing")
    parser.add_argument("--forget", type=Path, metavar="FILE", help="measure nothing")
    options = parser.parse_args()
    if options.again:
        again(options.again)
        return 0
    if options.forget:
        forget(options.forget)
        return 0
    about = facts(options.commit)
    slug = about["gpu"].lower().removeprefix("nvidia ").replace(" ", "-")
    path = options.results / f"exactness-{slug}.json.xz"
    old = records.load(path) if records.stored(path) else {}
    write(path, exactness(about, old, options))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
