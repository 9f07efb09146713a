"""Compares gemm with `auto` and cuBLAS (through PyTorch) over 101 calls: shapes and layouts.

A step of gpu.py. Arrays are on the GPU, and results go to existing arrays. Times are between CUDA
events, so they include all that a call enqueues, also packing. Runs of the two are interleaved.
"""

from __future__ import annotations

import importlib
import math
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

Record = dict[str, Any]
Shape = tuple[int, int, int]

SQUARES = [64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384]
PRIMES = [(61, 67, 71), (127, 131, 137), (251, 257, 263), (509, 521, 523), (1021, 1031, 1033)]
PRIMES += [(2039, 2053, 2063), (4093, 4099, 4111), (4095, 4097, 4093), (8191, 8209, 8219)]
# (M, N, K): tall, wide, small K, large K, few rows or columns, shapes of neural networks
OTHERS = [
    *[(16384, 256, 1024), (65536, 128, 256), (100000, 64, 64), (32768, 1024, 512)],
    *[(256, 16384, 1024), (128, 65536, 256), (64, 100000, 64), (1024, 32768, 512)],
    *[(4096, 4096, 16), (4096, 4096, 32), (4096, 4096, 64), (8192, 8192, 128), (2048, 2048, 8)],
    *[
        (64, 64, 65536),
        (128, 128, 32768),
        (256, 256, 65536),
        (512, 512, 16384),
        (1024, 1000, 65536),
    ],
    *[(1, 8192, 8192), (2, 8192, 8192), (4, 4096, 4096), (8, 8192, 8192), (16, 8192, 8192)],
    *[(32, 4096, 4096), (64, 8192, 8192), (8192, 1, 8192), (8192, 4, 8192), (8192, 16, 8192)],
    *[(4096, 32, 4096), (8192, 64, 8192), (1, 1, 1000000), (10000, 300, 1000), (300, 10000, 1000)],
    *[(2048, 12288, 4096), (2048, 4096, 12288), (512, 32000, 4096), (8192, 10240, 1280)],
    *[
        (1000, 1000, 1000),
        (1500, 700, 300),
        (3000, 5000, 2000),
        (5000, 5000, 5000),
        (777, 888, 999),
    ],
    *[(40, 40, 8000), (700, 700, 50), (6000, 100, 100), (9000, 9000, 300), (4097, 4097, 1)],
    *[(384, 384, 3072), (1, 1024, 1024), (1024, 1, 1024), (3, 3, 3), (20000, 20, 20)],
    *[(12288, 3072, 768), (197, 768, 3072), (50, 50, 50), (100, 2000, 30), (2000, 100, 2000)],
]
BATCHES = [(16, (128, 128, 128)), (64, (256, 256, 64)), (8, (1024, 1024, 1024)), (96, (77, 77, 64))]
LAYOUTS = ("NN", "NT", "TN", "TT")
CYCLES_PER_SECOND = 2e9  # approximate clock of torch.cuda._sleep


def shapes() -> Iterator[tuple[int, Shape, str]]:
    """(batch, shape, layout): every shape as NN, some in all layouts."""
    for shape in [(n, n, n) for n in SQUARES] + PRIMES + OTHERS:
        yield 1, shape, "NN"
    for shape in [(512,) * 3, (4096,) * 3, (4095, 4097, 4093), (2048, 300, 1000), (33, 4096, 511)]:
        for layout in LAYOUTS[1:]:
            yield 1, shape, layout
    for batch, shape in BATCHES:
        yield batch, shape, "NN"


def operands(torch: Any, batch: int, shape: Shape, layout: str, dtype: Any) -> tuple[Any, Any, Any]:
    m, n, k = shape
    lead = (batch,) if batch > 1 else ()
    a = torch.randn(*lead, *((m, k) if layout[0] == "N" else (k, m)), device="cuda").to(dtype)
    b = torch.randn(*lead, *((k, n) if layout[1] == "N" else (n, k)), device="cuda").to(dtype)
    a = a if layout[0] == "N" else a.transpose(-1, -2)
    b = b if layout[1] == "N" else b.transpose(-1, -2)
    return a, b, torch.empty(*lead, m, n, dtype=dtype, device="cuda")


def in_turns(torch: Any, work: list[Callable[[], object]], seconds: float) -> list[list[float]]:
    """Milliseconds of each run of each function; runs are interleaved.

    The GPU sleeps until a batch of runs is enqueued, so that times exclude the host's. `overhead`
    measures those.
    """
    for one in work:
        one()
    torch.cuda.synchronize()
    started = time.perf_counter()
    for one in work:
        one()
    queued = time.perf_counter() - started
    torch.cuda.synchronize()
    once = max(time.perf_counter() - started, 1e-5)
    runs = min(max(int(seconds / once), 3), 48)
    batch = 16  # runs of each function: the driver's queue holds some hundred launches
    times: list[list[float]] = [[] for _ in work]
    for first in range(0, runs, batch):
        events = [
            [[torch.cuda.Event(enable_timing=True) for _ in "se"] for _ in work]
            for _ in range(min(batch, runs - first))
        ]
        wait = 2 * queued * len(events) if once < 0.01 else 0.0
        torch.cuda._sleep(int(min(wait, 0.05) * CYCLES_PER_SECOND))
        for row in events:
            for one, (start, stop) in zip(work, row, strict=True):
                start.record()
                one()
                stop.record()
        torch.cuda.synchronize()
        for row in events:
            for own, (start, stop) in zip(times, row, strict=True):
                own.append(start.elapsed_time(stop))
    return times


def sweep(seconds: float = 0.15, dtypes: tuple[str, ...] = ("float32",)) -> Record:
    import torch

    import smemkern

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(2026)
    lines: list[Record] = []
    for dtype in dtypes:
        for batch, shape, layout in shapes():
            a, b, out = operands(torch, batch, shape, layout, getattr(torch, dtype))
            peer = torch.empty_like(out)
            work = [
                lambda a=a, b=b, out=out: smemkern.gemm(a, b, out=out),
                lambda a=a, b=b, peer=peer: torch.matmul(a, b, out=peer),
            ]
            out.fill_(math.nan)
            ours, theirs = map(statistics.median, in_turns(torch, work, seconds))
            exact = a.double() @ b.double()
            size = torch.linalg.norm(exact)
            errors = [float(torch.linalg.norm(x.double() - exact) / size) for x in (out, peer)]
            lines.append(
                {
                    **{"dtype": dtype, "batch": batch, "shape": shape, "layout": layout},
                    **{"ms": ours, "cublas_ms": theirs, "ratio": theirs / ours},
                    **{"error": errors[0], "cublas_error": errors[1]},
                }
            )
    ratios = [line["ratio"] for line in lines]
    worst = sorted(lines, key=lambda line: line["ratio"])[:10]
    for line in worst:
        print(line, flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(
        f"sweep: {len(lines)} shapes, geometric mean {mean:.2f} x cuBLAS, least {min(ratios):.2f}"
    )
    return {
        "torch": torch.__version__,
        "geometric_mean": mean,
        "least": min(ratios),
        "lines": lines,
    }


def calls_on_device_arrays() -> dict[str, Callable[[], object]]:
    """Small products that return after enqueueing, by smemkern and by the arrays' own libraries."""
    import smemkern

    calls: dict[str, Callable[[], object]] = {}
    for library in (importlib.import_module(name) for name in ("torch", "cupy") if find_spec(name)):
        make = {"device": "cuda"} if library.__name__ == "torch" else {}
        a = library.ones((64, 64), dtype=library.float32, **make)
        out = library.empty_like(a)
        calls |= {
            f"{library.__name__}: smemkern, out=": partial(
                smemkern.gemm, a, a, variant="tiled", out=out
            ),
            f"{library.__name__}: smemkern": partial(smemkern.gemm, a, a, variant="tiled"),
            f"{library.__name__}: smemkern auto, out=": partial(smemkern.gemm, a, a, out=out),
            f"{library.__name__}: matmul, out=": partial(library.matmul, a, a, out=out),
            f"{library.__name__}: matmul": partial(library.matmul, a, a),
        }
    return calls


def overhead(rounds: int = 100, batch: int = 50) -> Record:
    """Microseconds of host time per call that only enqueues its work.

    Medians of interleaved batches, so that changes of the CPU's clock affect all calls alike.
    """
    import torch

    calls = calls_on_device_arrays()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, one in calls.items():
            started = time.perf_counter()
            for _ in range(batch):
                one()
            times[name].append((time.perf_counter() - started) / batch * 1e6)
            torch.cuda.synchronize()
    record: Record = {name: statistics.median(each) for name, each in times.items()}
    for name, microseconds in record.items():
        print(f"{name:32}{microseconds:8.2f} us", flush=True)
    return record
