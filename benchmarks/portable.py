"""Rows for sm_80 and newer, from their PTX alone: what a GPU newer than every machine code gets.

A step of gpu.py. Machine code of sm_80 runs on 8.x only, so on a newer GPU it is PTX of compute_80
that runs, compiled by the driver. The package is copied without its machine code, as
SMEMKERN_CUDA_ARCHS=none builds it; the tests run with that copy, and the fast rows that need no
Hopper are timed beside their own machine code, in turns.
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
ROOT = Path(__file__).resolve().parent.parent
SHAPES = [(4096,) * 3, (4095, 4097, 4093)]
TIMED = ("pipelined", "simt", "mma_tf32x3", "mma_fp16", "mma_bf16")
TESTS = ("test_gemm.py", "test_gemm_orders.py")
CALL = """
import sys, ml_dtypes, numpy, smemkern
a = numpy.ones((8, 8), sys.argv[2])
smemkern.gemm(a, a, variant=sys.argv[1], device="cuda")
"""


@contextmanager
def without_machine_code() -> Iterator[Path]:
    """A folder for PYTHONPATH with a copy of the package that has PTX only."""
    import smemkern

    package = Path(smemkern.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        ignored = shutil.ignore_patterns("*.fatbin", "__pycache__")
        shutil.copytree(package, Path(folder, package.name), ignore=ignored)
        yield Path(folder)


def tested(folder: Path, arguments: str) -> Record:
    """The tests that run GEMM on the GPU, of these rows, with the copy in `folder`."""
    import smemkern

    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = partial(
        subprocess.run,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    rows = smemkern.variants("gemm")
    # The driver keeps what it has compiled: each image once, side by side, before all need it.
    images = [(row.name, dtype) for row in rows if row.min_sm < 90 for dtype in row.dtypes]
    with ThreadPoolExecutor(len(images)) as pool:
        list(pool.map(lambda image: run([sys.executable, "-c", CALL, *image]), images))
    newer = " or ".join(f"-{row.name}-" for row in rows if row.min_sm >= 90)
    done = run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments.split()]
        + ["-k", f"cuda and not ({newer})", *(str(ROOT / "tests" / name) for name in TESTS)]
    )
    print(done.stdout[-3000:])
    summary = done.stdout.rstrip().splitlines()[-1]
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|errors?)", summary)}
    return {"exit_status": done.returncode, **counts}


def timed(images: Path, seconds: float) -> list[Record]:
    """Milliseconds from machine code and from PTX."""
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


def portable(arguments: str, seconds: float) -> Record:
    with without_machine_code() as folder:
        return {
            "tests": tested(folder, arguments),
            "lines": timed(folder / "smemkern" / "images", seconds),
        }
