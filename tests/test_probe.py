"""The small kernels against their twins, and what each of them is there to show."""

import math

import numpy as np
import pytest

import smemkern
from smemkern import reference

ROWS = [pytest.param(row, id=row.name) for row in smemkern.variants("probe")]
LONG_ENOUGH = 1 << 14


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("n", [LONG_ENOUGH, LONG_ENOUGH + 1, 33 * 257])
def test_as_its_twin(row, n, device, rng):
    x = rng.standard_normal(n).astype(np.float32)
    before = x.copy()
    result = smemkern.probe(x, variant=row.name, device=device)
    assert result.dtype == np.float32
    assert np.array_equal(result, reference.probe(x, variant=row.name))
    assert np.array_equal(x, before)


PARAMS = [
    pytest.param(row.name, name, value, id=f"{row.name}-{name}{value}")
    for row in smemkern.variants("probe")
    for name, param in row.params.items()
    for value in sorted({param.legal[0], param.legal[0] + 1, param.legal[-1]})
]


@pytest.mark.parametrize(("variant", "name", "value"), PARAMS)
def test_parameters(variant, name, value, device, rng, nvrtc):
    reach = 31 * value + 1 if name == "stride" else LONG_ENOUGH
    x = rng.standard_normal(max(reach, LONG_ENOUGH)).astype(np.float32)
    result = smemkern.probe(x, variant=variant, device=device, **{name: value})
    assert np.array_equal(result, reference.probe(x, variant=variant, **{name: value}))


@pytest.mark.parametrize("variant", ["copy_async", "pipeline_async", "large_shared"])
@pytest.mark.parametrize("n", [0, 1, 31, 257, 70_001])
def test_any_length(variant, n, device, rng):
    x = rng.standard_normal(n).astype(np.float32)
    result = smemkern.probe(x, variant=variant, device=device)
    assert np.array_equal(result, reference.probe(x, variant=variant))


@pytest.mark.parametrize("variant", ["stride_read", "broadcast"])
def test_words_that_x_does_not_have_are_0(variant, device):
    result = smemkern.probe(np.empty(0, np.float32), variant=variant, device=device)
    assert np.array_equal(result, np.zeros(32))


def test_strided_input(device, rng):
    x = rng.standard_normal(5000).astype(np.float32)[::-2]
    result = smemkern.probe(x, variant="copy_async", device=device)
    assert np.array_equal(result, 2 * x)


@pytest.mark.parametrize("stride", range(65))
def test_a_stride_costs_its_common_divisor_with_32(stride):
    t = smemkern.trace("probe", np.ones(2048, np.float32), variant="stride_read", stride=stride)
    [read] = [row for row in t.shared if row.op == "load"]
    assert (read.requests, read.wavefronts) == (1, math.gcd(stride, 32) if stride else 1)


def test_a_broadcast_costs_one_wavefront():
    t = smemkern.trace("probe", np.ones(32, np.float32), variant="broadcast")
    [read] = [row for row in t.shared if row.op == "load"]
    assert (read.requests, read.wavefronts) == (1, 1)


@pytest.mark.parametrize(
    ("stride", "sectors"), [(0, 1), (1, 4), (2, 8), (7, 28), (8, 32), (100, 32)]
)
def test_coalescing(stride, sectors):
    t = smemkern.trace("probe", np.ones(4096, np.float32), variant="coalescing", stride=stride)
    [read] = [row for row in t.global_ if row.op == "load"]
    assert (read.requests, read.sectors) == (1, sectors)


def test_random_reads_share_hardly_a_sector():
    x = np.ones(1 << 20, np.float32)
    t = smemkern.trace("probe", x, variant="coalescing_random")
    [read] = [row for row in t.global_ if row.op == "load"]
    assert read.sectors >= 31


def test_copies_skip_the_registers():
    t = smemkern.trace("probe", np.ones(512, np.float32), variant="copy_async")
    assert "copy_async" in {row.op for row in t.shared}
    assert not any(row.op == "store" for row in t.shared)


def test_shared_memory_above_48_kib():
    planned = smemkern._core.plan("probe", (np.ones(9, np.float32),), {"variant": "large_shared"})
    assert planned["launches"][0]["shared_bytes"] == 96 * 1024
