"""Speed of the emulator: warp instructions and FLOPs a second, bare and while counting.

    python benchmarks/emulator.py

Two GEMM kernels at 256^3, on all CPU threads, best of several runs; writes
benchmarks/results/emulator.json.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import time
from pathlib import Path

import numpy as np

import smemkern

ROOT = Path(__file__).resolve().parent.parent
N = 256
VARIANTS = ("tiled", "register_tiled")


def cpu_name() -> str:
    text = Path("/proc/cpuinfo").read_text()
    found = re.search(r"model name\s*: (.*)", text) or re.search(r"CPU part\s*: (.*)", text)
    return found[1].strip() if found else "unknown CPU"


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip()


def measure(variant: str, repeat: int) -> dict[str, object]:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((N, N), dtype="f4") for _ in range(2))
    arguments = {"variant": variant, "device": "emu"}
    instructions = smemkern.trace("gemm", a, b, **arguments).warp_instructions

    plain = min(smemkern._measure("gemm", a, b, repeat=repeat, **arguments)[1]) / 1e3
    counted = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        smemkern.trace("gemm", a, b, **arguments)
        counted = min(counted, time.perf_counter() - started)

    def speed(seconds: float) -> dict[str, float]:
        return {
            "seconds": seconds,
            "warp_instructions_per_s": instructions / seconds,
            "gflops": 2 * N**3 / seconds * 1e-9,
        }

    return {
        "variant": variant,
        "warp_instructions": instructions,
        "plain": speed(plain),
        "counted": speed(counted),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--commit", default=commit())
    parser.add_argument(
        "--results", type=Path, default=ROOT / "benchmarks" / "results" / "emulator.json"
    )
    options = parser.parse_args()
    record = {
        "cpu": cpu_name(),
        "threads": len(os.sched_getaffinity(0)),
        "date": datetime.date.today().isoformat(),
        "commit": options.commit,
        "lines": [measure(variant, options.repeat) for variant in VARIANTS],
    }
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(record, indent=1) + "\n")
    for line in record["lines"]:
        print(f"{line['variant']}: {line['warp_instructions'] / 1e6:.1f} M warp instructions")
        for name in ("plain", "counted"):
            s = line[name]
            print(
                f"  {name:8} {s['seconds'] * 1e3:8.1f} ms  "
                f"{s['warp_instructions_per_s'] / 1e6:6.1f} M warp instructions/s  "
                f"{s['gflops']:6.2f} GFLOP/s"
            )


if __name__ == "__main__":
    main()
