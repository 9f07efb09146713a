"""Fits the table from which `auto` predicts, to times of calls that are drawn at random.

A step of gpu.py. Each variant of the table is timed, on the GPU, for the shapes of
smemkern.bench and of the sweep, and for draws as in drawn.py: all layouts, also batches. What
drawn.py then reports has other seeds, so it judges the fit on calls that it has not seen.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

from drawn import candidates_of, draw
from sweep import Shape, in_turns, operands, shapes

Record = dict[str, Any]
MOST_OPERATIONS = 2**38  # of one product


def calls(rng: random.Random, count: int) -> Iterator[tuple[int, Shape, str]]:
    """(batch, (M, N, K), layout)"""
    from smemkern._performance.bench import SHAPES

    named = [*SHAPES, *(shape for batch, shape, layout in shapes() if layout == "NN")]
    for shape in dict.fromkeys(named):
        yield 1, shape, "NN"
    for number in range(count):
        yield draw(rng, batched=number % 3 == 0)


def tune(count: int = 240, seed: int = 2026, seconds: float = 0.03) -> Record:
    """Times the variants for `count` draws and the fixed shapes of each dtype, and fits the table;
    with the errors of the fit."""
    import torch

    import smemkern
    from smemkern._performance.bench import ALL_DTYPES, Bench, Line
    from smemkern._render.rows import Rows
    from smemkern._variants.choices import ACCURACIES
    from smemkern._variants.cost_model import load

    torch.manual_seed(seed)
    rng = random.Random(seed)
    device = smemkern.devices()[0]
    lines = []
    for dtype in ALL_DTYPES:
        for batch, shape, layout in calls(rng, count):
            if 2 * batch * math.prod(shape) > MOST_OPERATIONS:
                continue
            a, b, out = operands(torch, batch, shape, layout, getattr(torch, dtype))
            named = candidates_of(dtype, ACCURACIES[-1], batch, shape, layout)
            work = [
                partial(smemkern.gemm, a, b, variant=name, out=out, **params)
                for name, params in named
            ]
            for (name, params), times in zip(named, in_turns(torch, work, seconds), strict=True):
                ms = statistics.median(times)
                rate = 2 * batch * math.prod(shape) / ms * 1e-9
                line = Line("gemm", name, params, dtype, shape, ms, min(times), rate, batch, layout)
                lines.append(line)
    timings, fits = Bench(Rows(lines), device).fitted(load(device.description))
    print(fits, flush=True)
    return {
        "torch": torch.__version__,
        "timings": [timing._asdict() for timing in timings],
        "fits": [fit._asdict() for fit in fits],
    }
