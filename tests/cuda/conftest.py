"""What the tests of csrc/cuda are built from: its sources, compiled here with a fake driver beside.

They need a C compiler and no Python module, no GPU and no toolkit.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cuda_build import HERE, SOURCES, build


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
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1"]
    build(directory / "libcuda.so.1", sorted(HERE.glob("fake_*.c")), *flags)
    return directory


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
