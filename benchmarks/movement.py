"""Compares transposes with a copy of the same size, and with cublasSgeam, PyTorch and CuPy.

A step of gpu.py. Arrays are on the GPU, and results go to existing arrays. All runs of one shape
are interleaved in one process (sweep.in_turns). `counted` needs no GPU: it counts the memory
accesses of each variant on the emulator.
"""

from __future__ import annotations

import ctypes
import json
import math
import statistics
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

Record = dict[str, Any]
Shape = tuple[int, int]

PEERS = ("cublasSgeam", "PyTorch", "CuPy")
# Every variant: on the emulator over whole tiles and an odd shape, on the GPU over LADDER.
COUNTED: list[Shape] = [(256, 256), (257, 259)]
LADDER: list[Shape] = [(4096, 4096), (8192, 8192), (4097, 8191)]
# For `auto`: shapes, and (batch, shape).
SQUARES = [64, 128, 256, 512, 1000, 1024, 2048, 4096, 8192, 16384, 32768]
ODD = [(4097, 8191), (4095, 4097), (1021, 1031), (8191, 8193), (12345, 6789), (3000, 5000)]
ODD += [(63, 100_000), (100_000, 63), (2049, 2047)]
NARROW = [(100_000, 64), (64, 100_000), (1_000_000, 16), (16, 1_000_000), (1_000_000, 3)]
NARROW += [(3, 1_000_000), (1_000_000, 1), (1, 1_000_000), (500_000, 31), (33, 300_000)]
NARROW += [(300_000, 7), (5, 777_777), (200_000, 100), (100, 200_000), (50_000, 48)]
BATCHES = [(1000, (64, 64)), (4096, (32, 32)), (10_000, (16, 16)), (60_000, (17, 13))]
BATCHES += [(100_000, (3, 3)), (200_000, (4, 4)), (100, (500, 500)), (16, (1024, 1024))]
BATCHES += [(3, (4097, 1111)), (30_000, (8, 50))]
OTHER_WIDTHS = [(1, (8192, 8192)), (1, (8191, 8193)), (1, (100_000, 64))]
CALLS: list[tuple[str, int, Shape]] = [
    *(("b32", 1, (n, n)) for n in SQUARES),
    *(("b32", 1, shape) for shape in [*ODD, *NARROW]),
    *(("b32", batch, shape) for batch, shape in BATCHES),
    *((bits, *call) for bits in ("b8", "b16", "b64", "b128") for call in OTHER_WIDTHS),
    *(("b8", 1000, (64, 64)), ("b16", 1000, (64, 64)), ("b8", 1, (1_000_000, 3))),
]
DTYPES = {"b8": "uint8", "b16": "int16", "b32": "float32", "b64": "float64", "b128": "complex128"}


def wanted(bits: str, batch: int, shape: Shape) -> float | None:
    """The goal of `auto` as a share of a copy's speed; None: no goal."""
    large = min(shape) >= 8192 and len(set(shape)) == 1
    if bits == "b32" and large:
        return 0.97
    named = [(4097, 8191), (100_000, 64), (64, 100_000), (4096, 4096), (8192, 8192)]
    return 0.95 if batch == 1 and shape in named else None


def operands(torch: Any, bits: str, batch: int, shape: Shape) -> tuple[Any, Any]:
    """x with random values (no NaNs), and y for its transpose."""
    dtype, lead = getattr(torch, DTYPES[bits]), (batch,) if batch > 1 else ()
    sizes = (*lead, *shape)
    if dtype.is_floating_point or dtype.is_complex:
        x = torch.randn(sizes, dtype=dtype, device="cuda")
    else:
        x = torch.randint(0, 100, sizes, dtype=dtype, device="cuda")
    return x, torch.empty((*lead, *shape[::-1]), dtype=dtype, device="cuda")


def geam(torch: Any, x: Any, y: Any) -> Callable[[], object]:
    """cublasSgeam from the library that PyTorch has loaded. It takes matrices as column-major."""
    one = torch.ones(8, 8, device="cuda")
    (one @ one).sum().item()
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if "libcublas.so" in line)
    library, handle = ctypes.CDLL(path), ctypes.c_void_p()
    rows, cols = x.shape
    alpha, beta, into = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_void_p(y.data_ptr())
    if library.cublasCreate_v2(ctypes.byref(handle)):
        raise RuntimeError("cublasCreate failed")
    source = (ctypes.byref(alpha), ctypes.c_void_p(x.data_ptr()), cols)
    call = (handle, 1, 0, rows, cols, *source, ctypes.byref(beta), into, rows, into, rows)

    def work() -> None:
        if library.cublasSgeam(*call):
            raise RuntimeError("cublasSgeam failed")

    return work


def peers(torch: Any, x: Any, y: Any) -> dict[str, Callable[[], object]]:
    turned = x.transpose(-1, -2)
    work: dict[str, Callable[[], object]] = {
        "device copy": partial(y.view(-1).copy_, x.view(-1)),
        "PyTorch": partial(y.copy_, turned),
    }
    if find_spec("cupy"):
        cupy = import_module("cupy")
        work["CuPy"] = partial(cupy.copyto, cupy.asarray(y), cupy.asarray(x).swapaxes(-1, -2))
    if x.dtype == torch.float32 and x.ndim == 2:
        work["cublasSgeam"] = geam(torch, x, y)
    return work


def is_right(torch: Any, x: Any, y: Any) -> bool:
    return bool(torch.equal(y, x.transpose(-1, -2)))


def timed(torch: Any, work: dict[str, Callable[[], object]], seconds: float) -> dict[str, Record]:
    from sweep import in_turns

    all_times = in_turns(torch, list(work.values()), seconds)
    return {
        name: {"ms": statistics.median(times), "best_ms": min(times), "runs": len(times)}
        for name, times in zip(work, all_times, strict=True)
    }


def ladder(seconds: float) -> list[Record]:
    """Every variant with every prebuilt set of parameters, and the peers."""
    import torch

    import smemkern
    from rows import parameter_sets

    lines = []
    for shape in LADDER:
        for bits in ("b32", "b64"):
            x, y = operands(torch, bits, 1, shape)
            ours: dict[str, tuple[str, Record]] = {}
            work = {}
            for row in smemkern.variants("transpose"):
                for params in parameter_sets(row) if bits in row.dtypes else ():
                    name = f"{row.name} {params}"
                    ours[name] = (row.name, params)
                    work[name] = partial(smemkern.transpose, x, variant=row.name, out=y, **params)
                    y.fill_(math.nan)
                    work[name]()
                    if not is_right(torch, x, y):
                        raise SystemExit(f"transpose {name} of {shape} is wrong")
            for name, timing in timed(torch, work | peers(torch, x, y), seconds).items():
                variant, params = ours.get(name, (name, {}))
                # Every element is read once and written once.
                gbps = 2 * x.nbytes / timing["ms"] * 1e-6
                what = {"variant": variant, "dtype": bits, "shape": shape, "params": params}
                lines.append({**what, **timing, "gbps": gbps})
                print(json.dumps(lines[-1]), flush=True)
    return lines


def sweep(seconds: float) -> list[Record]:
    """`auto` and the peers over all CALLS."""
    import torch

    import smemkern

    lines = []
    for bits, batch, shape in CALLS:
        x, y = operands(torch, bits, batch, shape)
        y.fill_(1)
        smemkern.transpose(x, out=y)
        right = is_right(torch, x, y)
        work = {"auto": partial(smemkern.transpose, x, out=y), **peers(torch, x, y)}
        times = {name: timing["ms"] for name, timing in timed(torch, work, seconds).items()}
        ours, copy = times.pop("auto"), times.pop("device copy")
        what = {"dtype": bits, "batch": batch, "shape": shape, "right": right}
        speeds = {"ms": ours, "of_copy": copy / ours, "ahead": min(times.values()) / ours}
        lines.append({**what, **speeds, "copy_ms": copy, "peers_ms": times})
        print(json.dumps(lines[-1]), flush=True)
        del x, y, work
        torch.cuda.empty_cache()
    wrong = [line for line in lines if not line["right"]]
    if wrong:
        raise SystemExit(f"wrong: {wrong}")
    behind = [line for line in lines if line["ahead"] < 1]
    print(f"transposes: {len(lines)} calls, {len(behind)} behind a peer", flush=True)
    return lines


def in_place(seconds: float) -> list[Record]:
    """In-place transposes of square matrices, compared with a copy of the same size."""
    import torch

    import smemkern

    lines = []
    for bits, n in [("b32", 8192), ("b32", 8191), ("b8", 8192), ("b64", 8192), ("b128", 4096)]:
        x, y = operands(torch, bits, 1, (n, n))
        y.copy_(x)
        smemkern.transpose(y, out=y)
        right = is_right(torch, x, y)
        work = {
            "auto": partial(smemkern.transpose, y, out=y),
            "copy": partial(y.view(-1).copy_, x.view(-1)),
        }
        times = timed(torch, work, seconds)
        lines.append(
            {
                **{"dtype": bits, "shape": (n, n), "right": right, **times["auto"]},
                "of_copy": times["copy"]["ms"] / times["auto"]["ms"],
            }
        )
        print(json.dumps(lines[-1]), flush=True)
    return lines


def counted() -> list[Record]:
    """Sectors and wavefronts of each variant, fp32, from the emulator."""
    import smemkern

    lines = []
    rng = np.random.default_rng(2026)
    for shape in COUNTED:
        x = rng.standard_normal(shape, dtype="f4")
        for row in smemkern.variants("transpose"):
            trace = smemkern.trace("transpose", x, variant=row.name)
            sides = {"load": 0, "store": 0}
            for site in trace.global_:
                sides["store" if "store" in site.op else "load"] += site.sectors
            shared = [(site.wavefronts, site.ideal) for site in trace.shared]
            lines.append(
                {
                    **{"variant": row.name, "shape": shape},
                    **{"sectors_read": sides["load"], "sectors_written": sides["store"]},
                    "wavefronts": sum(pair[0] for pair in shared),
                    "wavefronts_ideal": sum(pair[1] for pair in shared),
                    "warp_instructions": sum(trace.instructions.values()),
                }
            )
    return lines


def transpose(seconds: float = 0.1) -> Record:
    import torch

    torch.manual_seed(2026)
    return {
        **{"torch": torch.__version__, "counted": counted(), "lines": ladder(seconds)},
        **{"sweep": sweep(seconds / 2), "in_place": in_place(seconds)},
    }
