"""Counts requests to the shared memory of other blocks of a cluster with Nsight Compute.

    python validation/dsmem.py --record tests/emu/dsmem_h200.json

Needs ncu, access to the GPU's counters, and a GPU with clusters.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "validation"), str(ROOT / "benchmarks"), str(ROOT / "tests" / "emu")]

from dsmem_requests import REPEATS, cases, ptx  # noqa: E402

import smemkern  # noqa: E402
from exactness.nsight import measure  # noqa: E402

SASS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_"
REQUESTS = "smsp__sass_inst_executed_op_shared.sum"
OWN = [f"{SASS}{op}.sum" for op in ("ld", "st", "atom")]
ALL = "l1tex__data_pipe_lsu_wavefronts.sum"  # to the shared memory of all blocks
SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"  # to the block's own
SECTORS = "l1tex__m_l1tex2xbar_write_sectors_mem_dshared.sum"
METRICS = [REQUESTS, *OWN, ALL, SHARED, SECTORS]


def play(seconds: float) -> None:
    """A launch of each case, and one without repeats of each kernel before its first."""
    end, kernels = time.monotonic() + seconds, {}
    for case in cases():
        if time.monotonic() > end:
            return
        key = (case.instruction, case.blocks)
        if key not in kernels:
            kernels[key] = smemkern.Kernel(ptx(*key), "k")
            kernels[key](case.blocks, 32, *case.arguments(0), device="cuda")
        kernels[key](case.blocks, 32, *case.arguments(REPEATS), device="cuda")


def counts(row: dict[str, str]) -> list[float]:
    values = {name: float(row[name].replace(",", "")) for name in METRICS}
    own = sum(values[name] for name in OWN)
    return [values[REQUESTS], own, values[ALL] - values[SHARED], values[SECTORS]]


def per_repeat(rows: list[dict[str, str]]) -> dict[str, list[int]]:
    """By case, in the order of the launches of play()."""
    found, without, launches = {}, {}, iter(map(counts, rows))
    for case in cases():
        key = (case.instruction, case.blocks)
        if key not in without and (launch := next(launches, None)):
            without[key] = launch
        if not (launch := next(launches, None)):
            break
        difference = (after - before for before, after in zip(without[key], launch, strict=True))
        found[str(case)] = [round(count / REPEATS) for count in difference]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=600, help="no more launches after this")
    parser.add_argument("--play", action="store_true", help="what ncu profiles")
    given = parser.parse_args()
    if given.play:
        play(given.seconds)
        return
    from gpu import facts

    command = [sys.executable, __file__, "--record", "-", "--play", "--seconds", f"{given.seconds}"]
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(command, METRICS, Path(folder), timeout=given.seconds + 60)
    found = per_repeat(rows)
    about = facts(None)
    write(given.record, {key: about[key] for key in ("gpu", "driver", "date")}, found)
    print(f"{len(found)} of {len(cases())} cases")


def write(path: Path, about: dict[str, str], found: dict[str, list[int]]) -> None:
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
    head = json.dumps({**about, "cases": {}}, indent=1).removesuffix("{}\n}")
    path.write_text(head + "{\n" + lines + "\n }\n}\n")


if __name__ == "__main__":
    main()
