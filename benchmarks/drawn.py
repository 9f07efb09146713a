"""Compares `auto` with PyTorch on shapes that nobody chose: drawn at random, a new seed per run.

    python benchmarks/drawn.py --count 60                     # 60 draws of each kind
    python benchmarks/drawn.py --count 60 --seed 7 --candidates --output drawn.json

Part of the step `sweep` of gpu.py. M, N and K are log-uniform in 2..16384, half of the shapes are
rounded to multiples of 16, the layout is one of NN, NT, TN, TT. Vectors are results of one row or
one column, drawn alike. Times are medians between CUDA events, in turns with torch.matmul
(transposes: with a copy of the same bytes and PyTorch's transpose).
`--candidates` also times the variants among which `auto` chooses. That tells a wrong choice from a
missing kernel.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import secrets
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sweep import LAYOUTS, in_turns, operands

Record = dict[str, Any]
Shape = tuple[int, int, int]

LIMIT = 16384
MOST_ELEMENTS = 2**28  # of one array
TINY_US = 8  # a product that takes cuBLAS less is tiny


class Kind(NamedTuple):
    """A row of the table of results: the calls it draws."""

    dtype: str
    accuracy: str = "float32"
    batched: bool = False
    vector: bool = False


KINDS = {
    "float32": Kind("float32"),
    "norm": Kind("float32", "norm"),
    "tf32": Kind("float32", "tf32"),
    "tf32-norm": Kind("float32", "tf32-norm"),
    "float64": Kind("float64"),
    "float64, norm": Kind("float64", "norm"),
    "bfloat16": Kind("bfloat16"),
    "float16": Kind("float16"),
    "batches, float32": Kind("float32", batched=True),
    "batches, bfloat16": Kind("bfloat16", batched=True),
    "batches, float64": Kind("float64", batched=True),
    "vectors, float32": Kind("float32", vector=True),
    "vectors, bfloat16": Kind("bfloat16", vector=True),
    "vectors, float64": Kind("float64", vector=True),
}
BITS = ("uint8", "int16", "float32", "float64")  # of transposes


def log_uniform(rng: random.Random, low: int, high: int) -> int:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


def multiple(size: int, unit: int) -> int:
    """The nearest multiple of the unit, at least one."""
    return max(unit, round(size / unit) * unit)


def half_rounded(rng: random.Random, shape: Iterable[int]) -> tuple[int, ...]:
    """The shape; half of the time rounded to multiples of 16."""
    return tuple(multiple(n, 16) for n in shape) if rng.random() < 0.5 else tuple(shape)


def draw(rng: random.Random, batched: bool = False) -> tuple[int, Shape, str]:
    """(batch, (M, N, K), layout)"""
    while True:
        batch = log_uniform(rng, 2, 500) if batched else 1
        most = 1024 if batched else LIMIT
        m, n, k = half_rounded(rng, [log_uniform(rng, 2, most) for _ in range(3)])
        if batch * max(m * k, k * n, m * n) <= MOST_ELEMENTS:
            return batch, (m, n, k), rng.choice(LAYOUTS)


def with_side(rng: random.Random, shape: Shape, side: int) -> Shape:
    """So many rows, or so many columns."""
    return rng.choice([(side, *shape[1:]), (shape[0], side, shape[2])])


def seeded(torch: Any, seed: int | None) -> tuple[int, random.Random]:
    """The seed, a new one for None, and random numbers of it; PyTorch's are seeded too."""
    seed = secrets.randbits(32) if seed is None else seed
    torch.manual_seed(seed)
    return seed, random.Random(seed)


def lasting(minutes: float) -> Iterator[None]:
    """Again and again, until so many minutes have passed."""
    until = time.monotonic() + 60 * minutes
    while time.monotonic() < until:
        yield


def medians(torch: Any, work: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Milliseconds of each."""
    times = in_turns(torch, list(work.values()), seconds)
    return {name: statistics.median(each) for name, each in zip(work, times, strict=True)}


def medians_beside(
    torch: Any, peer: Callable[[], object], work: dict[str, Callable[[], object]], seconds: float
) -> tuple[float, dict[str, float]]:
    """Milliseconds of the peer, and of each in turns with the peer alone. In turns with many, a
    kernel takes 0.2 to 0.6 us longer, by how much depends on the kernel."""
    pairs = {name: in_turns(torch, [peer, run], seconds) for name, run in work.items()}
    of_peer = statistics.median(ms for times, _ in pairs.values() for ms in times)
    return of_peer, {name: statistics.median(times) for name, (_, times) in pairs.items()}


def error_of(torch: Any, a: Any, b: Any, out: Any) -> float:
    """Relative to the norm of the product in float64."""
    exact = a.double() @ b.double()
    return float(torch.linalg.norm(out.double() - exact) / torch.linalg.norm(exact))


def candidates_of(
    dtype: str, accuracy: str, batch: int, shape: Shape, layout: str, far: float = 6
) -> list[tuple[str, dict[str, int]]]:
    """What `auto` chooses among, but for what it expects to take `far` times as long."""
    import smemkern

    every = smemkern.choices(*shape, dtype=dtype, accuracy=accuracy, batch=batch, layout=layout)
    return [(c.variant, c.params) for c in every if c.microseconds < far * every[0].microseconds]


def product(torch: Any, kind: Kind, rng: random.Random, seconds: float, candidates: bool) -> Record:
    import smemkern

    batch, shape, layout = draw(rng, kind.batched)
    if kind.vector:
        shape = with_side(rng, shape, 1)
    a, b, out = operands(torch, batch, shape, layout, getattr(torch, kind.dtype))
    peer = torch.empty_like(out)
    torch.backends.cuda.matmul.allow_tf32 = kind.accuracy.startswith("tf32")
    work: dict[str, Callable[[], object]] = {
        "auto": partial(smemkern.gemm, a, b, accuracy=kind.accuracy, out=out),
        "cublas": partial(torch.matmul, a, b, out=peer),
    }
    out.fill_(math.nan)
    line: Record = {"batch": batch, "shape": shape, "layout": layout}
    if math.prod(shape) * batch < 2**36:
        work["auto"]()
        line["error"] = error_of(torch, a, b, out)
    named = candidates_of(kind.dtype, kind.accuracy, batch, shape, layout) if candidates else []
    for variant, params in named:
        name = f"{variant} {json.dumps(params)}" if params else variant
        one = partial(smemkern.gemm, a, b, variant=variant, out=out, **params)
        try:
            one()
        except (ValueError, TypeError):
            continue
        work[name] = one
    times = medians(torch, work, seconds)
    line |= {"ms": times.pop("auto"), "cublas_ms": times.pop("cublas")}
    return {**line, **({"candidates": times} if candidates else {})}


def transpose(torch: Any, rng: random.Random, seconds: float) -> Record:
    import smemkern

    bits = rng.choice(BITS)
    while True:
        shape = half_rounded(rng, [log_uniform(rng, 2, 4 * LIMIT) for _ in range(2)])
        if math.prod(shape) <= MOST_ELEMENTS:
            break
    x = torch.randint(0, 99, shape, device="cuda").to(getattr(torch, bits))
    out, theirs, same = (torch.empty_like(y) for y in (x.T.contiguous(), x.T.contiguous(), x))
    work = {
        "ms": partial(smemkern.transpose, x, out=out),
        "copy_ms": partial(same.copy_, x),
        "torch_ms": partial(theirs.copy_, x.T),
    }
    out.zero_()
    work["ms"]()
    if not bool((out == x.T).all()):
        raise SystemExit(f"transpose of {shape} {bits} is wrong")
    return {"dtype": bits, "shape": shape, **medians(torch, work, seconds)}


def geometric_mean(ratios: Iterable[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))


def summary(lines: list[Record], peer: str) -> Record:
    ratios = sorted(line[peer] / line["ms"] for line in lines)
    tiny = [line[peer] / line["ms"] for line in lines if line[peer] * 1e3 < TINY_US]
    worst = min(lines, key=lambda line: line[peer] / line["ms"])
    return {
        "geometric_mean": geometric_mean(ratios),
        "tiny": geometric_mean(tiny) if tiny else None,
        "below_0.9": sum(ratio < 0.9 for ratio in ratios) / len(ratios),
        "below_0.8": sum(ratio < 0.8 for ratio in ratios) / len(ratios),
        "least": ratios[0],
        "worst": {key: worst[key] for key in ("batch", "shape", "layout", "dtype") if key in worst},
    }


def sweep(
    count: int, seed: int | None = None, seconds: float = 0.02, candidates: bool = False
) -> Record:
    """`count` draws of each kind: a summary, and a line per draw."""
    import torch

    seed, rng = seeded(torch, seed)
    print(f"drawn shapes: seed {seed}, {count} of each kind", flush=True)
    record: Record = {"seed": seed, "torch": torch.__version__}
    for name, kind in KINDS.items():
        lines = [product(torch, kind, rng, seconds, candidates) for _ in range(count)]
        record[name] = {**summary(lines, "cublas_ms"), "lines": lines}
        report(name, record[name])
    lines = [transpose(torch, rng, seconds) for _ in range(count)]
    record["transposes"] = {
        **summary(lines, "copy_ms"),
        "torch_least": min(line["torch_ms"] / line["ms"] for line in lines),
        "lines": lines,
    }
    report("transposes", record["transposes"])
    return record


def report_choices(title: str, ratios: list[tuple[float, float]]) -> None:
    """(time of what was chosen by that of the fastest, cuBLAS's time by it) of each call."""
    regret = geometric_mean(ratio for ratio, _ in ratios)
    behind = sum(share < 0.9 for _, share in ratios) / len(ratios)
    print(
        f"{title}: {len(ratios)} calls, {regret:.4f} times the fastest; "
        f"{behind:.1%} behind cuBLAS by more than a tenth"
    )


def report(name: str, part: Record) -> None:
    shares = ", ".join(f"{key} {part[key]:.3f}" for key in ("below_0.9", "below_0.8", "least"))
    tiny = f"{part['tiny']:.3f}" if part["tiny"] else "-"
    print(
        f"{name:20}{part['geometric_mean']:.3f}, tiny {tiny}, {shares} {part['worst']}", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60, help="draws of each kind")
    parser.add_argument("--seed", type=int, help="default: a new one")
    parser.add_argument("--seconds", type=float, default=0.02, help="time budget of each draw")
    parser.add_argument("--candidates", action="store_true", help="time every variant")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    record = sweep(options.count, options.seed, options.seconds, options.candidates)
    if options.output:
        options.output.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
