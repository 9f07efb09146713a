"""Times gemm's `gemv` with many forms of its blocks; fits the planner's prediction to them.

    python benchmarks/gpu.py gemv --minutes 1      # on a GPU: writes results/gemv-GPU.json.xz
    python benchmarks/gemv.py gemv-nvidia-h200     # anywhere: writes csrc/core/gemv_costs.def

The calls are random products of one row or one column. A call has the times of cuBLAS too, which
the fit does not use. The second command first fits to half of the calls, and reports what choices
cost in the other half.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import records
from drawn import draw, lasting, medians_beside, report_choices, seeded, with_side
from packing import dot
from sweep import operands

Record = dict[str, Any]
Order = tuple[bool, int]  # whether the matrix is K-major; bytes of an element
COSTS = records.ROOT / "csrc" / "core" / "gemv_costs.def"
DTYPES = ("float32", "float32", "float64", "float64", "bfloat16", "float16")
NAMES = ("lanes", "threads", "split")
FAR, SELDOM = 1.4, 0.1  # forms expected to take so many times as long are seldom timed
MOST = 40  # forms of a call
ORDERS = [(along, itemsize) for along in (False, True) for itemsize in (2, 4, 8)]


def order_of(line: Record) -> Order:
    (m, n, k), layout = line["shape"], line["layout"]
    k_major = layout[0] == "N" if n < m else layout[1] == "T"
    return max(m, n) == 1 or (k > 1 and k_major), line["itemsize"]


def forms_of(line: Record, multiprocessors: int) -> dict[str, tuple[tuple[float, ...], float]]:
    """(terms, predicted microseconds) of each form; "lanes threads split"."""
    from smemkern import _core

    along, itemsize = order_of(line)
    pitch = line["shape"][2] if along else max(line["shape"][:2])
    found = _core.gemv_forms(
        *((*line["shape"], line["batch"]), line["layout"], multiprocessors, itemsize),
        pitch * itemsize % 16 == 0,
    )
    return {" ".join(map(str, form)): (terms, us) for form, terms, us in found}


def some_of(rng: random.Random, forms: dict[str, float]) -> list[str]:
    """Mostly those that are expected to be fast."""
    far = FAR * min(forms.values())
    near = [form for form, us in forms.items() if us < far or rng.random() < SELDOM]
    return rng.sample(near, min(len(near), MOST))


def measure(minutes: float, seed: int | None = None) -> Record:
    import torch

    import smemkern

    seed, rng = seeded(torch, seed)
    device = smemkern.devices()[0]
    lines: list[Record] = []
    for _ in lasting(minutes):
        batch, shape, layout = draw(rng, batched=rng.random() < 0.25)
        shape, dtype = with_side(rng, shape, 1), rng.choice(DTYPES)
        a, b, out = operands(torch, batch, shape, layout, getattr(torch, dtype))
        line = {"itemsize": a.element_size(), "batch": batch, "shape": shape, "layout": layout}
        predicted = {form: us for form, (_, us) in forms_of(line, device.multiprocessors).items()}
        work = {}
        for form in some_of(rng, predicted):
            params = dict(zip(NAMES, map(int, form.split()), strict=True))
            work[form] = partial(smemkern.gemm, a, b, variant="gemv", out=out, **params)
        cublas = partial(torch.matmul, a, b, out=torch.empty_like(out))
        peer, times = medians_beside(torch, cublas, work, 0.0012)
        us = {name: round(ms * 1e3, 2) for name, ms in {"cuBLAS": peer, **times}.items()}
        lines.append({**line, "us": us})
    print(f"gemv: {len(lines)} calls, seed {seed}", flush=True)
    facts = {"gpu": device.description, "multiprocessors": device.multiprocessors, "seed": seed}
    return {**facts, "torch": torch.__version__, "lines": lines}


def add_terms(line: Record, multiprocessors: int) -> None:
    forms = forms_of(line, multiprocessors)
    line["cuBLAS"] = line["us"].pop("cuBLAS")
    line["us"] = {form: us for form, us in line["us"].items() if form in forms}
    line["terms"] = {form: forms[form][0] for form in line["us"]}
    line["packaged"] = {form: forms[form][1] for form in line["us"]}


def fit_to(lines: list[Record]) -> list[float]:
    import numpy as np

    from smemkern._performance.bench import fit

    terms = np.array([terms for line in lines for terms in line["terms"].values()])
    times = np.array([us for line in lines for us in line["us"].values()])
    fastest = np.array([min(line["us"].values()) for line in lines for _ in line["us"]])
    return fit(terms, times, fastest)[0]


def fitted(lines: list[Record]) -> dict[Order, list[float]]:
    return {order: fit_to([line for line in lines if order_of(line) == order]) for order in ORDERS}


def report(title: str, lines: list[Record], costs: dict[Order, list[float]] | None) -> None:
    """What choices by these costs, or the packaged ones, take; by order."""
    for order in ORDERS:
        ratios = []
        for line in lines:
            if order_of(line) == order:
                predicted = (
                    line["packaged"]
                    if costs is None
                    else {form: dot(terms, costs[order]) for form, terms in line["terms"].items()}
                )
                us = line["us"][min(predicted, key=predicted.__getitem__)]
                ratios.append((us / min(line["us"].values()), line["cuBLAS"] / us))
        name = f"{'along' if order[0] else 'across'}, {order[1]} bytes"
        report_choices(f"{title}, {name}", ratios)


def main() -> None:
    lines: list[Record] = []
    for record in records.of_command_line(__doc__):
        for line in record["lines"]:
            add_terms(line, record["multiprocessors"])
        lines += [line for line in record["lines"] if line["us"]]
    report("packaged", lines[1::2], None)
    report("fitted to the other half", lines[1::2], fitted(lines[::2]))
    rows = [", ".join(f"{cost:.3g}" for cost in costs) for costs in fitted(lines).values()]
    half = len(rows) // 2
    orders = ["{{" + "},\n {".join(some) + "}}" for some in (rows[:half], rows[half:])]
    COSTS.write_text(
        f"/* Costs of core/plan_gemv.c's terms, fitted to {len(lines)} products on an "
        f"{record['gpu']}: benchmarks/gemv.py. */\n" + ",\n".join(orders) + "\n"
    )


if __name__ == "__main__":
    main()
