"""What tests on a GPU ask of calls as a whole, on a fake driver: python fake_calls.py CASE."""

from __future__ import annotations

import sys

import numpy as np
from fake_arrays import create, kernel
from fake_flows import fake, floats, gemm, transpose

import smemkern
from smemkern import _core
from smemkern._variants import cost_model


def numbered() -> None:
    """GPUs by their numbers; there are two."""
    a, b = floats(40, 30), floats(30, 20)
    whole = gemm(a, b)
    for name in ("cuda:0", "cuda:1"):
        launches = fake.launches
        assert np.array_equal(gemm(a, b, device=name), whole) and fake.launches > launches
    try:
        gemm(a, b, device="cuda:2")
    except smemkern.NoDeviceError as error:
        assert "cuda:2" in str(error)
    else:
        raise AssertionError("there are two devices")


def callers_stream() -> None:
    """Kernels on arrays in host memory run in the caller's stream."""
    a, b, stream = floats(300, 30), floats(30, 200), create("cuStreamCreate", 1)
    gemm(a, b)
    assert fake.launched_on != stream
    gemm(a, b, stream=stream)
    assert fake.launched_on == stream
    transpose(a)
    assert fake.launched_on != stream
    transpose(a, stream=stream)
    assert fake.launched_on == stream


def predicted() -> None:
    """`auto` takes the row whose time is known to be the least."""
    a, b = floats(256, 64), floats(64, 256)
    exact = a.astype("f8") @ b
    for best, other in (("naive", "tf32x3"), ("tf32x3", "naive")):
        terms = {best: (1.0,) * 6, other: (2.0,) * 6}
        kinds = "float32", 16, 0
        timings = [cost_model.Timing("gemm", row, {}, *kinds, terms[row]) for row in terms]
        _core.set_timings(0, timings)
        searched = fake.searched  # for the largest elements, by tf32x3 alone
        assert np.abs(smemkern.gemm(a, b, device="cuda") - exact).max() < 1e-3
        assert (fake.searched > searched) == (best == "tf32x3")
    _core.set_timings(0, None)


def timed() -> None:
    """A line for each shape and variant, of as many runs as there are times."""
    launches = fake.launches
    lines = smemkern.bench([(64, 48, 32), (33, 22, 11)], variants=["naive", "tf32x3"])
    assert [(line.variant, line.shape) for line in lines] == [
        (name, shape) for shape in ((64, 48, 32), (33, 22, 11)) for name in ("naive", "tf32x3")
    ]
    assert all(0 < line.best_ms <= line.ms for line in lines)
    assert fake.launches - launches >= 4 * len(lines)


def clusters() -> None:
    """The size of clusters, and that a launch is cooperative, reach the driver."""
    x, y = floats(50), floats(50)
    for options in ({"cluster": 16}, {"cluster": (4, 1, 1), "cooperative": True}):
        z = np.zeros(50, "f4")
        kernel(16, 64, x, y, z, 50, device="cuda", **options)
        assert np.array_equal(z, x + y)


CASES = (numbered, callers_stream, predicted, timed, clusters)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
