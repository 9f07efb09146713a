"""Times the variants among which `auto` chooses, on random calls, and fits its table to the times.

    python benchmarks/gpu.py tune --minutes 6      # on a GPU: writes results/times-<gpu>.json.xz
    python benchmarks/gpu.py tune --dtypes bfloat16 float16    # of some types
    python benchmarks/gpu.py tune --also gemv      # and of variants that the table lacks
    python benchmarks/tune.py times-nvidia-h200    # anywhere: fits smemkern/timings.json to it

The calls are drawn as in drawn.py, with other seeds, so what that reports judges the fit on calls
which it has not seen. Some have one row or one column. A call has the times of cuBLAS too, which
the fit does not use. `--also` names variants that are not in the table yet. They are timed where
they are made for the result, which half of the calls then are, and the fit adds rows for them. The
second command first fits to half of the calls, and reports what choices cost in the other half. It
takes several records, of different types. Times of kernels that have changed are of no use: a new
record of some minutes is.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import records
from drawn import candidates_of, draw, lasting, medians_beside, seeded, with_side
from rows import parameter_sets
from rows import table as variants_table
from sweep import Shape, operands, shapes

Record = dict[str, Any]
TWINS = {"bf16": "fp16", "mma_bf16": "mma_fp16"}
MOST_OPERATIONS = 2**37  # of one product
FEW = 100  # times of a row: with fewer it keeps its costs. Far slower rows are not timed
ONE_ROW = 0.1  # of the calls have one row or one column
# Of every 12 calls. Kernels for bfloat16 and float16 are the same, and fitted together.
TYPES = ("float32", "float64", "bfloat16") * 3 + ("float32", "float16", "float16")


def calls(
    rng: random.Random, dtypes: Iterable[str] = (), rows: int = 0
) -> Iterator[tuple[str, int, Shape, str]]:
    """(dtype, batch, (M, N, K), layout), without end: first the shapes of smemkern.bench. dtypes:
    those to draw from; none: all. rows: half of the results have no more, or no more columns."""
    from smemkern._performance.bench import SHAPES

    types = [dtype for dtype in TYPES if dtype in dtypes] or TYPES
    fixed = [*SHAPES, *(shape for batch, shape, layout in shapes() if layout == "NN")]
    for shape in dict.fromkeys(fixed):
        for dtype in dict.fromkeys(types):
            yield dtype, 1, shape, "NN"
    while True:
        for dtype in types:
            batch, shape, layout = draw(rng, batched=rng.random() < 0.25)
            if rows and rng.random() < 0.5:
                shape = with_side(rng, shape, rng.randint(1, rows))
            elif rng.random() < ONE_ROW:
                shape = with_side(rng, shape, 1)
            yield dtype, batch, shape, layout


def label_of(variant: str, params: dict[str, int]) -> str:
    return " ".join([variant, *(f"{key}={value}" for key, value in params.items())])


def variant_of(label: str) -> tuple[str, dict[str, int]]:
    name, *words = label.split()
    return name, {key: int(value) for key, value in (word.split("=") for word in words)}


def most_rows(variant: str) -> int:
    """Of results that the variant is made for, or their columns; 0: it is for all."""
    skinny = variants_table()["gemm", variant].skinny
    return skinny.rows[-1] if skinny else 0


def others_of(also: Iterable[str], dtype: str, shape: Shape) -> list[tuple[str, dict[str, int]]]:
    """Those of the variants that are made for a result, with the parameters that were compiled."""
    rows = [variants_table()["gemm", name] for name in also]
    return [
        (row.name, params)
        for row in rows
        if dtype in row.dtypes and min(shape[:2]) <= (most_rows(row.name) or math.inf)
        for params in parameter_sets(row)
    ]


def time_call(
    torch: Any, dtype: str, batch: int, shape: Shape, layout: str, also: Iterable[str]
) -> Record:
    """Microseconds of cuBLAS and of each candidate: medians, each in turns with cuBLAS alone."""
    import smemkern
    from smemkern._variants.choices import ACCURACIES

    a, b, out = operands(torch, batch, shape, layout, getattr(torch, dtype))
    peer = torch.empty_like(out)

    def cublas(tf32: bool) -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.matmul(a, b, out=peer)

    work: dict[str, Callable[[], object]] = {}
    if dtype == "float32":
        work["cuBLAS TF32"] = partial(cublas, True)
    near = candidates_of(dtype, ACCURACIES[-1], batch, shape, layout, far=4)
    for name, params in [*near, *others_of(also, dtype, shape)]:
        run = partial(smemkern.gemm, a, b, variant=name, out=out, **params)
        work[label_of(name, params)] = run
    peer, times = medians_beside(torch, partial(cublas, False), work, 0.0015)
    return {
        **{"dtype": dtype, "batch": batch, "shape": shape, "layout": layout},
        "us": {label: round(ms * 1e3, 2) for label, ms in {"cuBLAS": peer, **times}.items()},
    }


def measure(
    minutes: float,
    dtypes: Iterable[str] = (),
    also: Collection[str] = (),
    seed: int | None = None,
) -> Record:
    import torch

    import smemkern

    seed, rng = seeded(torch, seed)
    device = smemkern.devices()[0]
    lines: list[Record] = []
    drawn = calls(rng, dtypes, max(map(most_rows, also), default=0))
    for _, (dtype, batch, shape, layout) in zip(lasting(minutes), drawn, strict=False):
        if 2 * batch * math.prod(shape) <= MOST_OPERATIONS:
            lines.append(time_call(torch, dtype, batch, shape, layout, also))
    print(f"tune: {len(lines)} calls, seed {seed}", flush=True)
    facts = {"gpu": device.description, "sm": device.sm, "multiprocessors": device.multiprocessors}
    return {**facts, "torch": torch.__version__, "seed": seed, "lines": lines}


# ---- the fit


def lines_of(calls: list[Record]) -> Iterator[Any]:
    """Lines of a Bench: each time, and for 16 bits that of the same kernel for the other type."""
    from smemkern._performance.bench import Line

    twins = TWINS | {fp16: bf16 for bf16, fp16 in TWINS.items()}
    for call in calls:
        dtype, shape = call["dtype"], tuple(call["shape"])
        for label, us in call["us"].items():
            name, params = variant_of(label)
            ms, same = us * 1e-3, {dtype: name}
            if dtype.endswith("float16"):
                same["bfloat16" if dtype == "float16" else "float16"] = twins.get(name, name)
            for own, variant in same.items():
                yield Line(
                    *("gemm", variant, params, own, shape, ms, ms, 0.0),
                    batch=call["batch"],
                    layout=call["layout"],
                )


def with_new_rows(table: list[Any], timed: Iterable[tuple[str, str]]) -> list[Any]:
    """The table, and rows for what was timed, (dtype, label), that it has none for."""
    from smemkern._variants.cost_model import TERMS, Timing

    known = {(row.dtype, label_of(row.variant, row.params)) for row in table}
    new = []
    for dtype, label in sorted(set(timed) - known):
        name, params = variant_of(label)
        side = most_rows(name)
        for alignment in (16, 4, 1) if dtype.endswith("16") else (16, 4):
            for along in (1, 0) if side else (-1,):
                costs = (0.0,) * len(TERMS)
                new.append(Timing("gemm", name, params, dtype, alignment, side, costs, along))
    return [*table, *new]


def accuracies_of(dtype: str) -> tuple[str, ...]:
    """From the strictest on."""
    from smemkern._variants.choices import ACCURACIES

    return ACCURACIES[: {"float32": len(ACCURACIES), "float64": 2}.get(dtype, 1)]


def predicted_of(table: list[Any], call: Record, accuracy: str, device: Any) -> dict[str, float]:
    """The microseconds of each row that computes a call, by label."""
    from smemkern import _core
    from smemkern._variants.choices import alignment_of

    dtype, sizes = call["dtype"], (*call["shape"], call["batch"])
    predicted = _core.predict(
        *(table, "gemm", dtype, accuracy, sizes, device.sm, device.multiprocessors),
        *(call["layout"], alignment_of(tuple(call["shape"]), dtype, call["layout"])),
    )
    found = {}
    for index, time, _ in predicted:
        name, params = table[index].variant, table[index].params
        found[label_of(name, params)] = time
    return found


def regret(table: list[Any], calls: list[Record], device: Any) -> dict[str, float]:
    """By type: how many times as long the chosen variants take as the fastest, geometric mean."""
    found: dict[str, list[float]] = {}
    for call in calls:
        dtype, us = call["dtype"], call["us"]
        for accuracy in accuracies_of(dtype):
            predicted = predicted_of(table, call, accuracy, device)
            timed = [(time, us[label]) for label, time in predicted.items() if label in us]
            if timed:
                kind = "16 bits" if dtype.endswith("float16") else f"{dtype}, {accuracy}"
                found.setdefault(kind, []).append(min(timed)[1] / min(own for _, own in timed))
    return {kind: statistics.geometric_mean(ratios) for kind, ratios in found.items()}


def main() -> None:
    times = records.of_command_line(__doc__)

    from smemkern._performance.bench import Bench
    from smemkern._render.rows import Rows
    from smemkern._variants import cost_model

    device: Any = SimpleNamespace(sm=times[0]["sm"], multiprocessors=times[0]["multiprocessors"])
    lines = [call for record in times for call in record["lines"]]
    count = Counter((call["dtype"], label) for call in lines for label in call["us"])
    peers = ("cuBLAS", "cuBLAS TF32")
    known = {x for x, times in count.items() if times >= FEW and x[1] not in peers}
    table = with_new_rows(cost_model.read(cost_model.PACKAGED), known)
    calls = [
        {**call, "us": {x: us for x, us in call["us"].items() if (call["dtype"], x) in known}}
        for call in lines
    ]

    def fitted(some: list[Record]) -> list[Any]:
        return list(Bench(Rows(lines_of(some)), device).fitted(table)[0])

    half = fitted(calls[::2])
    for title, rows in (("packaged", table), ("fitted to the other half", half)):
        print(title, {kind: round(x, 4) for kind, x in regret(rows, calls[1::2], device).items()})
    facts = {key: times[0][key] for key in ("gpu", "commit", "date")}
    cost_model.write(cost_model.PACKAGED, fitted(calls), facts)


if __name__ == "__main__":
    main()
