"""The build's own use of NVRTC, where it is installed."""

from pathlib import Path

import pytest

from buildtools import nvrtc
from smemkern._compiler import nvrtc as ours

GOOD = """
#include "step.cuh"
extern "C" __global__ void one(int *x) { x[threadIdx.x] += STEP; }
"""


@pytest.fixture
def compiled(tmp_path):
    """compiled(source): its PTX."""
    library = ours.library()
    if library is None:
        pytest.skip("NVRTC is not installed")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "step.cuh").write_text("#define STEP 71\n")

    def compile_one(source, *options):
        file = tmp_path / "below" / "one.cu"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)
        options = ("-arch=compute_80", "-lineinfo", "-Iparts", *options)
        return nvrtc.compile_to_ptx(Path(library), tmp_path, "below/one.cu", options)

    return compile_one


def test_ptx_has_lines(compiled):
    text = compiled(GOOD)
    assert ".target sm_80" in text and ", 71;" in text
    assert "below/one.cu" in text


def test_errors_and_warnings_are_errors(compiled):
    with pytest.raises(
        nvrtc.NvrtcError, match=r'below/one.cu(.|\n)*identifier "STEPS" is undefined'
    ):
        compiled(GOOD.replace("+= STEP", "+= STEPS"))
    with pytest.raises(nvrtc.NvrtcError, match=r"warnings are errors(.|\n)*never referenced"):
        compiled(GOOD.replace("{ x", "{ int y; x"))
    with pytest.raises(nvrtc.NvrtcError, match="unrecognized option"):
        compiled(GOOD, "--nonsense")
