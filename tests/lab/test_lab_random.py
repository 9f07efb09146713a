"""Random programs: the laboratory's compiler and NVRTC agree on values, hazards and wavefronts."""

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


@pytest.mark.parametrize("floats", [False, True], ids=["integers", "floats"])
@pytest.mark.parametrize("part", range(3))
def test_values(floats, part):
    for _ in range(ROUNDS):
        seed = fresh()
        rng = np.random.default_rng(seed)
        source = lab_programs.Writer(rng, floats).program()
        args = [
            rng.integers(-1000, 1001, 64).astype("i4"),
            rng.integers(0, 256, 64).astype("u1"),
            rng.standard_normal(64).astype("f4"),
            np.zeros(64 * lab_programs.OUTPUTS, "i8"),
            np.zeros(64 * lab_programs.OUTPUTS, "f8"),
        ]
        own, nvrtc = both(source, "k", 1, 64, args)
        for a, b in zip(own.arrays(), nvrtc.arrays(), strict=True):
            equal_nan = a.dtype.kind == "f"
            assert np.array_equal(a, b, equal_nan=equal_nan), f"seed {seed}\n{source}"
        assert not hazards(own.trace) | hazards(nvrtc.trace), f"seed {seed}\n{source}"


@pytest.mark.parametrize("part", range(3))
def test_accesses(part):
    racy = 0
    for _ in range(ROUNDS):
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
    assert 0 < racy < ROUNDS
