"""Random calls on the emulated driver, of arrays in a GPU's memory, of any strides.

On device "emu" operands that are not contiguous are packed first, so only here such kernels' other
ways to read them are tested without a GPU.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from checks import environment
from test_soak import needs_tree

PROGRAM = Path(__file__).with_name("random_calls.py")
CALLS = 40


@needs_tree
@pytest.mark.parametrize("part", range(4))
def test_right_and_without_hazards(part, draw):
    """And nothing is read or written beside the arrays."""
    program = [sys.executable, PROGRAM, str(draw.randrange(1 << 30)), str(CALLS)]
    done = subprocess.run(
        [sys.executable, "-m", "smemkern", "run", "--json", *program],
        capture_output=True,
        text=True,
        timeout=500,
        env=environment(),
    )
    found = json.loads(done.stdout)
    assert found["status"] == 0 and "PASS" in done.stderr, done.stderr[-2000:]
    assert not found["misuses"] and not found["unsupported"]
    hazards = [one for kernel in found["kernels"] for one in kernel["hazards"]]
    # The launch that adds parts of K reads what follows a row of sums, and does not use it.
    assert not [one for one in hazards if one["kind"] != "uninitialised"], done.stderr[-2000:]
