"""Several GPUs of one host: correctness, and the speed-up of products.

    python benchmarks/several.py                 # writes benchmarks/results/<gpu>-x<count>.json
    python benchmarks/several.py --seconds 20 --commit abc1234

Each of n GPUs reads all of one operand and 1/n of the other: (1 + 1/n) K N elements over the bus,
for 2 M N K / n operations. So only large products are compute-bound on all GPUs. The smaller ones
show the limit of the bus. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

import records
import smemkern
from gpu import facts, output_of
from host import times_in_turns

Record = dict[str, Any]

# (dtype, M, N, K); some are limited by the bus even on one GPU, for comparison.
SIZES = [
    ("float32", 8192, 8192, 8192),
    ("float32", 16384, 16384, 16384),
    ("float32", 32768, 16384, 16384),
    ("float32", 32768, 32768, 32768),
    ("float64", 8192, 8192, 8192),
    ("float64", 16384, 16384, 16384),
    ("float64", 24576, 24576, 24576),
]


def on_host(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Random values in pageable memory, generated on a GPU: the host would need minutes."""
    made = np.empty(shape, dtype)
    rows = max(1, (1 << 28) // max(1, made[:1].size))
    for first in range(0, shape[0], rows):
        part = torch.from_numpy(made[first : first + rows])
        part.copy_(torch.randn(part.shape, dtype=part.dtype, device="cuda"))
    return made


# ---- correctness


@contextmanager
def untouched() -> Iterator[None]:
    """Checks that the current device and streams are the same afterwards."""

    def now() -> list[int]:
        streams = [torch.cuda.current_stream(i) for i in range(torch.cuda.device_count())]
        return [torch.cuda.current_device(), *(s.cuda_stream for s in streams)]

    before = now()
    yield
    assert now() == before, "the current device or a stream has changed"


def host_arrays(last: int, everyone: list[int]) -> None:
    """One named GPU and all GPUs give the same bits."""
    for dtype, shape_a, shape_b in (
        ("float32", (3000, 700), (700, 1111)),
        ("float64", (130, 2000), (2000, 4097)),
        ("float16", (2048, 512), (512, 1024)),
        ("float32", (7, 200, 300), (7, 300, 100)),
        ("float32", (5, 1, 64, 96), (3, 96, 32)),
        ("float32", (1, 400), (400, 1)),
    ):
        a = on_host(*shape_a, dtype="float32").astype(dtype)
        b = on_host(*shape_b, dtype="float32").astype(dtype)
        for x, y in ((a, b), (np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2))):
            one = smemkern.gemm(x, y, device="cuda:0")
            exact = x.astype("f8") @ y.astype("f8")
            tolerance = {"float16": 0.2, "float32": 1e-2, "float64": 1e-9}[dtype]
            assert np.abs(one - exact).max() < tolerance, (dtype, shape_a)
            assert np.array_equal(smemkern.gemm(x, y, device=f"cuda:{last}"), one)
            assert np.array_equal(smemkern.gemm(x, y, devices=everyone), one), (dtype, shape_a)
            outs = [np.ones_like(one) for _ in range(2)]
            for out, devices in zip(outs, ([0], everyone), strict=True):
                smemkern.gemm(x, y, out=out, alpha=0.5, beta=2.0, devices=devices)
            assert np.array_equal(*outs)
    x = on_host(1000, 777)
    assert np.array_equal(smemkern.transpose(x, device=f"cuda:{last}"), x.T)


def device_arrays(last: int) -> None:
    """GPU arrays are processed on their own GPU, whichever is current."""
    with torch.cuda.device(last):
        a, b = torch.randn(500, 300, device="cuda"), torch.randn(300, 400, device="cuda")
        stream = torch.cuda.Stream()
    torch.cuda.synchronize(last)
    for variant, x in itertools.product(("auto", "tiled", "fp16x3"), (a, a.T.contiguous().T)):
        c = smemkern.gemm(x, b, variant=variant)
        assert c.device.index == last and torch.allclose(c, a @ b, atol=1e-2)
        out = torch.empty(400, 500, device=a.device).T
        assert smemkern.gemm(x, b, variant=variant, out=out) is out
        assert torch.allclose(out, a @ b, atol=1e-2)
    with torch.cuda.device(last), torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        c = smemkern.gemm(a, b)
        assert not stream.query(), "a call on device arrays blocked until the result was ready"
    stream.synchronize()
    assert torch.allclose(c, a @ b, atol=1e-2)
    assert torch.equal(smemkern.transpose(a), a.T)
    there = torch.randn(300, 400, device="cuda:0")
    for call, words in (
        (lambda: smemkern.gemm(a, there), "another array in that of"),
        (lambda: smemkern.gemm(a, b, device="cuda:0"), "leave device out"),
        (lambda: smemkern.gemm(a, b, devices=[0]), "arrays in host memory"),
    ):
        try:
            call()
        except ValueError as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"not refused: {words}")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(last):
        out = torch.empty(500, 400, device=a.device)
        with torch.cuda.graph(graph):
            smemkern.gemm(a, b, out=out)
        a.normal_()
        graph.replay()
        torch.cuda.synchronize()
    assert torch.allclose(out, a @ b, atol=1e-2)


def other_libraries(last: int) -> None:
    import cupy

    with cupy.cuda.Device(last):
        x = cupy.random.standard_normal((90, 70)).astype("f4")
        want = x.get() @ x.get().T
    c = smemkern.gemm(x, x.T, variant="tiled")
    assert c.device.id == last and cupy.cuda.runtime.getDevice() == 0
    assert np.allclose(c.get(), want, atol=1e-3)


def interrupted(everyone: list[int]) -> None:
    """Ctrl-C stops the call on all GPUs, long before their kernels end; later calls are right."""
    a = on_host(8192, 8192)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        smemkern.gemm(a, a, variant="naive", devices=everyone)  # takes more than a second
    except KeyboardInterrupt:
        took = time.perf_counter() - start - 0.3
        assert took < 0.5, f"interrupted {took * 1e3:.0f} ms after the signal"
    else:
        raise AssertionError("expected KeyboardInterrupt, but the product was completed")
    finally:
        signal.signal(signal.SIGALRM, before)
    want = smemkern.gemm(a[:300], a, device="cuda:0")
    assert np.array_equal(smemkern.gemm(a[:300], a, devices=everyone), want)


def check() -> Record:
    """The result of each check by its name: "right", or the error."""
    everyone = list(range(torch.cuda.device_count()))
    last = everyone[-1]
    result: Record = {}
    for name, work in {
        "host arrays": lambda: host_arrays(last, everyone),
        "device arrays": lambda: device_arrays(last),
        "other libraries": lambda: other_libraries(last),
        "interrupted": lambda: interrupted(everyone),
    }.items():
        try:
            with untouched():
                work()
            result[name] = "right"
        except Exception as error:
            traceback.print_exc()
            result[name] = f"{type(error).__name__}: {error}"
        print(name, result[name], flush=True)
    return result


# ---- speed-up


def in_turns(work: dict[str, Callable[[], object]], seconds: float) -> Record:
    """Milliseconds of interleaved runs: the median and the minimum of each."""
    times = times_in_turns(work, seconds)
    return {
        "ms": {n: statistics.median(all_times) for n, all_times in times.items()},
        "least_ms": {n: min(all_times) for n, all_times in times.items()},
        "runs": len(next(iter(times.values()))),
    }


def line(dtype: str, sizes: tuple[int, int, int], counts: list[int], seconds: float) -> Record:
    m, n, k = sizes
    a, b = on_host(m, k, dtype=dtype), on_host(k, n, dtype=dtype)
    out = {count: np.zeros((m, n), dtype) for count in counts}
    moved: Record = {}

    def run(count: int) -> None:
        smemkern.gemm(a, b, out=out[count], devices=list(range(count)))
        moved[str(count)] = smemkern.last_transfer()._asdict()

    times = in_turns({str(count): lambda count=count: run(count) for count in counts}, seconds)
    exact = a[-1].astype("f8") @ b[:, :256].astype("f8")
    error = np.abs(out[counts[-1]][-1, :256] - exact).max() / np.sqrt(k)
    base = times["ms"]["1"]
    return {
        "dtype": dtype,
        "shape": sizes,
        **times,
        "speedup": {count: base / ms for count, ms in times["ms"].items()},
        "tflops": {count: 2e-9 * m * n * k / ms for count, ms in times["ms"].items()},
        "same": all(np.array_equal(out[1], out[count]) for count in counts),
        "error": float(error),
        "transfer": moved,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    parser.add_argument("--seconds", type=float, default=120, help="start no line after that time")
    parser.add_argument("--each", type=float, default=2.0, help="seconds per line")
    parser.add_argument("--scale", type=int, default=1, help="divide all sizes, for a trial run")
    parser.add_argument("--commit", default=os.environ.get("SMEMKERN_COMMIT"))
    given = parser.parse_args()
    start = time.perf_counter()
    gpus = torch.cuda.device_count()
    counts = [1 << i for i in range(gpus.bit_length()) if 1 << i <= gpus]
    record = {**facts(given.commit), "gpus": gpus, "cores": len(os.sched_getaffinity(0))}
    record |= {
        "topology": output_of("nvidia-smi", "topo", "-m").splitlines(),
        "checks": check(),
        "several": [],
    }
    name = record["gpu"].lower().replace(" ", "-")
    target = given.results / f"several-{name}-x{gpus}.json"
    for dtype, *sizes in sorted(SIZES, key=lambda s: (s[1] * s[2] * s[3], s[0])):
        if time.perf_counter() - start > given.seconds:
            break
        scaled = tuple(size // given.scale for size in sizes)
        record["several"].append(line(dtype, scaled, counts, given.each))
        print(json.dumps(record["several"][-1]), flush=True)
        records.write(target, record)


if __name__ == "__main__":
    main()
