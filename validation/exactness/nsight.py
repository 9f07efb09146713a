"""Runs a program under Nsight Compute and reads the counters, launch by launch."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Sequence
from pathlib import Path

NCU = ("ncu", "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw")


def measure(
    command: Sequence[str], metrics: Sequence[str], folder: Path, timeout: float = 500
) -> list[dict[str, str]]:
    """One dictionary per launch, in order: "Kernel Name" and the metrics."""
    log = folder / "ncu.csv"
    options = ["--print-units", "base", "--metrics", ",".join(metrics), "--log-file", str(log)]
    done = subprocess.run(
        [*NCU, *options, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    lines = log.read_text().splitlines() if log.exists() else []
    table = [line for line in lines if line.startswith('"')]
    if done.returncode or not table:
        said = "\n".join(line for line in lines if not line.startswith('"'))
        raise SystemExit(f"ncu failed ({done.returncode}):\n{done.stdout[-3000:]}\n{said[-3000:]}")
    rows = list(csv.DictReader(table))
    return rows[1:]  # the first row has the units
