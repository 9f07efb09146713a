"""The wheel for aarch64, made on x86-64: compiled by a cross compiler, tried out by qemu.

It needs a folder with Debian's arm64 Python in it, its headers and its libraries (CONTRIBUTING.md),
aarch64-linux-gnu-gcc and qemu-aarch64-static. setuptools then believes that it runs there: these
are the variables by which CPython builds its own modules for another machine.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from collections.abc import Container
from pathlib import Path

from steps import ROOT, call, environment, surroundings
from wheels import (
    ARCHITECTURES,
    BINARY,
    LINK,
    NEEDED_BY_TESTS,
    RUN_TESTS,
    in_folder,
    path_without_nvcc,
    with_tests,
)

sys.path.insert(0, str(ROOT))
from buildtools import toolkit  # noqa: E402

COMPILER = "aarch64-linux-gnu-gcc"
EMULATOR = "qemu-aarch64-static"
# A Python under qemu cannot start another one, and takes twenty times as long.
TESTS = ("tests/test_arguments.py", "tests/test_transpose.py", "tests/test_banks.py")


def lacks(root: Path | None, pythons: Container[str]) -> str:
    """What is missing here for these steps, if anything is."""
    if root is None:
        return "no --arm64 FOLDER given"
    if missing := [program for program in (COMPILER, EMULATOR) if not shutil.which(program)]:
        return " and ".join(missing) + " not on PATH"
    if version_of(root) not in pythons:
        return f"{root} has Python {version_of(root)}, which this release is not for"
    return ""


def python_of(root: Path) -> Path:
    return next(root.glob("usr/bin/python3.*[0-9]"), root / "usr" / "bin" / "python3")


def version_of(root: Path) -> str:
    return python_of(root).name.removeprefix("python")


def build(python: Path, source: Path, root: Path, work: Path) -> str:
    """In a new environment, but not one that pip isolates: that would hold programs of aarch64."""
    own = environment(python, work / "venv")
    with open(source / "pyproject.toml", "rb") as file:
        needed = [*tomllib.load(file)["build-system"]["requires"], *toolkit.NVCC_WHEELS]
    call(own, "-m", "pip", "install", "-q", *BINARY, *needed, where=work)

    name, data = python_of(root).name, "_sysconfigdata__aarch64-linux-gnu"
    (work / "python").mkdir()
    shutil.copy(root / "usr" / "lib" / name / f"{data}.py", work / "python")
    env = surroundings(
        PATH=path_without_nvcc(),
        PYTHONPATH=str(work / "python"),
        _PYTHON_HOST_PLATFORM="linux-aarch64",
        _PYTHON_SYSCONFIGDATA_NAME=data,
        CC=COMPILER,
        LDSHARED=f"{COMPILER} {LINK} --sysroot={root}",
        CFLAGS=f"--sysroot={root} -I{root}/usr/include/{name}",
        SMEMKERN_CUDA_ARCHS=ARCHITECTURES,
        SMEMKERN_CPU="all",
        SMEMKERN_WERROR="1",
    )
    wheel = (own, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps")
    call(*wheel, "--wheel-dir", work / "built", source, where=work, env=env)
    return in_folder(work / "built").name


def try_out(tools: Path, audited: Path, root: Path, work: Path) -> str:
    """Under qemu: the demo and a few of the tests, in one process."""
    place = with_tests(work / "place")
    wheel = in_folder(audited)
    platforms = [wheel.stem.rpartition("-")[2].rpartition(".")[2]]
    platforms += ["manylinux_2_28_aarch64", "manylinux2014_aarch64"]
    target = ("--target", work / "site", "--python-version", version_of(root))
    target += tuple(f"--platform={platform}" for platform in platforms)
    install = (tools / "python", "-m", "pip", "install", "-q", *BINARY, *target)
    call(*install, wheel, *NEEDED_BY_TESTS, where=work)
    env = surroundings(
        PATH="", PYTHONPATH=str(work / "site"), PYTHONWARNINGS="error::RuntimeWarning"
    )
    there = (shutil.which(EMULATOR) or "", "-L", root, python_of(root))
    machine = call(*there, "-c", "import platform; print(platform.machine())", where=place, env=env)
    call(*there, "-m", "smemkern", "demo", where=place, env=env)
    said = call(*there, "-c", RUN_TESTS, *TESTS, where=place, env=env)
    return f"{machine.strip()}: demo; {said.splitlines()[-2].strip('= ')}"
