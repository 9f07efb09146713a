"""Programs for the tests of `smemkern run`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import smemkern

HERE = Path(__file__).resolve().parent
DRIVER = Path(smemkern.__file__).parent / "driver" / "libcuda.so.1"


@pytest.fixture(scope="session")
def host_compiler():
    found = shutil.which("cc") or shutil.which("gcc")
    if not found:
        pytest.skip("needs a C compiler")
    return found


@pytest.fixture(scope="session")
def driver_calls(host_compiler, tmp_path_factory):
    """The program of driver_calls.c."""
    program = tmp_path_factory.mktemp("driver_calls") / "driver_calls"
    source = HERE / "driver_calls.c"
    subprocess.run([host_compiler, "-g", source, "-o", program, DRIVER], check=True)
    return program


@pytest.fixture
def run_program(capfd):
    """run(*words): the exit status of `smemkern run`, what it printed, and what it said."""

    def run(*words):
        command = [sys.executable, "-m", "smemkern", "run", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout, done.stderr

    return run
