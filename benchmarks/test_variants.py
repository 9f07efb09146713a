"""pytest-benchmark over every variant, small enough for the emulator: `pytest benchmarks`.

Times of whole calls, arrays in and arrays out; benchmarks/gpu.py times the kernels alone.
"""

import numpy as np
import pytest

import smemkern

EDGE = {"emu": 96, "cuda": 2048}
DEVICES = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            not any(d.name.startswith(name) for d in smemkern.devices()),
            reason="no NVIDIA GPU here",
        ),
    )
    for name in EDGE
]


def timed(benchmark, work):
    return benchmark.pedantic(work, rounds=3, warmup_rounds=1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", smemkern.variants("gemm"), ids=lambda row: row.name)
@pytest.mark.benchmark(group="gemm")
def test_gemm(benchmark, row, device):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((EDGE[device],) * 2, dtype="f4") for _ in range(2))
    c = timed(benchmark, lambda: smemkern.gemm(a, b, variant=row.name, device=device))
    np.testing.assert_allclose(c, a.astype("f8") @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", smemkern.variants("transpose"), ids=lambda row: row.name)
@pytest.mark.benchmark(group="transpose")
def test_transpose(benchmark, row, device):
    x = np.random.default_rng(0).standard_normal((4 * EDGE[device],) * 2, dtype="f4")
    y = timed(benchmark, lambda: smemkern.transpose(x, variant=row.name, device=device))
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", smemkern.variants("probe"), ids=lambda row: row.name)
@pytest.mark.benchmark(group="probe")
def test_probe(benchmark, row, device):
    x = np.random.default_rng(0).standard_normal(10_000, dtype="f4")
    y = timed(benchmark, lambda: smemkern.probe(x, variant=row.name, device=device))
    assert np.isfinite(y).all()
