"""Arrays in a GPU's memory, of any strides, on the emulator: those of the host arrive packed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import smemkern
from checks import environment

PROGRAM = Path(__file__).with_name("strided_products.py")
CALLS = 10


# __cuda_array_interface__ has no bfloat16; its kernels are those for float16.
NAMES = [row.name for row in smemkern.variants("gemm") if row.dtypes != ("bfloat16",)]


@pytest.mark.parametrize("name", NAMES)
def test_products(name, draw):
    """Right, without hazards, and nothing is read or written beside the arrays."""
    seed = draw.randrange(1 << 30)
    program = [sys.executable, PROGRAM, str(seed), str(CALLS), name]
    done = subprocess.run(
        [sys.executable, "-m", "smemkern", "run", "--json", *program],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
    )
    found = json.loads(done.stdout)
    assert found["status"] == 0 and "PASS" in done.stderr, done.stderr[-2000:]
    assert not found["misuses"] and not found["unsupported"]
    hazards = [one for kernel in found["kernels"] for one in kernel["hazards"]]
    # Kernels read the padding of packed rows, and do not use it.
    assert not [one for one in hazards if one["kind"] != "uninitialised"], done.stderr[-2000:]
