"""Calls with NumPy arrays in pageable memory, compared with CuPy, PyTorch and the bus.

A step of gpu.py. Each line has wall-clock times of whole calls, interleaved with those of the peers
on the same data. The result is newly allocated in each call, as in an expression. `floor_ms` is the
larger of the kernel's time and that of all transfers without overlap, at measured rates.
`overlapped_floor_ms` assumes transfers in both directions at once.
"""

from __future__ import annotations

import importlib
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import smemkern

Record = dict[str, Any]

GEMM_SIZES = [256, 512, 1024, 1536, 2048, 4096, 8192, 16384]
TRANSPOSE_SHAPES = [(1024, 1024), (4096, 4096), (8192, 8192), (16384, 16384), (4097, 8191)]
TRANSPOSE_SHAPES += [(100000, 64), (64, 100000)]
BUS_BYTES = 256 << 20


def bus(torch: Any) -> Record:
    """GB/s between pinned memory and the GPU: to it, from it, and the sum of both at once."""
    host = [torch.empty(BUS_BYTES, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    device = [torch.empty(BUS_BYTES, dtype=torch.uint8, device="cuda") for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(2)]

    def move(ways: tuple[int, ...]) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for way in ways:
            with torch.cuda.stream(streams[way]):
                to, source = (device, host) if way == 0 else (host, device)
                to[way].copy_(source[way], non_blocking=True)
        torch.cuda.synchronize()
        return len(ways) * BUS_BYTES / (time.perf_counter() - start) / 1e9

    names = {"in": (0,), "out": (1,), "both": (0, 1)}
    return {name: max(move(ways) for _ in range(5)) for name, ways in names.items()}


def times_in_turns(
    work: dict[str, Callable[[], object]], seconds: float, most: float = math.inf
) -> dict[str, list[float]]:
    """Milliseconds of interleaved runs of each: at least three, at most `most`."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for run in work.values():
        run()
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends or len(next(iter(times.values()))) < 3:
        for name, run in work.items():
            start = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - start) * 1e3)
        if len(next(iter(times.values()))) >= most:
            break
    return times


def in_turns(work: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """The median milliseconds of each."""
    times = times_in_turns(work, seconds, most=100)
    return {name: statistics.median(all_times) for name, all_times in times.items()}


def matrix(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.standard_normal(shape, dtype=np.float32)


def gemm_line(torch: Any, cupy: Any, n: int, rates: Record, seconds: float) -> Record:
    random = np.random.default_rng(n)
    a, b = matrix(random, n, n), matrix(random, n, n)
    pinned = [torch.from_numpy(x).pin_memory() for x in (a, b)]

    def by_torch() -> np.ndarray:
        return (torch.from_numpy(a).cuda() @ torch.from_numpy(b).cuda()).cpu().numpy()

    def by_torch_pinning() -> np.ndarray:
        x, y = (torch.from_numpy(m).pin_memory().cuda(non_blocking=True) for m in (a, b))
        result = torch.empty(n, n, pin_memory=True)
        result.copy_(x @ y, non_blocking=True)
        torch.cuda.synchronize()
        return result.numpy()

    work: dict[str, Callable[[], object]] = {
        "smemkern": lambda: smemkern.gemm(a, b),
        "torch": by_torch,
        "smemkern_norm": lambda: smemkern.gemm(a, b, accuracy="norm"),
        "torch_pinned": by_torch_pinning,
    }
    if cupy is not None:
        work["cupy"] = lambda: cupy.asnumpy(cupy.matmul(cupy.asarray(a), cupy.asarray(b)))
    lines = in_turns(work, seconds)
    views = [x.numpy() for x in pinned]
    lines["smemkern_pinned_inputs"] = in_turns({"": lambda: smemkern.gemm(*views)}, seconds / 4)[""]
    choice = smemkern.choices(n, n, n)[0]
    moved = 3 * 4 * n * n / 1e6
    bus_ms = max(moved / rates["both"], 2 * moved / 3 / rates["in"])
    serial_ms = 2 * moved / 3 / rates["in"] + moved / 3 / rates["out"]
    kernel_ms = statistics.median(smemkern._measure("gemm", a, b, repeat=5)[1])
    some = slice(0, 64)
    exact = a[some].astype(np.float64) @ b
    scale = np.abs(a[some].astype(np.float64)) @ np.abs(b.astype(np.float64))
    error = np.abs(smemkern.gemm(a, b)[some] - exact) / scale
    off = smemkern.gemm(a, b, accuracy="norm")[some] - exact
    return {
        "n": n,
        "ms": lines,
        "kernel_ms": kernel_ms,
        "overlapped_floor_ms": max(bus_ms, kernel_ms),
        "floor_ms": max(serial_ms, kernel_ms),
        "chosen": str(choice),
        "error": float(error.max()),  # relative to the sum of |a||b|
        "norm_error": float(np.linalg.norm(off) / np.linalg.norm(exact)),
    }


def transpose_line(
    torch: Any, cupy: Any, shape: tuple[int, int], rates: Record, seconds: float
) -> Record:
    x = matrix(np.random.default_rng(1), *shape)
    work: dict[str, Callable[[], object]] = {
        "smemkern": lambda: smemkern.transpose(x),
        "torch": lambda: torch.from_numpy(x).cuda().t().contiguous().cpu().numpy(),
        "numpy": lambda: np.ascontiguousarray(x.T),
    }
    if cupy is not None:
        work["cupy"] = lambda: cupy.asnumpy(cupy.ascontiguousarray(cupy.asarray(x).T))
    moved = x.nbytes / 1e6
    return {
        "shape": shape,
        "ms": in_turns(work, seconds),
        "overlapped_floor_ms": max(2 * moved / rates["both"], moved / rates["in"]),
        "floor_ms": moved / rates["in"] + moved / rates["out"],
        "right": bool(np.array_equal(smemkern.transpose(x), x.T)),
    }


def streamed_line(n: int, share: int) -> Record:
    """A product with 1/share of the device memory that it needs, and without a limit."""
    random = np.random.default_rng(n)
    a, b = matrix(random, n, n), matrix(random, n, n)
    limit = 3 * 4 * n * n // share
    whole, streamed = smemkern.gemm(a, b), smemkern.gemm(a, b, max_memory=limit)
    times = in_turns(
        {
            "whole": lambda: smemkern.gemm(a, b),
            "streamed": lambda: smemkern.gemm(a, b, max_memory=limit),
        },
        2.0,
    )
    return {"n": n, "max_memory": limit, "ms": times, "same": bool(np.array_equal(whole, streamed))}


def measure(seconds: float = 1.0) -> Record:
    torch = importlib.import_module("torch")
    try:
        cupy = importlib.import_module("cupy")
    except ImportError:
        cupy = None
    torch.backends.cuda.matmul.allow_tf32 = False
    rates = bus(torch)
    record: Record = {"bus_gb_s": rates, "gemm": [], "transpose": [], "streamed": []}
    for n in GEMM_SIZES:
        record["gemm"].append(gemm_line(torch, cupy, n, rates, seconds))
        print(record["gemm"][-1], flush=True)
    for shape in TRANSPOSE_SHAPES:
        record["transpose"].append(transpose_line(torch, cupy, shape, rates, seconds / 2))
        print(record["transpose"][-1], flush=True)
    for n, share in ((16384, 4), (16384, 8)):
        record["streamed"].append(streamed_line(n, share))
        print(record["streamed"][-1], flush=True)
    return record
