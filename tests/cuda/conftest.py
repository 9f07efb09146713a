"""What the tests of csrc/cuda are built from: its sources, compiled here with a fake driver beside.

They need a C compiler and no Python module, no GPU and no toolkit.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cuda_build import HERE, SOURCES, build, build_driver

from checks import environment


@pytest.fixture(scope="session")
def build_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda")


@pytest.fixture(scope="session")
def gpu_cases(build_directory: Path) -> Path:
    program = build_directory / "gpu_cases"
    build(program, [*SOURCES, *sorted(HERE.glob("gpu_cases*.c"))])
    return program


@pytest.fixture(scope="session")
def fake_driver(build_directory: Path) -> Path:
    """A directory that holds a libcuda.so.1."""
    directory = build_directory / "fake"
    directory.mkdir()
    build_driver(directory)
    return directory


@pytest.fixture
def on_fake_driver(fake_driver: Path) -> Callable[..., str]:
    """Runs a script of this folder in a process with the fake driver: what it prints."""

    def run(script: str, *arguments: str, seconds: int = 60) -> str:
        done = subprocess.run(
            [sys.executable, HERE / script, *arguments],
            env=environment(LD_LIBRARY_PATH=fake_driver),
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def cuda_library(build_directory: Path) -> Path:
    """csrc/cuda as a shared library, for ctypes."""
    library = build_directory / "libsmk_cuda.so"
    build(library, SOURCES, "-shared", "-fPIC")
    return library


@pytest.fixture
def fresh_copy(cuda_library: Path, tmp_path: Path) -> Callable[[str], Path]:
    """The library under a new name: with statics of its own, as in a new process."""

    def copy(name: str) -> Path:
        return Path(shutil.copy(cuda_library, tmp_path / name))

    return copy
