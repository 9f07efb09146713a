"""Compiles C for the tests of csrc/cuda; skips them where there is no compiler."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CSRC = HERE.parent.parent / "csrc"
SOURCES = [*sorted((CSRC / "cuda").glob("*.c"))]
SOURCES += [CSRC / "core" / f"{name}.c" for name in ("interrupt", "status", "texture")]
SOURCES += sorted(path for path in CSRC.glob("pipeline/*.c") if path.stem != "run_emu")


def build(target: Path, sources: Sequence[Path], *flags: str) -> None:
    compiler = shlex.split(os.environ.get("CC", "gcc"))
    if not shutil.which(compiler[0]):
        pytest.skip("no C compiler")
    command = [*compiler, "-std=gnu17", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
    command += [*flags, *map(str, sources), "-o", str(target), "-pthread", "-ldl", "-lm"]
    subprocess.run(command, check=True)


def build_driver(folder: Path) -> None:
    """The fake driver. Its kernels are loops over arrays of megabytes: they are optimised."""
    flags = ["-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1"]
    build(folder / "libcuda.so.1", sorted(HERE.glob("fake_*.c")), *flags)
