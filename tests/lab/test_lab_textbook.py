"""Kernels of textbooks, and the kernels that are wrong on purpose, by the laboratory's compiler."""

import numpy as np
import pytest
from lab_compiler import ROOT, CompileError, Run, compiled, hazards, same_bits, shared_rows
from textbook import EXAMPLES

import smemkern

pytestmark = pytest.mark.usefixtures("nvrtc")
# NVRTC merges the two branches and stores once after them.
OTHER_ACCESSES = {"scan_double_buffer"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_textbook(name, drawn):
    example = EXAMPLES[name]
    args, want = example.make(drawn)
    runs = [
        Run(smemkern.Kernel(text), example.grid, example.block, args, example.shared_bytes)
        for text in (compiled(example.source), example.source)
    ]
    for run in runs:
        assert not run.trace.hazards
        for index, array in want.items():
            assert np.array_equal(run.args[index], array)
    own, nvrtc = runs
    assert all(map(same_bits, own.arrays(), nvrtc.arrays()))
    if name not in OTHER_ACCESSES:
        assert shared_rows(own.trace) == shared_rows(nvrtc.trace)


def outcome(source, name, args):
    """The error, or the pairs of lines of the hazards."""
    try:
        run = Run(smemkern.Kernel(source, name), 2, 64, args)
    except smemkern.Error as error:
        return type(error).__name__
    kinds = {h.kind for h in run.trace.hazards}
    return kinds, hazards(run.trace)


def mistakes():
    for path in sorted((ROOT / "csrc/kernels/mistakes").glob("*.cu")):
        try:
            compiled(path.read_text())
        except CompileError:
            continue
        yield path


@pytest.mark.parametrize("path", list(mistakes()), ids=lambda path: path.stem)
def test_mistakes(path):
    source = path.read_text()
    n = 100 if path.stem in ("divergent_barrier", "out_of_bounds") else 128
    args = [np.arange(n, dtype="f4"), np.zeros(n, "f4")]
    args += [n] if "int n" in source else []
    own, nvrtc = (outcome(text, path.stem, args) for text in (compiled(source), source))
    assert own == nvrtc
    assert own[1] or isinstance(own, str)


def test_enough_mistakes_are_in_the_subset():
    assert {path.stem for path in mistakes()} >= {
        *("divergent_barrier", "missing_barrier", "out_of_bounds", "uninitialised"),
    }


RACES = {
    "neighbour": "t[i] = i; x[i] = t[(i + 1) % 96];",
    "second buffer": "t[i] = i; __syncthreads(); int v = t[95 - i]; t[i] = v; x[i] = v;",
    "one flag": "t[i] = 0; __syncthreads(); if (i == 40) t[0] = 1; x[i] = t[0];",
    "all write": "t[i / 3] = i; __syncthreads(); x[i] = t[i / 3];",
    "warp": "if (i < 32) { t[i] = i; x[i] = t[31 - i]; }",
    "loop": "for (int k = 0; k < 3; k++) { t[i] = k; __syncthreads(); x[i] += t[95 - i]; }",
    "atomic and plain": "if (i == 50) t[0] = 0; atomicAdd(&t[0], 1); __syncthreads(); x[i] = t[0];",
    "branch": "if (i < 50) { t[i] = i; } else { x[i] = t[i - 50]; }",
    "device function": "t[i] = i; x[i] = look(t, i ^ 33);",
    "global": "x[i] = i; y[i] = x[95 - i];",
}


@pytest.mark.parametrize("name", RACES)
def test_races(name):
    source = (
        "__device__ int look(const int *t, int i) { return t[i]; }\n"
        "__global__ void k(int *x, int *y) {\n    __shared__ int t[96];\n    int i = threadIdx.x;\n"
        + RACES[name].replace("; ", ";\n").replace("{ ", "{\n")
        + "\n}\n"
    )
    args = [np.zeros(96, "i4"), np.zeros(96, "i4")]
    runs = [Run(smemkern.Kernel(text, "k"), 1, 96, args) for text in (compiled(source), source)]
    own, nvrtc = (hazards(run.trace) for run in runs)
    assert own
    assert own == nvrtc
