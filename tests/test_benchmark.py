"""Times of every variant on the device at hand, and the speed of the emulator itself.

pytest -n 0 tests/test_benchmark.py --benchmark-columns=median,ops

Among other tests, on all cores at once, each runs once and nothing is timed.
"""

import numpy as np
import pytest

import smemkern
from checks import assert_gemm, assert_same_bits

GEMM = [
    pytest.param(row, dtype, id=f"{row.name}-{dtype}")
    for row in smemkern.variants("gemm")
    for dtype in row.dtypes
]
TRANSPOSE = [pytest.param(row.name, id=row.name) for row in smemkern.variants("transpose")]
PROBE = [pytest.param(row.name, id=row.name) for row in smemkern.variants("probe")]


@pytest.fixture
def size(device):
    return 96 if device == "emu" else 512


def timed(benchmark, *args, **kwargs):
    return benchmark.pedantic(*args, kwargs=kwargs, rounds=3, warmup_rounds=1)


@pytest.mark.parametrize(("row", "dtype"), GEMM)
def test_gemm(benchmark, row, dtype, device, size, rng):
    a, b = rng.standard_normal((2, size, size)).astype(dtype)
    result = timed(benchmark, smemkern.gemm, (a, b), variant=row.name, device=device)
    assert_gemm(result, a, b, row=row)


@pytest.mark.parametrize("variant", TRANSPOSE)
def test_transpose(benchmark, variant, device, size, rng):
    a = rng.standard_normal((2 * size, size)).astype("f4")
    result = timed(benchmark, smemkern.transpose, (a,), variant=variant, device=device)
    assert_same_bits(result, a.T)


@pytest.mark.parametrize("variant", PROBE)
def test_probe(benchmark, variant, device, rng):
    x = rng.standard_normal(1 << 16).astype("f4")
    result = timed(benchmark, smemkern.probe, (x,), variant=variant, device=device)
    assert not np.isnan(result).any()


@pytest.mark.parametrize("counting", [False, True], ids=["plain", "counting"])
@pytest.mark.parametrize("variant", ["tiled", "register_tiled"])
def test_speed_of_the_emulator(benchmark, variant, counting, rng):
    """Warp instructions a second at 256^3; goals on 2 cores: 80 M plain, 50 M counting."""
    n = 256
    a, b = rng.standard_normal((2, n, n)).astype("f4")
    if counting:
        timed(benchmark, smemkern.trace, ("gemm", a, b), variant=variant)
    else:
        timed(benchmark, smemkern.gemm, (a, b), variant=variant, device="emu")
    if benchmark.stats:
        seconds = benchmark.stats.stats.min
        count = smemkern.trace("gemm", a, b, variant=variant).warp_instructions
        benchmark.extra_info["million warp instructions/s"] = round(count / seconds / 1e6, 1)
        benchmark.extra_info["GFLOP/s"] = round(2 * n**3 / seconds / 1e9, 3)
        print(f"\n{variant}: {benchmark.extra_info}")
