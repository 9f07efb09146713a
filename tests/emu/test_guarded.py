"""Memory that kernels reach lies between guards (csrc/emu/base/guarded.h), in both builds of it."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BYTES = 1000  # as in guarded_cases.c: 24 bytes before the end of a page


@pytest.fixture(scope="module", params=["plain", "checked"])
def cases(request, tmp_path_factory):
    compiler = shutil.which(os.environ.get("CC", "cc").split()[-1])
    if not compiler:
        pytest.skip("no C compiler")
    program = tmp_path_factory.mktemp("guarded") / request.param
    flags = ["-std=gnu17", "-O1", "-w", "-pthread"]
    flags += ["-DEMU_CHECKED"] if request.param == "checked" else []
    base = HERE.parents[1] / "csrc/emu/base"
    sources = [HERE / "guarded_cases.c", base / "guarded.c", base / "pages.c"]
    subprocess.run([compiler, *flags, *sources, "-o", program], check=True)
    plain = {**os.environ, "LD_PRELOAD": ""}  # no sanitizer: these programs are to crash

    def run(*arguments):
        return subprocess.run(
            [program, *map(str, arguments)], env=plain, capture_output=True, text=True, timeout=60
        )

    run.checked = request.param == "checked"
    return run


@pytest.mark.parametrize("name", ["write", "read", "arena", "again", "nothing"])
def test_within(cases, name):
    done = cases(name)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr


@pytest.mark.parametrize("at", [BYTES + 24, BYTES + 4096, BYTES - 4097, BYTES + 24 - 4096 - 1])
@pytest.mark.parametrize("name", ["write", "read"])
def test_the_guards_end_the_process(cases, name, at):
    assert cases(name, at).returncode == -signal.SIGSEGV


@pytest.mark.parametrize(("at", "where"), [(BYTES, "after"), (BYTES + 23, "after")])
def test_the_canary_behind(cases, at, where):
    """What alignment leaves over can be written without a fault; the checked build sees it."""
    done = cases("write", at)
    assert done.returncode == (-signal.SIGABRT if cases.checked else 0)
    assert (where in done.stderr) == cases.checked


@pytest.mark.parametrize("at", [-1, -100])
def test_the_canary_before(cases, at):
    done = cases("write", at)
    assert done.returncode == (-signal.SIGABRT if cases.checked else 0)
    assert ("before" in done.stderr) == cases.checked


def test_blocks_of_an_arena(cases):
    assert cases("arena", 1 << 20).returncode == -signal.SIGSEGV
