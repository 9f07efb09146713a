"""Kernels of the kinds people write, from CUDA C++, on both devices against NumPy."""

import re
from functools import cache

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU, assert_same_bits
from corpus import CASES
from corpus.cases import HERE

pytestmark = pytest.mark.usefixtures("nvrtc")

cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cache
def kernel(case, name):
    return smemkern.Kernel(case.file.read_text(), name, case.options)


def run(case, how, **keywords):
    """The case's results after its launches by how(kernel, grid, block, *args, ...)."""
    work = case.make(np.random.default_rng(sum(case.name.encode())))
    for launch in work.launches:
        size = {"shared_bytes": launch.shared_bytes} if launch.shared_bytes else {}
        how(kernel(case, launch.name), launch.grid, launch.block, *launch.args, **size, **keywords)
    return work.results


def call(k, *args, **keywords):
    k(*args, **keywords)


def check(results):
    for result in results:
        got, want = np.asarray(result.got), np.asarray(result.want)
        assert got.shape == want.shape
        if got.dtype.kind in "biu":
            assert np.array_equal(got, want)
            continue
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        error = abs(got.astype(wide) - want.astype(wide))
        good = error <= result.tolerance  # False where anything is NaN
        assert np.all(good), (
            f"{np.count_nonzero(~good)} of {good.size} are off, "
            f"the worst by {np.nanmax(error / np.maximum(result.tolerance, 1e-300)):.3g} tolerances"
        )


@cases
def test_results(case, device):
    check(run(case, call, device=device))


@cases
def test_traced(case):
    """A trace changes no result, counts, and finds no hazard."""
    traces = []

    def how(k, *args, **keywords):
        traces.append(smemkern.trace(k, *args, **keywords))

    check(run(case, how))
    assert not [hazard for t in traces for hazard in getattr(t, "hazards", ())]
    assert all(t.warp_instructions == sum(t.instructions.values()) > 0 for t in traces)


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")
@pytest.mark.parametrize("case", [c for c in CASES if c.same_bits], ids=lambda case: case.name)
def test_devices_agree_bit_for_bit(case):
    on_cuda, on_emu = run(case, call, device="cuda"), run(case, call, device="emu")
    for a, b in zip(on_cuda, on_emu, strict=True):
        assert_same_bits(np.ascontiguousarray(a.got), np.ascontiguousarray(b.got))


def test_every_source_has_a_case():
    sources = {*HERE.glob("*.cu"), *HERE.glob("ptx/*.ptx")}
    assert {case.file for case in CASES} == sources
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(path.read_text().startswith("//") for path in sources)


NOT_SUPPORTED = {
    "txq": 'asm("txq.filter_mode.b32 %0, [%1];" : "=r"(v) : "l"(t));',
    "suq": 'asm("suq.channel_order.b32 %0, [%1];" : "=r"(v) : "l"(t));',
}


@pytest.mark.parametrize("name", NOT_SUPPORTED)
def test_what_is_not_supported_names_itself(name):
    body = f"unsigned v; {NOT_SUPPORTED[name]} *y = v;"
    source = f"__global__ void k(float *y, unsigned long long t) {{ {body} }}"
    k = smemkern.Kernel(source, "k")
    with pytest.raises(smemkern.UnsupportedInstructionError, match=rf"`{name}\..*kernel\.cu:1"):
        k(1, 1, np.zeros(1, "f4"), 0, device="emu")


def documented():
    """The rows of the corpus in docs/your-own-kernel.md, name to sentence."""
    text = (HERE.parent.parent / "docs" / "your-own-kernel.md").read_text()
    return dict(re.findall(r"^- `(\w+)`: (.*)$", text.split("## The corpus")[1], re.MULTILINE))


def test_documentation_lists_the_corpus():
    first_lines = {p.stem: p.read_text().split("\n")[0][3:] for p in HERE.glob("*.cu")}
    assert documented() == first_lines
