"""Memory that the extension asks for and does not get: MemoryError, nothing lost, go on."""

import subprocess
import sys
from pathlib import Path

import pytest
from cuda_build import build, build_driver

from checks import environment

HERE = Path(__file__).parent
CUDA = HERE / "cuda"

ON_EMU = "kernel gemm batches tensor_maps textures split transpose".split()
ON_EMU += "trace trace_bulk hazards blocks".split()
ON_GPU = "gpu_blocks gpu_several gpu_transpose gpu_arrays".split()


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """The allocator, and the fake driver."""
    folder = tmp_path_factory.mktemp("faults")
    flags = ("-shared", "-fPIC", "-fvisibility=hidden")
    build(folder / "failing_allocator.so", [HERE / "faults" / "failing_allocator.c"], *flags)
    build_driver(folder)
    return folder


@pytest.mark.parametrize("operation", ON_EMU + ON_GPU)
def test_each_request_failing(libraries, operation):
    own = environment(
        CUDA,
        LD_PRELOAD=libraries / "failing_allocator.so",
        LD_LIBRARY_PATH=libraries,
        PYTHONWARNINGS="ignore::RuntimeWarning",
    )
    done = subprocess.run(
        [sys.executable, HERE / "faults" / "allocations.py", operation],
        env=own,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert int(done.stdout.split(f"{operation}: ")[-1].split()[0]) >= 5
