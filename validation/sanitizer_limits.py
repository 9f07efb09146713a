"""Limits of compute-sanitizer, shown with textbook kernels (sanitizer_limits.cu).

A step of gpu.py. For each limit there is a correct kernel of ten lines that a tool reports, and for
comparison a wrong one, or one that it understands; "" is a run without a tool. each_variant.py
skips the variants, or calls, that do the same under that tool.
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
CASES = [  # (tool, kernel, whether the kernel is correct)
    *[("racecheck", f"race {mode}", True) for mode in ("store", "store_elected", "wait_arrive")],
    *[("racecheck", f"race {mode}", True) for mode in ("noinc", "noinc_elected", "primitives")],
    *[("racecheck", "race group", True), ("racecheck", "race nothing", False)],
    *[("initcheck", f"init {mode}", True) for mode in ("words", "bulk", "tensor")],
    ("initcheck", "init parts", True),
    *[("initcheck", f"init {mode}_read", True) for mode in ("words", "bulk", "tensor")],
    *[("initcheck", "init nothing", False), ("initcheck", "init nothing_read", False)],
    *[("synccheck", f"sync {mode}", True) for mode in ("one", "two", "two_red")],
    *[("memcheck", f"mem {mode}", True) for mode in ("stores", "bulk", "bulk_own")],
    *[(tool, "cluster wait", True) for tool in ("racecheck", "synccheck")],
    *[("", kernel, True) for kernel in ("mem bulk_own", "cluster wait")],
]


def watched(program: Path, tool: str, kernel: str, right: bool) -> Record:
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "2"] if tool else []
    command = ["timeout", "-k", "5", "60", *command, program, *kernel.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    said = re.search(r"SUMMARY: (?:\d+ hazards? displayed \()?(\d+) errors?", done.stdout)
    wrong = re.search(r"WRONG (\d+)", done.stdout)
    return {
        **{"tool": tool, "kernel": kernel, "right": right},
        "findings": int(said[1]) if said else None,
        "wrong": int(wrong[1]) if wrong else None,
    }


def limits() -> Record:
    """The errors that each tool reports for each kernel, and the number of wrong elements; None: it
    did not get so far, or not within a minute."""
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
