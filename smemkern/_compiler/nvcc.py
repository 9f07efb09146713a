"""Compiles whole .cu files by nvcc, if it and a host compiler are installed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .. import _core
from .cuda_tools import find

SECONDS = 300  # limit of one compilation
# What projects commonly set, and what makes more files compile but none other.
_OPTIONS = (
    "-ptx",
    "-lineinfo",
    "--expt-relaxed-constexpr",
    "--expt-extended-lambda",
    "-allow-unsupported-compiler",
    "-Wno-deprecated-gpu-targets",
    "-diag-suppress=20012",
)


class Failure(_core.CompileError):
    """nvcc does not take the source; the text is what it printed."""


class Made(NamedTuple):
    ptx: bytes
    read: tuple[Path, ...]  # the files that were read


def stamp() -> str | None:
    """The path of nvcc and what changes when another one is installed there; None: no nvcc."""
    path = find("nvcc")
    if path is None:
        return None
    facts = os.stat(path)
    return f"{path} {facts.st_size} {facts.st_mtime_ns}"


def compile_file(file: Path, options: Sequence[str], folders: Sequence[Path]) -> Made:
    """PTX of all kernels of a file, also of those templates that its host code instantiates.

    Raises
    ------
    CompileError
        With what nvcc printed.
    """
    path = find("nvcc")
    if path is None:
        raise _core.CompileError("nvcc was not found")
    with tempfile.TemporaryDirectory(prefix="smemkern-") as temporary:
        out, read = Path(temporary, "kernel.ptx"), Path(temporary, "kernel.d")
        command = [path, *_OPTIONS, *options, *(f"-I{folder}" for folder in folders)]
        command += ["-MD", "-MF", str(read), "-o", str(out), str(file)]
        said = _run(command, temporary)
        if not out.is_file():
            raise Failure(said.strip() or "nvcc failed")
        return Made(out.read_bytes(), _read(read))


def _run(command: Sequence[str], temporary: str) -> str:
    """Runs nvcc, and ends it and what it started after SECONDS; returns what they printed."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        env={**os.environ, "TMPDIR": temporary},
    )
    try:
        return process.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        raise _core.CompileError(f"nvcc did not end within {SECONDS} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _read(dependencies: Path) -> tuple[Path, ...]:
    """The files in a rule of make."""
    if not dependencies.is_file():
        return ()
    text = dependencies.read_text(errors="replace").partition(" : ")[2].replace("\\\n", " ")
    names = re.findall(r"(?:\\ |\S)+", text)
    return tuple(Path(name.replace("\\ ", " ")) for name in names)
