"""Features of the language one by one: each body computes what NVRTC's code computes, to the bit.

language.cu has the head of the kernel and then, after `//// name`, the bodies. A body has t (0 to
63), int *x and float *f with random values, long long *out and double *d for results, and a shared
array s of 64 ints that holds x.
"""

import numpy as np
import pytest
from lab_compiler import ROOT, Run, compiled

import smemkern

pytestmark = pytest.mark.usefixtures("nvrtc")
HEAD, *SECTIONS = (ROOT / "tests/lab/language.cu").read_text().split("\n//// ")
BODIES = dict(section.split("\n", 1) for section in SECTIONS)


@pytest.mark.parametrize("name", BODIES)
def test_equals_nvrtc(name, drawn):
    source = HEAD + "\n" + BODIES[name] + "}\n"
    args = [
        drawn.integers(-1000, 1001, 64).astype("i4"),
        drawn.standard_normal(64).astype("f4"),
        np.zeros(64, "i8"),
        np.zeros(128, "f8"),
    ]
    own, nvrtc = (
        Run(smemkern.Kernel(text, "k"), 1, 64, args) for text in (compiled(source), source)
    )
    for a, b in zip(own.arrays(), nvrtc.arrays(), strict=True):
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), args
    assert any(np.any(array) for array in own.arrays()[2:]) or name == "counter"
