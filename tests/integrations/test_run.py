"""`smemkern run` on scripts of Python packages that compile for a GPU, each in its ordinary way."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent / "scripts"
PACKAGES = {  # what a script takes
    "numba": ["numba_cuda"],
    "cupy": ["cupy"],
    "pycuda": ["pycuda"],
    "cuda_core": ["cuda", "cuda.core"],
    "cuda_bindings": ["cuda", "cuda.bindings"],
    "triton": ["triton", "cupy"],
    "torch": ["triton", "torch"],
}


def run(name, *options):
    for package in PACKAGES[name.partition("_")[2]]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    script = SCRIPTS / f"{name}.py"
    command = [sys.executable, "-m", "smemkern", "run", "--json", *options, sys.executable, script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("name", PACKAGES)
def test_saxpy(name):
    """It runs by the emulator, right, and with the sectors of 1000 consecutive floats."""
    found, printed = run(f"saxpy_{name}")
    assert found["status"] == 0 and "PASS\n" in printed, printed
    assert not found["unsupported"] and not found["misuses"]
    [kernel] = [one for one in found["kernels"] if "saxpy" in one["kernel"]]
    assert kernel["hazards"] == [] and kernel["flops"] == 2000 + (name in ("triton", "torch")) * 48
    store = [row for row in kernel["global"] if row["op"] == "store"]
    assert sum(row["bytes"] for row in store) == 4000


def test_operations_of_pytorch():
    found, printed = run("operations_torch")
    assert found["status"] == 0 and "PASS\n" in printed, printed
    assert not found["unsupported"] and not found["misuses"] and not found["kernels"]
    assert "Warning" not in printed


def test_kernels_of_torch_compile():
    found, printed = run("compiled_torch")
    assert found["status"] == 0 and "PASS\n" in printed, printed
    [kernel] = found["kernels"]
    assert "softmax" in kernel["kernel"] and not kernel["hazards"] and not found["misuses"]


def test_a_race_has_the_line_of_the_script():
    found, _ = run("sum_numba", "--error-exitcode", "9")
    [kernel] = found["kernels"]
    line = (SCRIPTS / "sum_numba.py").read_text().splitlines().index
    race = line("            part[t] += part[t + n]  # the race") + 1
    assert found["status"] == 9 and kernel["hazards"]
    assert {row["line"] for row in kernel["hazards"]} <= {race, race + 3}
