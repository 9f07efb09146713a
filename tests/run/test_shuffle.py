"""`smemkern run --shuffle`: programs that miss a wait show it, and their correct twins do not."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import smemkern
from smemkern._device.emulated import emulated_device

HERE = Path(__file__).resolve().parent
PTX = HERE / "kernels.ptx"
DRIVER = Path(smemkern.__file__).parent / "driver" / "libcuda.so.1"
SEEDS = 24


@pytest.fixture(scope="module")
def streams(host_compiler, tmp_path_factory):
    program = tmp_path_factory.mktemp("streams") / "streams"
    subprocess.run([host_compiler, "-g", HERE / "streams.c", "-o", program, DRIVER], check=True)
    return program


@pytest.fixture
def printed(streams, tmp_path):
    """printed(seed, *words): what the program prints with the driver alone."""

    def run(seed, *words):
        environment = os.environ | {
            "LD_LIBRARY_PATH": str(DRIVER.parent),
            "SMEMKERN_RUN_DEVICE": emulated_device("h100").described(),
            "SMEMKERN_RUN_SHUFFLE": "" if seed is None else str(seed),
        }
        command = [streams, PTX, *words]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout.strip()

    return run


NAMES = [
    "host-reads",
    "host-writes",
    "two-streams",
    "early-event",
    "default-stream",
    "callback",
    "query",
    "not-pinned",
    "blocking-copy",
]


@pytest.mark.parametrize("name", NAMES)
def test_correct_programs_stay_so(printed, name):
    first = random.randrange(2**40)
    for seed in (None, *range(first, first + SEEDS)):
        assert printed(seed, name) == "6", seed


@pytest.mark.parametrize("name", [one for one in NAMES if one != "not-pinned"])
def test_missing_waits_show(printed, name):
    """In at least one order of four, so 100 seeds without one have a chance of 1e-12; without
    --shuffle they do not."""
    first = random.randrange(2**40)
    assert printed(None, name, "wrong") == "6"
    shown = next((s for s in range(first, first + 100) if printed(s, name, "wrong") != "6"), None)
    assert shown is not None, first
    assert len({printed(shown, name, "wrong") for _ in range(4)}) == 1, shown  # a seed is an order


def test_the_report_has_the_lines_of_the_calls(streams):
    """Work that runs later is reported at the call that queued it."""
    command = [sys.executable, "-m", "smemkern", "run", "--json", "--shuffle", "3", streams, PTX]
    done = subprocess.run([*command, "host-reads"], capture_output=True, text=True, timeout=60)
    found = json.loads(done.stdout)
    [kernel] = found["kernels"]
    [caller] = kernel["callers"]
    text = (HERE / "streams.c").read_text().splitlines()
    assert "CHECK(cuLaunchKernel(" in text[caller["line"] - 1] and found["shuffle"] == 3
    assert kernel["hazards"] == [] and found["misuses"] == []
