"""Runs tests of the tree of c_mutants.py in forked processes: pytest and NumPy are imported once.

A run ends at its first failure, and is ended if it takes too long or too much memory.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

MEMORY = 8 << 30  # bytes of address space
IMPORTED = ("numpy", "numpy.testing", "hypothesis", "ml_dtypes", "xdist", "pytest_benchmark.plugin")
PLUGINS = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:benchmark"]
OPTIONS = ["-q", "--tb=line", "-o", "addopts=", *PLUGINS]


class Outcome(NamedTuple):
    """how: "passed", "failed", "crashed", "hung" or "broken" (no test could be collected)."""

    how: str
    test: str  # the test that ended the run
    seconds: float


class Selection:
    """A pytest plugin that runs only these tests, in this order, and logs the current one."""

    def __init__(self, chosen: Sequence[str], log: int) -> None:
        self.place = {name: k for k, name in enumerate(chosen)}
        self.log = log

    def say(self, what: str, name: str) -> None:
        os.write(self.log, f"{what} {name}\n".encode())

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid in self.place]
        items.sort(key=lambda item: self.place[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.say("begins", nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.say("failed", report.nodeid)
        elif report.when == "teardown":
            self.say("ended", report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.say("failed", report.nodeid or "collection")


def import_once() -> None:
    for name in IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def forked(
    tree: Path,
    work: Callable[[int], int],
    output: Path,
    limit: Callable[[str], float],
    memory: int | None = MEMORY,
) -> tuple[int | None, list[str], float]:
    """Runs work(log) in a child process within the tree.

    Returns its status, the lines of its log, and its seconds. The status is None if it exceeded
    limit(last line of its log) before the next line.
    """
    began = time.monotonic()
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reads)
            os.setsid()
            if memory:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            into = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(into, 1)
            os.dup2(into, 2)
            os.chdir(tree)
            sys.path.insert(0, str(tree))
            os.environ["PYTHONPATH"] = str(tree)
            os.environ["CC"] = str(tree.parent / "cc")
            os._exit(work(writes))
        finally:
            os._exit(99)
    os.close(writes)
    os.set_blocking(reads, False)
    text, heard, status = "", time.monotonic(), None
    while True:
        with contextlib.suppress(BlockingIOError):
            while part := os.read(reads, 1 << 16):
                text, heard = text + part.decode(), time.monotonic()
        ended, code = os.waitpid(child, os.WNOHANG)
        if ended:
            status = os.waitstatus_to_exitcode(code)
            break
        if time.monotonic() - heard > limit(text.rstrip("\n").rpartition("\n")[2]):
            break
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    with contextlib.suppress(BlockingIOError):
        while part := os.read(reads, 1 << 16):
            text += part.decode()
    os.close(reads)
    return status, text.splitlines(), time.monotonic() - began


def run(
    tree: Path, chosen: Sequence[str], seconds: dict[str, float], memory: int | None = MEMORY
) -> Outcome:
    """Runs the tests in order, up to the first failure; seconds: their usual times."""
    scratch = tree.parent / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    files = list(dict.fromkeys(name.partition("::")[0] for name in chosen))

    def work(log: int) -> int:
        arguments = [*OPTIONS, "-x", f"--basetemp={scratch / 'tests'}", *files]
        return int(pytest.main(arguments, [Selection(chosen, log)]))

    def limit(line: str) -> float:
        what, _, name = line.partition(" ")
        return 60 if what != "begins" else 15 + 6 * seconds.get(name, 1)

    for _ in range(3):
        status, lines, took = forked(tree, work, scratch / "output", limit, memory)
        if status != -signal.SIGKILL:  # a mutant does not send SIGKILL itself
            break
    failed = [line.split(" ", 1)[1] for line in lines if line.startswith("failed ")]
    last = lines[-1].split(" ", 1)[1] if lines else "import"
    if failed:
        return Outcome("failed", failed[0], took)
    if status == 0:
        return Outcome("passed", "", took)
    if status is None:
        return Outcome("hung", last, took)
    if status < 0 or status == 99:
        return Outcome("crashed", last, took)
    return Outcome("broken", last, took)
