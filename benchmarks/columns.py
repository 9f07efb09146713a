"""Times products in 16 bits and tf32 with all tiles and K ranges; fits the planner to them.

    python benchmarks/gpu.py columns --minutes 1.5   # on a GPU: writes results/columns-GPU.json.xz
    python benchmarks/columns.py columns-nvidia-h200 ... # anywhere: writes csrc/core/ring_*.def

The calls are random, of rows that TMA reads in place. A call has the times of cuBLAS too, which the
fit does not use. The second command leaves out times that were disturbed. It first fits to half of
the calls, and reports what choices cost in the other half. Costs of terms are fitted to the times,
then trees to what is left. It needs SciPy and CatBoost.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
from collections.abc import Iterable, Iterator
from functools import cache, partial
from typing import Any

import records
import trees
from drawn import lasting, log_uniform, medians, multiple, report_choices, seeded
from packing import dot, packing_costs
from sweep import LAYOUTS, Shape, operands

Record = dict[str, Any]
Kernel = tuple[int, int]  # bytes per element, block_m
Tile = tuple[int, int, int, bool, int, int]  # values of PARAMS
Row = tuple[Kernel, int, int, int]  # of costs: kernel, index of a cluster's size, load, width
PARAMS = ("block_m", "block_n", "split", "swapped", "multicast", "multicast_a")
COSTS = records.ROOT / "csrc" / "core" / "ring_costs.def"
TREES = {size: COSTS.with_name(f"ring_trees_{8 * size}.def") for size in (2, 4)}  # by bytes
TREE_COUNT = {2: 1000, 4: 200}
NEAR, MOST_CORRECTION = 1.25, 0.4  # trees are fitted to times so near the shortest of a call
MOST_COLUMNS: dict[Kernel, int] = {  # in the order of the file
    **{(2, block_m): most for block_m, most in {64: 192, 128: 320, 192: 192, 256: 128}.items()},
    **{(4, block_m): 2 * block_m for block_m in (64, 128)},
}
STEP_COLUMNS = {2: 16, 4: 32}  # from one width to the next
SUMMED = {(2, 64): 128, (2, 128): 128}  # columns of tiles whose ranges a cluster may add
MULTICAST = (1, 2, 4)  # blocks that share a tile
SIZES = (1, 2, 4, 8)  # of clusters whose blocks share tiles
LOADS = 3  # of the device: half of its multiprocessors have a block, all, or some have more
# (multicast, multicast_a)
SHARING = [(b, a) for a, b in itertools.product(MULTICAST, MULTICAST) if a * b <= SIZES[-1]]
ONLY = 16  # of tf32: all columns of C, if there are no more
THIN, THIN_UNIT = 64, 8  # up to 64 rows or columns of C may have other kernels: block_n = 8
MOST_OPERATIONS = 2**36
DTYPES = [("bf16", "bfloat16"), ("fp16", "float16"), ("tf32", "float32"), ("tf32", "float32")]
UNITS = {8: 0.2, 16: 0.5, 128: 0.3}  # sizes are multiples of it, so often
FAR = 1.15  # what is expected to take as many times as long as the fastest is seldom timed ...
SELDOM = 0.03
DISTURBED = 3
FIT_DISTURBED = 1.4  # times what the fit predicts: the host was late, or something ran beside
# Kernels timed in turns: the driver's queue has room for one round. Neighbours have the same code,
# and rounds are equally long: each of other code takes up to 0.5 us longer.
AT_ONCE = 120
FEW = 30  # times: costs of a row with fewer are those of all loads


# ---- the times


def draw(rng: random.Random) -> tuple[int, Shape, str]:
    """(batch, (M, N, K), layout): mostly multiples of 16, some of 128; one in four batched."""
    while True:
        batch = log_uniform(rng, 2, 100) if rng.random() < 0.25 else 1
        unit = rng.choices(list(UNITS), UNITS.values())[0]
        most = 16384 if batch == 1 else 1024
        sizes = [log_uniform(rng, 8, most) for _ in range(3)]
        m, n, k = (multiple(size, unit if size >= unit else min(unit, 16)) for size in sizes)
        small = batch * max(m * k, k * n, m * n) <= 2**26
        if small and 2 * batch * m * n * k <= MOST_OPERATIONS:
            return batch, (m, n, k), rng.choice(LAYOUTS)


def tiles(itemsize: int, batch: int, shape: Shape, multiprocessors: int) -> Iterator[Tile]:
    """All widths, each with the numbers of ranges that fill up to two waves."""
    m, n, k = shape
    steps = math.ceil(k * itemsize / 128)
    for ((size, block_m), most), swapped in itertools.product(MOST_COLUMNS.items(), (False, True)):
        if size != itemsize:
            continue
        rows, columns = (n, m) if swapped else (m, n)
        narrowest = 64 if (itemsize, block_m) == (4, 128) else 32
        unit = STEP_COLUMNS[itemsize]
        widest = min(most, max(narrowest, math.ceil(columns / unit) * unit))
        widths = [*range(narrowest, widest + 1, unit)]
        if (itemsize, block_m) == (4, 64) and columns <= ONLY:
            widths = [ONLY]
        if itemsize == 2 and columns <= THIN and swapped == (m < n):
            widths.append(THIN_UNIT)
        for block_n in widths:
            thin = block_n == THIN_UNIT
            count = math.ceil(rows / block_m) * batch
            count *= 1 if thin else math.ceil(columns / block_n)
            most_ranges = int(min(2 * multiprocessors / count, steps / 2))
            clusters = thin or block_n <= SUMMED.get((itemsize, block_m), 0)
            some = (*range(1, 9), 12, 18) if clusters else (1, 2, 3, 4, 6, 9, 13)
            for split in sorted({*some, multiprocessors // count, most_ranges}):
                if split == 1 or 1 < split <= most_ranges:
                    for below, beside in SHARING[: 1 if thin else None]:
                        fits = 2 * rows > block_m * below and block_n % (8 * below) == 0
                        wide = beside == 1 or 2 * columns > block_n * beside
                        if (below == 1 or fits) and wide:
                            yield block_m, block_n, split, swapped, below, beside


def row_of(itemsize: int, shape: Shape, tile: Tile, load: int) -> Row:
    """Which costs a tile has: first of a kernel are those of 1 to 32, 33 to 64 columns of a thin
    tile."""
    block_m, block_n, _, _, below, beside = tile
    if block_n == THIN_UNIT:
        width = (min(shape[:2]) - 1) // 32
    else:
        width = 0 if block_n == ONLY else THIN // 32 - 1 + block_n // STEP_COLUMNS[itemsize]
    return (itemsize, block_m), SIZES.index(below * beside), load, width


def expected(
    itemsize: int, batch: int, shape: Shape, layout: str, tile: Tile, multiprocessors: int
) -> float:
    """Microseconds, without trees."""
    from smemkern import _core

    facts, packing, load = _core.ring_facts(
        *((*shape, batch), tile, layout, multiprocessors, itemsize, True)
    )
    kernel, size, _, width = row_of(itemsize, shape, tile, load)
    costs = read_costs()[list(MOST_COLUMNS).index(kernel)][size][load][width]
    return dot(facts[: len(costs)], costs) + dot(packing, packing_costs())


def measure(minutes: float, dtypes: Iterable[str] = (), seed: int | None = None) -> Record:
    import torch

    import smemkern

    seed, rng = seeded(torch, seed)
    device = smemkern.devices()[0]
    lines: list[Record] = []
    drawn = [pair for pair in DTYPES if pair[1] in dtypes] or DTYPES
    for _ in lasting(minutes):
        batch, shape, layout = draw(rng)
        name, dtype = rng.choice(drawn)
        itemsize = 4 if name == "tf32" else 2
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        a, b, out = operands(torch, batch, shape, layout, getattr(torch, dtype))
        ours = {
            tile: expected(itemsize, batch, shape, layout, tile, device.multiprocessors)
            for tile in tiles(itemsize, batch, shape, device.multiprocessors)
        }
        far = FAR * min(ours.values())
        cublas = partial(torch.matmul, a, b, out=torch.empty_like(out))
        work = {}
        for tile, us in ours.items():
            if us < far or rng.random() < SELDOM:
                params = dict(zip(PARAMS, tile, strict=True))
                params["swapped"] += 1
                work[" ".join(map(str, map(int, tile)))] = partial(
                    smemkern.gemm, a, b, variant=name, out=out, **params
                )
        us, peer = {}, []
        rounds = math.ceil(len(work) / AT_ONCE)
        for at in range(rounds):
            some = dict(itertools.islice(work.items(), at, None, rounds))
            times = medians(torch, {"cuBLAS": cublas, **some}, 0.004)
            us |= {tile: round(ms * 1e3, 2) for tile, ms in times.items()}
            peer.append(us["cuBLAS"])
        us["cuBLAS"] = statistics.median(peer)
        what = {"itemsize": itemsize, "batch": batch, "shape": shape, "layout": layout}
        lines.append({**what, "us": us})
    print(f"columns: {len(lines)} calls, seed {seed}", flush=True)
    facts = {"gpu": device.description, "multiprocessors": device.multiprocessors, "seed": seed}
    return {**facts, "torch": torch.__version__, "lines": lines}


# ---- the fit


@cache
def read_costs() -> list[list[list[list[list[float]]]]]:
    text = "\n".join(line for line in COSTS.read_text().splitlines() if not line.startswith("/*"))
    found: list[list[list[list[list[float]]]]] = json.loads(
        "[" + text.replace("{", "[").replace("}", "]").rstrip().rstrip(",") + "]"
    )
    return found


@cache
def read_trees(itemsize: int) -> list[trees.Tree]:
    return trees.read(TREES[itemsize])


def fit(terms: Any, times: Any, fastest: Any) -> Any:
    """Nonnegative costs. What is far slower than the fastest, measured or predicted by the fit
    before, has a small weight; what is far slower than predicted was disturbed, and has none."""
    import numpy as np
    from scipy.optimize import nnls

    near, limit = times, math.inf
    for _ in range(5):
        weights = np.minimum(1.2, fastest / np.minimum(near, times)) ** 4 / times
        weights *= times < limit * near
        costs, _ = nnls(terms * weights[:, None], times * weights)
        near, limit = np.maximum(terms @ costs, 1e-3), FIT_DISTURBED
    return costs


def tile_of(text: str) -> Tile:
    """In earlier records no blocks share tiles."""
    block_m, block_n, split, swapped, *sharing = map(int, text.split())
    below, beside = [*sharing, 1, 1][:2]
    return block_m, block_n, split, bool(swapped), below, beside


def cost_of(line: Record, tile: str) -> Row:
    return row_of(line["itemsize"], line["shape"], tile_of(tile), line["load"][tile])


def add_facts(record: Record, line: Record) -> None:
    from smemkern import _core

    line.setdefault("itemsize", 2)
    line["cuBLAS"] = line["us"].pop("cuBLAS")
    line["facts"], line["packing"], line["load"] = {}, {}, {}
    for tile in line["us"]:
        line["facts"][tile], packing, line["load"][tile] = _core.ring_facts(
            *((*line["shape"], line["batch"]), tile_of(tile)),
            *(line["layout"], record["multiprocessors"], line["itemsize"], True),
        )
        line["packing"][tile] = dot(packing, packing_costs())


def is_disturbed(line: Record) -> bool:
    """Whether something else ran beside a call: then all its times are some times too long."""
    return bool(line["cuBLAS"] > DISTURBED * min(line["us"].values()))


def fitted(lines: list[Record]) -> dict[Row, Any]:
    import numpy as np

    terms = len(read_costs()[0][0][0][0])
    of_load: dict[Row, list[Any]] = {}
    of_all: dict[tuple[Kernel, int, int], list[Any]] = {}
    for line in lines:
        fastest = min(line["us"].values())
        for tile, us in line["us"].items():
            sample = line["facts"][tile][:terms], us - line["packing"][tile], fastest
            kernel, size, load, width = cost_of(line, tile)
            of_load.setdefault((kernel, size, load, width), []).append(sample)
            of_all.setdefault((kernel, size, width), []).append(sample)
    costs: dict[Row, Any] = {}
    for (kernel, size, width), every in of_all.items():
        for load in range(LOADS):
            own = of_load.get((kernel, size, load, width), [])
            columns = zip(*(own if len(own) >= FEW else every), strict=True)
            costs[kernel, size, load, width] = fit(*map(np.array, columns))
    return costs


def predicted(costs: dict[Row, Any], line: Record, tile: str) -> float:
    """Without trees."""
    cost = costs[cost_of(line, tile)]
    return float(cost @ line["facts"][tile][: len(cost)]) + line["packing"][tile]


def drop_disturbed(costs: dict[Row, Any], lines: list[Record]) -> None:
    """Times far longer than these costs predict."""
    for line in lines:
        for tile, us in list(line["us"].items()):
            if us > FIT_DISTURBED * predicted(costs, line, tile):
                del line["us"][tile]


def near_tiles(costs: dict[Row, Any], line: Record) -> tuple[list[str], Any, Any]:
    """The tiles among which the planner chooses; times without trees, and facts."""
    import numpy as np

    times = {
        tile: predicted(costs, line, tile) for tile in line["us"] if cost_of(line, tile) in costs
    }
    least = min(times.values())
    tiles = [tile for tile, time in times.items() if time < NEAR * least]
    return tiles, *(np.array([of[tile] for tile in tiles]) for of in (times, line["facts"]))


def fitted_trees(costs: dict[Row, Any], lines: list[Record]) -> dict[int, list[trees.Tree]]:
    """By bytes of an element. What is slower than the fastest has a small weight, as in fit()."""
    import numpy as np

    samples: dict[int, list[tuple[Any, Any, Any]]] = {}
    for line in lines:
        tiles, times, facts = near_tiles(costs, line)
        us = np.array([line["us"][tile] for tile in tiles])
        packing = np.array([line["packing"][tile] for tile in tiles])
        logs = np.log(np.maximum(us - packing, 0.1) / np.maximum(times - packing, 0.1))
        weights = np.minimum(1.2, us.min() / np.minimum(times, us)) ** 6
        samples.setdefault(line["itemsize"], []).append((facts, logs, weights))
    found = {}
    for itemsize, parts in samples.items():
        facts, logs, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        clipped = np.clip(logs, -MOST_CORRECTION, MOST_CORRECTION)
        found[itemsize] = trees.fit(
            *(facts.astype(np.float32), clipped, weights, TREE_COUNT[itemsize])
        )
    return found


def ratios(
    costs: dict[Row, Any], of: dict[int, list[trees.Tree]], line: Record
) -> tuple[float, float]:
    """The chosen tile's time by that of the fastest; cuBLAS's by the chosen one's."""
    tiles, times, facts = near_tiles(costs, line)
    packing = [line["packing"][tile] for tile in tiles]
    sums = times - packing
    corrected = packing + sums * trees.corrections(of[line["itemsize"]], facts)
    us = float(line["us"][tiles[int(corrected.argmin())]])
    return us / min(line["us"].values()), line["cuBLAS"] / us


def report(
    title: str, costs: dict[Row, Any], of: dict[int, list[trees.Tree]], lines: list[Record]
) -> None:
    for itemsize in of:
        found = [ratios(costs, of, line) for line in lines if line["itemsize"] == itemsize]
        if found:
            report_choices(f"{title}, {8 * itemsize} bits", found)


def main() -> None:
    lines: list[Record] = []
    for record in records.of_command_line(__doc__):
        for line in record["lines"]:
            add_facts(record, line)
        lines += [line for line in record["lines"] if not is_disturbed(line)]
    import numpy as np

    packaged = {
        (kernel, size, load, width): np.array(row)
        for kernel, tables in zip(MOST_COLUMNS, read_costs(), strict=True)
        for size, loads in enumerate(tables)
        for load, rows in enumerate(loads)
        for width, row in enumerate(rows)
    }
    drop_disturbed(fitted(lines), lines)
    lines = [line for line in lines if line["us"]]
    half, other = lines[::2], lines[1::2]
    report("packaged", packaged, {size: read_trees(size) for size in TREES}, other)
    costs = fitted(half)
    report("fitted to the other half", costs, fitted_trees(costs, half), other)
    costs = fitted(lines)
    fitted_to_all = fitted_trees(costs, lines)
    report("fitted to all", costs, fitted_to_all, lines)
    about = f"fitted to {len(lines)} random calls on an {record['gpu']}: benchmarks/columns.py."
    for itemsize, found in fitted_to_all.items():
        trees.write(TREES[itemsize], found, f"Trees of core/plan_ring_trees.c, {about}")
    untimed = [1e6] + [0.0] * (len(next(iter(packaged.values()))) - 1)
    text = (
        f"/* Costs of core/plan_ring.c's terms, fitted to {len(lines)} random calls on an "
        f"{record['gpu']}: benchmarks/columns.py. */\n"
    )
    for kernel, most in MOST_COLUMNS.items():
        widths = range(THIN // 32 + most // STEP_COLUMNS[kernel[0]])
        tables = [
            ",\n  ".join(
                "{" + ", ".join(f"{x:.4g}" for x in costs.get((kernel, *at, w), untimed)) + "}"
                for w in widths
            )
            for at in itertools.product(range(len(SIZES)), range(LOADS))
        ]
        sizes = ["},\n {".join(tables[at : at + LOADS]) for at in range(0, len(tables), LOADS)]
        text += "{{{" + "}},\n{{".join(sizes) + "}}},\n"
    COSTS.write_text(text)


if __name__ == "__main__":
    main()
