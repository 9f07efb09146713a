"""Finds ptxas and nvdisasm, and runs them. Both are optional."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .nvrtc import wheels

SECONDS = 120  # limit of one run
_CACHED = 16  # compilations that are kept
DEFAULT_ARCH = "sm_90"
NAMES = ("ptxas", "nvdisasm")
INSTALL = "pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm, or put the CUDA Toolkit on PATH"


class ToolError(Exception):
    """A tool is missing or failed; the text says which and why."""


def _places(name: str) -> Iterator[Path]:
    on_path = shutil.which(name)
    if on_path:
        yield Path(on_path)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable], "bin", name)
    for nvidia in wheels():
        yield from sorted(nvidia.glob(f"cu[0-9]*/bin/{name}"), reverse=True)
        yield from sorted(nvidia.glob(f"cuda_*/bin/{name}"))
    yield Path("/usr/local/cuda/bin", name)


def find(name: str) -> str | None:
    """The path of a tool: on PATH, in the toolkit of CUDA_HOME or CUDA_PATH, in NVIDIA's wheels,
    or in /usr/local/cuda. None: not found."""
    return next((str(path) for path in _places(name) if os.access(path, os.X_OK)), None)


def run(name: str, *arguments: str) -> str:
    """Runs a tool and returns what it printed."""
    path = find(name)
    if path is None:
        raise ToolError(f"{name} was not found ({INSTALL})")
    try:
        done = subprocess.run(
            [path, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{name} did not end within {SECONDS} s") from None
    except OSError as error:
        raise ToolError(f"{name} could not be run: {error}") from None
    if done.returncode:
        said = done.stdout.strip().splitlines()
        raise ToolError(f"{name} failed: {said[0] if said else f'status {done.returncode}'}")
    return done.stdout


class Resources(NamedTuple):
    """What ptxas -v says of an entry. Sizes are in bytes; registers, stack and spills are per
    thread."""

    arch: str  # "sm_90"
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    static_shared: int  # per block
    barriers: int
    ptxas: str  # its version: "13.0.88"

    def told(self) -> str:
        spilled = self.spill_stores or self.spill_loads
        more = f", {self.stack} bytes of stack" if self.stack else ""
        more += f", spills {self.spill_stores} bytes" if spilled else ", no spills"
        return (
            f"ptxas {self.ptxas} for {self.arch}: {self.registers} registers per thread{more}, "
            f"{self.static_shared} bytes of static shared memory"
        )


class Compiled(NamedTuple):
    resources: Resources
    cubin: bytes


def arch_for(ptx: str, arch: str | None) -> str:
    """`arch` (None: sm_90), or the target of the PTX if that is newer or one architecture's own."""
    wanted = arch or DEFAULT_ARCH
    target = re.search(r"^\s*\.target\s+sm_(\d+)([af]?)", ptx, re.MULTILINE)
    if target is None or (int(target[1]) <= int(wanted[3:]) and not target[2]):
        return wanted
    return f"sm_{target[1]}{target[2]}"


def ptxas_version() -> str:
    version = re.search(r"\bV(\d+(?:\.\d+)+)", run("ptxas", "--version"))
    return version[1] if version else "of unknown version"


_kept: dict[tuple[str, str, str, str], Compiled] = {}


def compiled(ptx: str, entry: str, arch: str | None = None) -> Compiled:
    """The machine code of one entry, with line information. Raises ToolError."""
    path = find("ptxas")
    if path is None:
        raise ToolError(f"ptxas was not found ({INSTALL})")
    key = (path, ptx, entry, arch_for(ptx, arch))
    if key not in _kept:
        made = _compile(*key[1:])
        while len(_kept) >= _CACHED:
            del _kept[next(iter(_kept))]
        _kept[key] = made
    return _kept[key]


def _compile(ptx: str, entry: str, arch: str) -> Compiled:
    version = ptxas_version()
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        text.write_text(ptx, encoding="utf-8")
        options = ["-v", "-lineinfo", f"-arch={arch}", "--entry", entry]
        said = run("ptxas", *options, "-o", str(cubin), str(text))
        return Compiled(_resources(said, entry, arch, version), cubin.read_bytes())


def _resources(said: str, entry: str, arch: str, version: str) -> Resources:
    """Parses the lines of ptxas -v that follow "Compiling entry function 'NAME'"."""
    part = said.partition(f"entry function '{entry}'")[2].partition("entry function")[0]

    def number(pattern: str) -> int:
        found = re.search(pattern, part)
        return int(found[1]) if found else 0

    registers = number(r"Used (\d+) registers")
    if not registers:
        raise ToolError(f"ptxas did not print the registers of {entry}")
    return Resources(
        arch=arch,
        registers=registers,
        stack=number(r"(\d+) bytes stack frame"),
        spill_stores=number(r"(\d+) bytes spill stores"),
        spill_loads=number(r"(\d+) bytes spill loads"),
        static_shared=number(r"(\d+) bytes smem"),
        barriers=number(r"used (\d+) barriers"),
        ptxas=version,
    )


def disassembly(cubin: bytes) -> str:
    """The machine code as text, with the PTX line of each instruction. Raises ToolError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        return run("nvdisasm", "--print-code", "--print-line-info-ptx", str(path))
