"""Counts requests to the shared memory of other blocks of a cluster with Nsight Compute.

    python validation/dsmem.py --record tests/emu/dsmem_h200.json

Needs ncu, access to the GPU's counters, and a GPU with clusters.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
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


def play() -> None:
    """Two launches per case: without repeats, and with."""
    for case in cases():
        kernel = smemkern.Kernel(ptx(case.instruction, case.blocks), "k")
        for repeats in (0, REPEATS):
            kernel(case.blocks, 32, *case.arguments(repeats), device="cuda")


def counts(row: dict[str, str]) -> list[float]:
    values = {name: float(row[name].replace(",", "")) for name in (REQUESTS, *OWN, ALL)}
    own = sum(values[name] for name in OWN)
    return [values[REQUESTS], own, values[ALL] - own]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--play", action="store_true", help="what ncu profiles")
    given = parser.parse_args()
    if given.play:
        play()
        return
    from gpu import facts

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--play"]
        rows = measure(command, [REQUESTS, *OWN, ALL], Path(folder))
    if len(rows) != 2 * len(cases()):
        raise SystemExit(f"ncu saw {len(rows)} launches of {2 * len(cases())}")
    pairs = zip(map(counts, rows[::2]), map(counts, rows[1::2]), strict=True)
    per_repeat = [
        [round((after - before) / REPEATS) for before, after in zip(*pair, strict=True)]
        for pair in pairs
    ]
    found = dict(zip(map(str, cases()), per_repeat, strict=True))
    about = facts(None)
    write(given.record, {key: about[key] for key in ("gpu", "driver", "date")}, found)


def write(path: Path, about: dict[str, str], found: dict[str, list[int]]) -> None:
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
    head = json.dumps({**about, "cases": {}}, indent=1).removesuffix("{}\n}")
    path.write_text(head + "{\n" + lines + "\n }\n}\n")


if __name__ == "__main__":
    main()
