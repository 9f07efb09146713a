"""Kernels that people write: what the laboratory's compiler makes of them equals NVRTC's."""

import numpy as np
import pytest
from lab_compiler import CompileError, compiled, kernels, same_bits, shared_rows

import smemkern
from corpus import CASES

pytestmark = pytest.mark.usefixtures("nvrtc")


def in_subset(case):
    if case.file.suffix == ".ptx":
        return False
    try:
        compiled(case.file.read_text())
    except CompileError:
        return False
    return True


TAKEN = [case for case in CASES if in_subset(case)]
# NVRTC keeps elements in registers that it has loaded or stored before, and joins neighbours. The
# laboratory's compiler accesses memory as the source says.
OTHER_ACCESSES = {"floyd_warshall", "haar", "sort_odd_even", "global_state"}


def run(case, which, how):
    work = case.make(np.random.default_rng(sum(case.name.encode())))
    for launch in work.launches:
        name = launch.name.split("<")[0] if launch.name else None
        kernel = kernels(case.file.read_text(), name)[which]
        size = {"shared_bytes": launch.shared_bytes} if launch.shared_bytes else {}
        how(kernel, launch.grid, launch.block, *launch.args, **size)
    return work.results


def test_enough_of_the_corpus_is_taken():
    assert len(TAKEN) >= 30, [case.name for case in TAKEN]


@pytest.mark.parametrize("case", TAKEN, ids=lambda case: case.name)
def test_values_equal_numpy(case):
    traces = []
    for result in run(case, 0, lambda *a, **k: traces.append(smemkern.trace(*a, **k))):
        got, want = np.asarray(result.got), np.asarray(result.want)
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        assert got.shape == want.shape
        assert np.all(abs(got.astype(wide) - want.astype(wide)) <= result.tolerance)
    assert not [hazard for trace in traces for hazard in trace.hazards]


@pytest.mark.parametrize(
    "case", [c for c in TAKEN if c.same_bits and not c.options], ids=lambda case: case.name
)
def test_values_equal_nvrtc(case):
    def call(kernel, *args, **keywords):
        kernel(*args, device="emu", **keywords)

    for own, nvrtc in zip(run(case, 0, call), run(case, 1, call), strict=True):
        assert same_bits(np.ascontiguousarray(own.got), np.ascontiguousarray(nvrtc.got))


@pytest.mark.parametrize(
    "case", [c for c in TAKEN if c.name not in OTHER_ACCESSES], ids=lambda case: case.name
)
def test_shared_accesses_equal_nvrtc(case):
    def traces(which):
        found = []
        run(case, which, lambda *a, **k: found.append(shared_rows(smemkern.trace(*a, **k))))
        return found

    assert traces(0) == traces(1)
