"""Times the launches that pack operands for TMA; fits their costs in the planner's prediction.

    python benchmarks/gpu.py packing               # on a GPU: writes results/packing-GPU.json.xz
    python benchmarks/packing.py packing-nvidia-h200    # anywhere: writes csrc/core/pack_costs.def

The calls are random products of 16 bits and tf32 with rows that TMA cannot read. Times are those of
the launch itself, from PyTorch's profiler. The fit needs SciPy.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import statistics
from collections.abc import Iterable
from functools import cache, partial
from typing import Any

import records
from drawn import draw, lasting, seeded
from sweep import operands

Record = dict[str, Any]
COSTS = records.ROOT / "csrc" / "core" / "pack_costs.def"
DTYPES = [("bf16", "bfloat16"), ("fp16", "float16"), ("tf32", "float32")]
CALLS = 5  # of a product; the median counts
MOST_OPERATIONS = 2**34
TILE = (128, 64, 1, False, 1, 1)  # which does not matter to what is packed


def dot(terms: Iterable[float], costs: Iterable[float]) -> float:
    return math.fsum(term * cost for term, cost in zip(terms, costs, strict=True))


@cache
def packing_costs() -> list[float]:
    """Microseconds per unit of each term (core/plan_parts.h)."""
    last = COSTS.read_text().strip().splitlines()[-1]
    return [float(cost) for cost in last.split(",")]


def packs(event: Any) -> bool:
    return re.search(r"_pack\b", event.name) is not None


def packing_us(torch: Any, run: Any) -> float | None:
    """Of the launch that packs; None if there is none."""
    run()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(CALLS):
            run()
        torch.cuda.synchronize()
    times = [event.time_range.elapsed_us() for event in profile.events() if packs(event)]
    return statistics.median(times) if times else None


def measure(minutes: float, seed: int | None = None) -> Record:
    import torch

    import smemkern

    seed, rng = seeded(torch, seed)
    device = smemkern.devices()[0]
    lines: list[Record] = []
    for _ in lasting(minutes):
        name, dtype = rng.choice(DTYPES)
        batch, shape, layout = unaligned(rng)
        a, b, out = operands(torch, batch, shape, layout, getattr(torch, dtype))
        us = packing_us(torch, partial(smemkern.gemm, a, b, variant=name, out=out, swapped=1))
        if us:
            what = {"itemsize": a.element_size(), "batch": batch, "shape": shape, "layout": layout}
            lines.append({**what, "us": us})
    print(f"packing: {len(lines)} calls, seed {seed}", flush=True)
    return {"gpu": device.description, "seed": seed, "torch": torch.__version__, "lines": lines}


def unaligned(rng: random.Random) -> tuple[int, tuple[int, int, int], str]:
    while True:
        batch, (m, n, k), layout = draw(rng, batched=rng.random() < 0.5)
        rows = (k if layout[0] == "N" else m), (n if layout[1] == "N" else k)
        if any(row % 8 for row in rows) and 2 * batch * m * n * k <= MOST_OPERATIONS:
            return batch, (m, n, k), layout


def terms_of(line: Record) -> tuple[float, ...]:
    from smemkern import _core

    multiprocessors = 132  # which does not matter either
    _, found, _ = _core.ring_facts(
        *((*line["shape"], line["batch"]), TILE, line["layout"]),
        *(multiprocessors, line["itemsize"], False),
    )
    return found


def fitted(lines: list[Record]) -> list[float]:
    import numpy as np
    from scipy.optimize import nnls

    terms = np.array([terms_of(line) for line in lines])
    weights = 1 / np.array([line["us"] for line in lines])
    costs, _ = nnls(terms * weights[:, None], np.ones(len(lines)))
    return [float(cost) for cost in costs]


def spread(costs: list[float], lines: list[Record]) -> float:
    """Standard deviation of ln(predicted / measured)."""
    return statistics.pstdev(math.log(dot(terms_of(line), costs) / line["us"]) for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("record", help="in benchmarks/results")
    record = records.load(records.RESULTS / f"{parser.parse_args().record}.json")
    lines = record["lines"]
    half = fitted(lines[::2])
    print(f"packaged {spread(packing_costs(), lines[1::2]):.3f}, ", end="")
    print(f"fitted to the other half {spread(half, lines[1::2]):.3f}")
    COSTS.write_text(
        f"/* Costs of core/plan_ring.c's packing, fitted to {len(lines)} launches on an "
        f"{record['gpu']}: benchmarks/packing.py. */\n"
        + ", ".join(f"{cost:.4g}" for cost in fitted(lines))
        + "\n"
    )


if __name__ == "__main__":
    main()
