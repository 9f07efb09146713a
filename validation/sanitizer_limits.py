"""What compute-sanitizer does not follow: textbook kernels (sanitizer_limits.cu) under its tools.

A step of gpu.py. The rows that each_variant.py leaves out of a tool are those that do what this
shows the tool to report in a kernel of ten lines that is right, beside one that is wrong.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Record = dict[str, Any]
SOURCE = Path(__file__).with_suffix(".cu")
CASES = [  # tool, kernel, whether it is right
    *[("racecheck", f"race {mode}", True) for mode in ("store", "store_elected", "wait_arrive")],
    *[("racecheck", f"race {mode}", True) for mode in ("noinc", "noinc_elected", "primitives")],
    *[("racecheck", "race group", True), ("racecheck", "race nothing", False)],
    *[("initcheck", f"init {mode}", True) for mode in ("words", "bulk", "tensor")],
    *[("initcheck", f"init {mode}_read", True) for mode in ("words", "bulk", "tensor")],
    *[("initcheck", "init nothing", False), ("initcheck", "init nothing_read", False)],
]


def watched(program: Path, tool: str, kernel: str, right: bool) -> Record:
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "2", program]
    done = subprocess.run([*command, *kernel.split()], capture_output=True, text=True)
    said = re.search(r"SUMMARY: (?:\d+ hazards? displayed \()?(\d+) errors?", done.stdout)
    wrong = re.search(r"WRONG (\d+)", done.stdout)
    return {
        **{"tool": tool, "kernel": kernel, "right": right},
        "findings": int(said[1]) if said else None,
        "wrong": int(wrong[1]) if wrong else None,
    }


def limits() -> Record:
    """How many errors each tool reports of each kernel, and how many elements are wrong."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "limits")
        nvcc = os.environ.get("NVCC", "nvcc")
        options = ["-std=c++17", "-arch=sm_90a", "-lineinfo", "-o", program]
        subprocess.run([nvcc, *options, SOURCE], check=True)
        with ThreadPoolExecutor(len(CASES)) as pool:
            lines = list(pool.map(lambda case: watched(program, *case), CASES))
    for line in lines:
        print(line, flush=True)
    return {"lines": lines}
