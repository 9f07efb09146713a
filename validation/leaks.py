"""Checks that ten thousand valid and invalid calls do not use more and more memory.

    python validation/leaks.py [--calls 10000] [--results FOLDER]

Prints the bytes that are allocated with malloc after a tenth of the calls and at the end, and
writes them to FOLDER/leaks.json.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import sys
import time
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import records
import smemkern
from malloc_use import used

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry seven(.param .u64 x)
{{ // {number}
    .reg .b32 %r<2>; .reg .b64 %rd<3>;
    ld.param.u64 %rd0, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4;
    add.s64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], 7; ret;
}}
"""


def operations():
    a, b = np.ones((2, 9, 8), "f4"), np.ones((8, 7), "f4")
    out = np.zeros((2, 9, 7), "f4")
    x, lanes = np.zeros(32, "u4"), 4 * np.arange(32)
    kernel = smemkern.Kernel(PTX.format(number=0), "seven")
    numbers = itertools.count()

    def fresh():
        smemkern.Kernel(PTX.format(number=next(numbers) % 1000), "seven")(1, 32, x, device="emu")

    yield lambda: smemkern.gemm(a, b, device="emu")
    yield lambda: smemkern.gemm(a, b[:, ::-1], variant="tiled", out=out, beta=0.5, device="emu")
    yield lambda: smemkern.gemm(a[0], b, max_memory=10**6, device="emu")
    yield lambda: smemkern.transpose(a, device="emu")
    yield lambda: smemkern.trace("gemm", a[0], b, variant="pipelined")
    yield lambda: smemkern.trace(kernel, 1, 32, x)
    yield lambda: kernel(1, 32, x, device="emu")
    yield fresh
    yield lambda: smemkern.trace("gemm", a[0], b, progress=lambda *_: None)
    yield lambda: smemkern.probe(np.ones(300, "f4"), variant="copy_async", device="emu")
    yield lambda: smemkern.banks.wavefronts(lanes)
    yield lambda: smemkern.coalescing.sectors(lanes)
    yield lambda: smemkern.occupancy(256, 32)
    yield lambda: smemkern.TensorMap(np.ones((64, 64), "f4"), (8, 8))
    yield lambda: smemkern.TensorMap(np.ones((64, 64), "f4"), (8,))
    yield lambda: smemkern.profile(kernel, 1, 32, x)
    yield lambda: smemkern.gemm(a, b[1:], device="emu")
    yield lambda: smemkern.gemm(a, b, out=out[0], device="emu")
    yield lambda: smemkern.gemm(a, b, variant="none", device="emu")
    yield lambda: kernel(1, 32, x[:5], device="emu")
    yield lambda: kernel(1, 32, x, device="emu", max_instructions=1)
    yield lambda: smemkern.Kernel("nonsense {", "k", options=3)
    yield lambda: smemkern.Kernel(PTX.format(number=1)[:200], None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    calls = options.calls
    every = list(operations())
    begin, start = 0, time.perf_counter()
    for i in range(calls):
        with contextlib.suppress(TypeError, ValueError, OSError, smemkern.Error):
            every[i % len(every)]()
        if i == calls // 10:
            gc.collect()
            begin = used()
    gc.collect()
    end, seconds = used(), time.perf_counter() - start
    print(
        f"{calls} calls in {seconds:.0f} s: {begin} bytes in use after a tenth of them, {end} at "
        f"the end: {end - begin:+d}"
    )
    if options.results:
        measured = {"calls": calls, "seconds": round(seconds), "begin": begin, "end": end}
        records.write(options.results / "leaks.json", {**records.facts(), **measured})


if __name__ == "__main__":
    main()
