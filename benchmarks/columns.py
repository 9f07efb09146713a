"""Times 16-bit products with all widths of tiles and K ranges; fits the planner to them.

    python benchmarks/gpu.py columns --minutes 1.5   # on a GPU: writes results/columns-GPU.json.xz
    python benchmarks/columns.py columns-nvidia-h200 # anywhere: writes csrc/core/ring_costs.def

The calls are random, of rows that TMA reads in place. A call has the times of cuBLAS too, which the
fit does not use. The second command first fits to half of the calls, and reports what choices cost
in the other half. It needs SciPy.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import time
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import records
from drawn import log_uniform, medians, seeded
from sweep import LAYOUTS, Shape, operands

Record = dict[str, Any]
Tile = tuple[int, int, int, bool]  # block_m, block_n, split, swapped
COSTS = records.ROOT / "csrc" / "core" / "ring_costs.def"
MOST_COLUMNS = {64: 128, 128: 256, 192: 192, 256: 128}
THIN, THIN_UNIT = 64, 8  # up to 64 rows or columns of C may have other kernels: block_n = 8
MOST_OPERATIONS = 2**36
FAR = 1.5  # what is expected to take as many times as long as the fastest is seldom timed ...
SELDOM = 0.15


# ---- the times


def draw(rng: random.Random) -> tuple[int, Shape, str]:
    """(batch, (M, N, K), layout): mostly multiples of 16, one in four batched."""
    while True:
        batch = log_uniform(rng, 2, 100) if rng.random() < 0.25 else 1
        unit = 8 if rng.random() < 0.2 else 16
        most = 16384 if batch == 1 else 1024
        m, n, k = (max(unit, round(log_uniform(rng, 8, most) / unit) * unit) for _ in range(3))
        small = batch * max(m * k, k * n, m * n) <= 2**26
        if small and 2 * batch * m * n * k <= MOST_OPERATIONS:
            return batch, (m, n, k), rng.choice(LAYOUTS)


def tiles(batch: int, shape: Shape, multiprocessors: int) -> Iterator[Tile]:
    """All widths, each with the numbers of ranges that fill up to two waves."""
    m, n, k = shape
    steps = math.ceil(k / 64)
    for (block_m, most), swapped in itertools.product(MOST_COLUMNS.items(), (False, True)):
        rows, columns = (n, m) if swapped else (m, n)
        widest = min(most, max(32, math.ceil(columns / 32) * 32))
        thin = (THIN_UNIT,) if columns <= THIN and swapped == (m < n) else ()
        for block_n in (*thin, *range(32, widest + 1, 32)):
            wide = block_n > THIN_UNIT
            count = math.ceil(rows / block_m) * batch
            count *= math.ceil(columns / block_n) if wide else 1
            most_ranges = int(min(2 * multiprocessors / count, steps / 2))
            some = (1, 2, 3, 4, 6, 9, 13) if wide else (*range(1, 9), 12, 18)
            for split in sorted({*some, multiprocessors // count, most_ranges}):
                if split == 1 or 1 < split <= most_ranges:
                    yield block_m, block_n, split, swapped


def width_of(shape: Shape, block_n: int) -> int:
    """The row of a kernel's costs: first those of 1 to 32, 33 to 64 ... columns of a thin tile."""
    thin = (min(shape[:2]) - 1) // 32
    return thin if block_n == THIN_UNIT else THIN // 32 - 1 + block_n // 32


def expected(batch: int, shape: Shape, layout: str, tile: Tile, multiprocessors: int) -> float:
    from smemkern import _core

    terms = _core.ring_terms((*shape, batch), tile, layout, multiprocessors)
    costs = read_costs()[tile[0] // 64 - 1][width_of(shape, tile[1])]
    return math.fsum(term * cost for term, cost in zip(terms, costs, strict=True))


def measure(minutes: float, seed: int | None = None) -> Record:
    import torch

    import smemkern

    seed, rng = seeded(torch, seed)
    device = smemkern.devices()[0]
    until = time.monotonic() + 60 * minutes
    lines: list[Record] = []
    while time.monotonic() < until:
        batch, shape, layout = draw(rng)
        dtype, variant = rng.choice([(torch.bfloat16, "bf16"), (torch.float16, "fp16")])
        a, b, out = operands(torch, batch, shape, layout, dtype)
        ours = {
            tile: expected(batch, shape, layout, tile, device.multiprocessors)
            for tile in tiles(batch, shape, device.multiprocessors)
        }
        far = FAR * min(ours.values())
        work = {"cuBLAS": partial(torch.matmul, a, b, out=torch.empty_like(out))}
        for tile, us in ours.items():
            if us < far or rng.random() < SELDOM:
                *numbers, swapped = tile
                params = dict(zip(("block_m", "block_n", "split"), numbers, strict=True))
                params["swapped"] = 2 if swapped else 1
                name = " ".join(map(str, map(int, tile)))
                work[name] = partial(smemkern.gemm, a, b, variant=variant, out=out, **params)
        times = medians(torch, work, 0.006)
        us = {name: round(ms * 1e3, 2) for name, ms in times.items()}
        lines.append({"batch": batch, "shape": shape, "layout": layout, "us": us})
    print(f"columns: {len(lines)} calls, seed {seed}", flush=True)
    facts = {"gpu": device.description, "multiprocessors": device.multiprocessors, "seed": seed}
    return {**facts, "torch": torch.__version__, "lines": lines}


# ---- the fit


@cache
def read_costs() -> list[list[list[float]]]:
    text = "\n".join(line for line in COSTS.read_text().splitlines() if not line.startswith("/*"))
    found: list[list[list[float]]] = json.loads(
        "[" + text.replace("{", "[").replace("}", "]").rstrip().rstrip(",") + "]"
    )
    return found


def fit(terms: Any, times: Any, fastest: Any) -> Any:
    """Nonnegative costs. What is far slower than the fastest, measured or predicted by the fit
    before, has a small weight."""
    import numpy as np
    from scipy.optimize import nnls

    near = times
    for _ in range(4):
        weights = np.minimum(1.2, fastest / np.minimum(near, times)) ** 4 / times
        costs, _ = nnls(terms * weights[:, None], times * weights)
        near = np.maximum(terms @ costs, 1e-3)
    return costs


def samples(record: Record, lines: list[Record]) -> dict[tuple[int, int], list[Any]]:
    """By kernel and width: (terms, microseconds, those of the fastest) of each time."""
    from smemkern import _core

    found: dict[tuple[int, int], list[Any]] = {}
    for line in lines:
        ours = {name: us for name, us in line["us"].items() if name != "cuBLAS"}
        for name, us in ours.items():
            block_m, block_n, *others = map(int, name.split())
            terms = _core.ring_terms(
                *((*line["shape"], line["batch"]), (block_m, block_n, *others)),
                *(line["layout"], record["multiprocessors"]),
            )
            tile = block_m, width_of(line["shape"], block_n)
            found.setdefault(tile, []).append((name, terms, us, min(ours.values())))
            line.setdefault("terms", {})[name] = terms
    return found


def fitted(record: Record, lines: list[Record]) -> dict[tuple[int, int], Any]:
    import numpy as np

    return {
        tile: fit(*(np.array(column) for column in list(zip(*rows, strict=True))[1:]))
        for tile, rows in samples(record, lines).items()
    }


def regret(costs: dict[tuple[int, int], Any], lines: list[Record]) -> float:
    """How many times as long the chosen tiles take as the fastest, geometric mean."""
    ratios = []
    for line in lines:
        ours = {name: us for name, us in line["us"].items() if name != "cuBLAS"}

        def predicted(
            name: str, terms: Record = line["terms"], shape: Shape = line["shape"]
        ) -> float:
            block_m, block_n, *_ = map(int, name.split())
            return float(costs[block_m, width_of(shape, block_n)] @ terms[name])

        ratios.append(ours[min(ours, key=predicted)] / min(ours.values()))
    return statistics.geometric_mean(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("record", help="in benchmarks/results")
    record = records.load(records.RESULTS / f"{parser.parse_args().record}.json")
    lines = record["lines"]
    samples(record, lines)
    packaged = {
        (64 * (i + 1), j): row for i, rows in enumerate(read_costs()) for j, row in enumerate(rows)
    }
    import numpy as np

    arrays = {tile: np.array(row) for tile, row in packaged.items()}
    print(f"packaged {regret(arrays, lines[1::2]):.4f}")
    print(f"fitted to the other half {regret(fitted(record, lines[::2]), lines[1::2]):.4f}")
    costs = fitted(record, lines)
    print(f"fitted to all {regret(costs, lines):.4f}")
    untimed = [1e6] + [0.0] * (len(packaged[64, 0]) - 1)
    text = (
        f"/* Costs of core/plan_ring.c's terms, fitted to {len(lines)} random calls on an "
        f"{record['gpu']}: benchmarks/columns.py. */\n"
    )
    for block_m, most in MOST_COLUMNS.items():
        rows = [
            "{" + ", ".join(f"{x:.4g}" for x in costs.get((block_m, width), untimed)) + "}"
            for width in range((THIN + most) // 32)
        ]
        text += "{" + ",\n ".join(rows) + "},\n"
    COSTS.write_text(text)


if __name__ == "__main__":
    main()
