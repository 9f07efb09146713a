"""Runs variants for sm_80 and later from PTX alone, as on a GPU without matching machine code.

A step of gpu.py. Machine code of sm_80 runs only on 8.x; on later GPUs the driver compiles the PTX
of compute_80. This step copies the package without its machine code, as SMEMKERN_CUDA_ARCHS=none
builds it. It checks the results of each GEMM variant for sm_80 from that copy, and times the fast
ones interleaved with their machine code.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

Record = dict[str, Any]
HERE = Path(__file__).resolve().parent
SHAPES = [(4096,) * 3, (4095, 4097, 4093)]
TIMED = ("pipelined", "simt", "mma_tf32x3", "mma_fp16", "mma_bf16")


@contextmanager
def without_machine_code() -> Iterator[Path]:
    """A folder for PYTHONPATH with a copy of the package that contains only PTX."""
    import smemkern

    package = Path(smemkern.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        ignored = shutil.ignore_patterns("*.fatbin", "__pycache__")
        shutil.copytree(package, Path(folder, package.name), ignore=ignored)
        yield Path(folder)


def checked(folder: Path) -> Record:
    """The number of calls and of wrong results of each variant with the copy in `folder`."""
    import smemkern

    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])

    def one(row: str) -> Record:
        done = subprocess.run(
            [
                sys.executable,
                HERE.parent / "validation" / "each_variant.py",
                "--device",
                "cuda",
                "--rows",
                row,
            ],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = re.search(r"CALLS (\d+) WRONG (\d+)", done.stdout)
        if not said:
            print(row, done.stdout[-2000:], flush=True)
        return {
            "row": row,
            "calls": int(said[1]) if said else None,
            "wrong": int(said[2]) if said else None,
        }

    rows = [row.name for row in smemkern.variants("gemm") if row.min_sm < 90]
    with ThreadPoolExecutor(len(rows)) as pool:
        return {"rows": list(pool.map(one, rows))}


def timed(images: Path, seconds: float) -> list[Record]:
    """Milliseconds of interleaved runs from machine code and from PTX."""
    import torch

    import smemkern
    from sweep import in_turns, operands

    config = smemkern._core.config()
    own, kernels = config["images"], config["kernels"]

    def product(folder: str, *arrays: Any, **keywords: Any) -> None:
        smemkern._core.configure(images=folder, kernels=kernels)
        smemkern.gemm(*arrays, **keywords)

    lines = []
    for shape in SHAPES:
        for row in [row for row in smemkern.variants("gemm") if row.name in TIMED]:
            dtype = row.dtypes[0]
            a, b, out = operands(torch, 1, shape, "NN", getattr(torch, dtype))
            work = [
                partial(product, folder, a, b, variant=row.name, out=out)
                for folder in (own, str(images))
            ]
            of_code, of_ptx = (statistics.median(t) for t in in_turns(torch, work, seconds))
            line = {"variant": row.name, "dtype": dtype, "shape": shape}
            lines.append({**line, "ms": of_code, "ptx_ms": of_ptx})
            print(lines[-1], flush=True)
    smemkern._core.configure(images=own, kernels=kernels)
    return lines


def portable(seconds: float) -> Record:
    with without_machine_code() as folder:
        return {**checked(folder), "lines": timed(folder / "smemkern" / "images", seconds)}
