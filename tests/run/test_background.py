"""Kernels that wait for what the host does after the launch."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PTX = Path(__file__).resolve().parent / "kernels.ptx"


@pytest.fixture
def start(driver_calls):
    """start(words): a run of driver_calls in a group of processes of its own."""

    def begin(words, *options):
        command = [sys.executable, "-m", "smemkern", "run", *options, driver_calls, PTX]
        return subprocess.Popen(
            [*command, *words.split()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return begin


def end(started, seconds=60):
    """The output and messages of a run, and its status."""
    try:
        out, err = started.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        raise
    return " ".join(out.split()), err, started.returncode


@pytest.mark.parametrize("options", [(), ("--counts-only",), ("--shuffle", "1")])
def test_a_kernel_sees_what_the_host_writes_after_the_launch(start, options):
    out, err, status = end(start("pinned await signal sync answer free", *options))
    assert status == 0 and not err
    assert "await 0 sync 0 answer 7" in out
    assert "1 kernel, 1 launch: 0 hazards" in out


def test_a_query_while_the_kernel_runs_is_not_ready(start):
    out, _, status = end(start("pinned await query signal sync query"))
    assert status == 0 and "await 0 query 600 sync 0 query 0" in out


def test_a_launch_that_ends_soon_has_ended_when_its_call_returns(start):
    out, _, _ = end(start("pinned signal await answer await answer"))
    assert "await 0 answer 7 await 0 answer 7" in out


def test_counts_are_the_same_in_the_background(start):
    found = []
    for words in ("pinned add sync", "add sync"):
        out, _, _ = end(start(words, "--json"))
        [kernel] = json.loads(out[out.index("{") :])["kernels"]
        found.append((kernel["global"], kernel["warp_instructions"], kernel["bytes_moved"]))
        assert kernel["callers"][0]["file"].endswith("driver_calls.c")
    assert found[0] == found[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_host_goes_on(start, number):
    """The kernel ends, its report follows, and the program receives the signal."""
    started = start("pinned await ready sleep")
    assert "ready\n" in iter(started.stdout.readline, "")
    time.sleep(0.3)
    if number == signal.SIGINT:
        os.killpg(started.pid, number)
    else:
        started.send_signal(number)
    out, _, status = end(started)
    assert status == 128 + number
    assert re.search(r"interrupted; .*thread \(0, 0, 0\) is at", out), out


@pytest.mark.long(instead="test_a_query_while_the_kernel_runs_is_not_ready")
def test_a_call_that_waits_for_such_a_kernel_says_so(start):
    started = start("pinned await fill")
    line = started.stderr.readline()
    assert "cuMemcpyHtoD waits for the kernel of an earlier cuLaunchKernel" in line
    os.killpg(started.pid, signal.SIGINT)
    out, _, status = end(started)
    assert status == 128 + signal.SIGINT and "interrupted" in out
