"""Thousands of random calls, each checked against NumPy; tests/test_soak.py runs a sample.

    python validation/soak.py --count 100000 --device cuda    # writes results/soak-cuda.json
    python validation/soak.py --again 17 --device emu         # one call, by its seed

tests/soak_cases.py generates the calls. Call s of the run has seed s.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path += [
    str(HERE),
    str(HERE.parent / "benchmarks"),
    str(HERE.parent / "tests"),
    str(HERE.parent),
]

import records  # noqa: E402
import seeds  # noqa: E402
import soak_cases  # noqa: E402

MOST = {"cuda": 260, "emu": 70}  # largest dimension
TOGETHER = 250  # calls per process at a time


def call(seed: int, device: str) -> str:
    from rows import parameter_sets

    check = soak_cases.CHECKS[seed % len(soak_cases.CHECKS)]
    return check(Random(seed), device, MOST[device], parameter_sets)


def part(some: range, device: str) -> list[dict[str, Any]]:
    failed = []
    for seed in some:
        try:
            call(seed, device)
        except Exception as error:  # the other calls must still run
            failed.append({"seed": seed, "error": f"{type(error).__name__}: {error}"[:300]})
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    seeds.add_arguments(parser, 100_000)
    parser.add_argument("--device", choices=sorted(MOST), default="emu")
    parser.add_argument("--again", type=int, metavar="SEED")
    options = parser.parse_args()
    if options.again is not None:
        print(call(options.again, options.device))
        return 0

    from gpu import output_of

    started = time.time()
    parts = seeds.in_parts(part, options, TOGETHER, options.device)
    failed = [one for found in parts for one in found]
    record = {
        "device": options.device,
        "date": datetime.date.today().isoformat(),
        "commit": options.commit or output_of("git", "rev-parse", "--short=12", "HEAD"),
        "seed": options.seed,
        "count": options.count,
        "seconds": round(time.time() - started),
        "failed": failed,
    }
    path = options.results / f"soak-{options.device}.json"
    records.write(path, record)
    for one in failed[:20]:
        print(one)
    print(f"{options.count} calls on {options.device!r}, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
