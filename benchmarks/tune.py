"""Times the variants among which `auto` chooses, on random calls, and fits its table to the times.

    python benchmarks/gpu.py tune --minutes 6      # on a GPU: writes times-<gpu>.json.xz
    python benchmarks/tune.py times-nvidia-h200    # anywhere: fits the table of that GPU to it

The calls are drawn as in drawn.py, with other seeds, so what that reports judges the fit on calls
which it has not seen. A call has the times of cuBLAS too, which the fit does not use.
"""

from __future__ import annotations

import argparse
import math
import random
import secrets
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import records
from drawn import candidates_of, draw
from sweep import Shape, in_turns, operands, shapes

Record = dict[str, Any]
MOST_OPERATIONS = 2**37  # of one product
# Of every 12 calls; a kernel for bfloat16 is one for float16, so their times are fitted together.
TYPES = ("float32", "float64", "bfloat16") * 3 + ("float32", "float16", "float16")


def calls(rng: random.Random) -> Iterator[tuple[str, int, Shape, str]]:
    """(dtype, batch, (M, N, K), layout), without end: first the shapes of smemkern.bench."""
    from smemkern._performance.bench import SHAPES

    fixed = [*SHAPES, *(shape for batch, shape, layout in shapes() if layout == "NN")]
    for shape in dict.fromkeys(fixed):
        for dtype in ("float32", "float64", "bfloat16"):
            yield dtype, 1, shape, "NN"
    while True:
        for number, dtype in enumerate(TYPES):
            yield dtype, *draw(rng, batched=number % 4 == 3)


def time_call(torch: Any, dtype: str, batch: int, shape: Shape, layout: str) -> Record:
    """Microseconds of cuBLAS and of each candidate: medians, in turns."""
    import smemkern
    from smemkern._variants.choices import ACCURACIES

    a, b, out = operands(torch, batch, shape, layout, getattr(torch, dtype))
    peer = torch.empty_like(out)

    def cublas(tf32: bool) -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.matmul(a, b, out=peer)

    work = {"cuBLAS": partial(cublas, False)}
    if dtype == "float32":
        work["cuBLAS TF32"] = partial(cublas, True)
    for name, params in candidates_of(dtype, ACCURACIES[-1], batch, shape, layout, far=12):
        label = " ".join([name, *(f"{key}={value}" for key, value in params.items())])
        work[label] = partial(smemkern.gemm, a, b, variant=name, out=out, **params)
    times = in_turns(torch, list(work.values()), 0.015)
    return {
        **{"dtype": dtype, "batch": batch, "shape": shape, "layout": layout},
        "us": {
            label: round(statistics.median(own) * 1e3, 2)
            for label, own in zip(work, times, strict=True)
        },
    }


def measure(minutes: float, seed: int | None = None) -> Record:
    import torch

    import smemkern

    seed = secrets.randbits(32) if seed is None else seed
    rng = random.Random(seed)
    torch.manual_seed(seed)
    device = smemkern.devices()[0]
    until = time.monotonic() + 60 * minutes
    lines: list[Record] = []
    for dtype, batch, shape, layout in calls(rng):
        if time.monotonic() > until:
            break
        if 2 * batch * math.prod(shape) <= MOST_OPERATIONS:
            lines.append(time_call(torch, dtype, batch, shape, layout))
    print(f"tune: {len(lines)} calls, seed {seed}", flush=True)
    facts = {"gpu": device.description, "sm": device.sm, "multiprocessors": device.multiprocessors}
    return {**facts, "torch": torch.__version__, "seed": seed, "lines": lines}
