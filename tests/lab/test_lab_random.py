"""Random programs: the laboratory's compiler and NVRTC agree on values, hazards and wavefronts."""

import re

import lab_programs
import numpy as np
import pytest
import random_accesses
from lab_compiler import Run, compiled, hazards, same_bits, shared_rows

import smemkern

pytestmark = pytest.mark.usefixtures("nvrtc")
ROUNDS = 12  # programs per test


def fresh():
    return int(np.random.SeedSequence().generate_state(1)[0])


def both(source, name, grid, block, args):
    kernels = smemkern.Kernel(compiled(source), name), smemkern.Kernel(source, name)
    return [Run(kernel, grid, block, args) for kernel in kernels]


FMA = re.compile(r"fma\.rn\.(f\d\d)\s+(\S+), (\S+), (\S+), (\S+);")
UNFUSED = r"{ .reg .\1 %t; mul.rn.\1 %t, \3, \4; add.rn.\1 \2, %t, \5; }"


def both_unfused(source, name, grid, block, args):
    """Without contraction, which depends on the basic blocks that NVRTC merges."""
    own = smemkern.Kernel(FMA.sub(UNFUSED, compiled(source)), name)
    nvrtc = smemkern.Kernel(source, name, options=["--fmad=false"])
    return [Run(kernel, grid, block, args) for kernel in (own, nvrtc)]


def same_values(own, nvrtc):
    return all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in zip(own.arrays(), nvrtc.arrays(), strict=True)
    )


@pytest.mark.parametrize("floats", [False, True], ids=["integers", "floats"])
@pytest.mark.parametrize("part", range(3))
def test_values(floats, part):
    merged = 0
    for _ in range(ROUNDS):
        seed = fresh()
        rng = np.random.default_rng(seed)
        source = lab_programs.Writer(rng, floats).program()
        launch = "k", 1, 64, lab_programs.arguments(rng)
        own, nvrtc = both(source, *launch)
        assert not hazards(own.trace) | hazards(nvrtc.trace), f"seed {seed}\n{source}"
        if not same_values(own, nvrtc):
            assert floats, f"seed {seed}\n{source}"
            assert same_values(*both_unfused(source, *launch)), f"seed {seed}\n{source}"
            merged += 1
    assert merged <= 2


def test_nvrtc_contracts_across_iterations():
    """docs/lab-language.md: values can differ where nvcc merges basic blocks."""
    source = """extern "C" __global__ void k(const float *x, float *y) {
        float v = x[threadIdx.x];
        for (int i = 0; i < 2; i++) {
            v -= 1.25f;
            v *= x[threadIdx.x + 64 * i];
        }
        y[threadIdx.x] = v;
    }"""
    x = np.random.default_rng(1).standard_normal(128).astype("f4")
    launch = "k", 1, 64, [x, np.zeros(64, "f4")]
    own, nvrtc = both(source, *launch)
    assert np.allclose(*(run.arrays()[1] for run in (own, nvrtc)), rtol=1e-5, atol=1e-6)
    assert not same_values(own, nvrtc)
    assert same_values(*both_unfused(source, *launch))


@pytest.mark.parametrize("part", range(3))
def test_accesses(part):
    racy = count = 0
    while count < ROUNDS or (racy in (0, count) and count < 10 * ROUNDS):  # until both kinds came
        count += 1
        seed = fresh()
        source = random_accesses.Writer(np.random.default_rng(seed)).program()
        own, nvrtc = both(source, "k", 1, 96, [np.zeros(960, "f4"), np.zeros(1536, "i4")])
        message = f"seed {seed}\n{source}"
        assert shared_rows(own.trace) == shared_rows(nvrtc.trace), message
        assert hazards(own.trace) == hazards(nvrtc.trace), message
        assert own.trace.barriers == nvrtc.trace.barriers, message
        racy += bool(own.trace.hazards)
        if not own.trace.hazards:
            assert all(map(same_bits, own.arrays(), nvrtc.arrays())), message
    assert 0 < racy < count
