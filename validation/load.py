"""A million small calls, then many threads at once: checks memory, speed and results.

    python validation/load.py --device emu                   # writes results/load-emu.json
    python3.14t -W error validation/load.py --count 20000    # and load-emu-free-threaded.json
    python validation/load.py --device cuda --threads 32 --seconds 120

Each thread has its own seed. It runs the random calls of tests/soak_cases.py, each checked against
NumPy, and those of load_calls.py for the rest of the API. On a GPU some threads also use their own
streams, with PyTorch's arrays if PyTorch is installed. Memory is the resident set of the process,
and the bytes that are allocated with malloc after the caches are emptied.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import resource
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [
    str(HERE),
    str(HERE.parent / "benchmarks"),
    str(HERE.parent / "tests"),
    str(HERE.parent),
]

import load_calls  # noqa: E402
import records  # noqa: E402
import smemkern  # noqa: E402
import soak_cases  # noqa: E402
from malloc_use import used  # noqa: E402
from rows import parameter_sets  # noqa: E402
from soak import MOST  # noqa: E402

Record = dict[str, Any]
PARTS = 20  # of the calls, each with its time and memory
ROUNDS = 5  # of the threads, each with the memory after it


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def call_of(device: str, where: str) -> Callable[[], Any]:
    """A function that computes one small product of host or GPU arrays."""
    a, b = np.arange(6, dtype="f4").reshape(2, 3), np.arange(12, dtype="f4").reshape(3, 4)
    if where == "host":
        out = np.empty((2, 4), "f4")
        return lambda: smemkern.gemm(a, b, out=out, variant="tiled", tile=8, device=device)
    import torch

    x, y = (torch.from_numpy(z).cuda() for z in (a, b))
    z = torch.empty((2, 4), device="cuda")
    return lambda: smemkern.gemm(x, y, out=z, variant="tiled", tile=8)


def calls(device: str, where: str, count: int) -> Record:
    call = call_of(device, where)
    for _ in range(1000):
        call()
    each, memory = [], []
    for _ in range(PARTS):
        start = time.perf_counter()
        for _ in range(count // PARTS):
            call()
        each.append((time.perf_counter() - start) / (count // PARTS) * 1e6)
        memory.append(resident_mb())
    return {
        "arrays": where,
        "count": count,
        "us": statistics.median(each),
        "us_first": each[0],
        "us_last": each[-1],
        "grown_mb": memory[-1] - memory[0],
    }


def on_streams(seed: int) -> str:
    """Products of GPU arrays on the thread's own stream."""
    import torch

    generator = torch.Generator(device="cuda").manual_seed(seed)
    with torch.cuda.stream(torch.cuda.Stream()):
        m, n, k = (1 + seed * f % 199 for f in (17, 31, 57))
        a = torch.randint(-8, 8, (m, k), generator=generator, device="cuda").float()
        b = torch.randint(-8, 8, (k, n), generator=generator, device="cuda").float()
        c = smemkern.gemm(a, b)
        t = smemkern.transpose(a)
        assert torch.equal(torch.as_tensor(c), a @ b) and torch.equal(torch.as_tensor(t), a.T)
    return "streams"


def together(
    device: str, seeds: list[int], seconds: float, streams: bool, most: int
) -> tuple[int, list[Record]]:
    """Runs calls in one thread per seed until the time is over: their number, and the failures."""
    failed: list[Record] = []
    done = [0] * len(seeds)
    end = 0.0
    ready = threading.Barrier(len(seeds) + 1)  # starting many threads takes a while

    def work(number: int) -> None:
        ready.wait()
        while time.monotonic() < end and not failed:
            seed = seeds[number]
            try:
                if streams and done[number] % 4 == 3:
                    on_streams(seed)
                elif done[number] % 2:
                    load_calls.check(Random(seed), device)
                else:
                    check = soak_cases.CHECKS[seed % 3 == 0]
                    check(Random(seed), device, most, parameter_sets)
            except Exception as error:
                failed.append({"seed": seed, "error": f"{type(error).__name__}: {error}"[:300]})
            done[number] += 1
            seeds[number] += len(seeds)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(len(seeds))]
    for worker in workers:
        worker.start()
    end = time.monotonic() + seconds
    ready.wait()
    for worker in workers:
        worker.join()
    return sum(done), failed


def at_once(device: str, threads: int, seconds: float, streams: bool, most: int) -> Record:
    """Rounds of calls by all threads; the caches are emptied after each."""
    seeds, rounds = list(range(threads)), []
    for _ in range(ROUNDS):
        calls, failed = together(device, seeds, seconds / ROUNDS, streams, most)
        resident = resident_mb()
        smemkern.empty_cache(device)
        gc.collect()
        rounds.append({"calls": calls, "resident_mb": resident, "in_use_mb": used() / 1e6})
        if failed:
            break
    return {
        "threads": threads,
        "seconds": seconds,
        "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
        "calls": sum(each["calls"] for each in rounds),
        "streams": streams,
        "rounds": rounds,
        "grown_mb": rounds[-1]["in_use_mb"] - rounds[0]["in_use_mb"],
        "failed": failed,
    }


def has_torch() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=sorted(MOST), default="emu")
    parser.add_argument("--count", type=int, default=1_000_000, help="of small calls")
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--most", type=int, help="of a dimension; a sanitizer has less time")
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    parser.add_argument("--commit", default=os.environ.get("SMEMKERN_COMMIT"))
    options = parser.parse_args()
    from gpu import output_of

    on_gpu = options.device == "cuda" and has_torch()
    most = options.most or MOST[options.device]
    record = {
        "device": options.device,
        "python": sys.version.split()[0],
        "date": datetime.date.today().isoformat(),
        "commit": options.commit or output_of("git", "rev-parse", "--short=12", "HEAD"),
        "calls": [
            calls(options.device, where, options.count)
            for where in (["host", "gpu"] if on_gpu else ["host"])
        ],
        "at_once": at_once(options.device, options.threads, options.seconds, on_gpu, most),
    }
    free = "" if record["at_once"]["gil"] else "-free-threaded"
    path = options.results / f"load-{options.device}{free}.json"
    records.write(path, record)
    print(json.dumps(record, indent=1))
    return bool(record["at_once"]["failed"])


if __name__ == "__main__":
    sys.exit(main())
