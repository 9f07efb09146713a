"""Finds the CUDA compilers: NVRTC for PTX, and for machine code ptxas and fatbinary.

All of one version: of the toolkit of $NVCC, $CUDA_HOME or PATH, and otherwise NVIDIA's wheels.
The wheels become build requirements only where no toolkit has what is needed (pep517/). A machine
with a toolkit builds with its own; one without it builds the same kernels.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import nvrtc

NVRTC_WHEELS = ["nvidia-cuda-nvrtc==13.0.*"]
# ptxas and fatbinary.
MACHINE_CODE_WHEELS = ["nvidia-cuda-nvcc==13.0.*"]

OLDEST = (12, 0)

_HELP = (
    "Set NVCC to the nvcc of a toolkit with NVRTC, CUDA_HOME to the toolkit's folder, or put nvcc "
    "on PATH; or build with isolation (without --no-build-isolation), which installs NVIDIA's "
    "wheels for the build: " + ", ".join(NVRTC_WHEELS + MACHINE_CODE_WHEELS)
)


class ToolkitError(RuntimeError):
    """No CUDA compiler, or one that cannot be used."""


@dataclass(frozen=True)
class Assembler:
    """What makes machine code."""

    ptxas: Path
    fatbinary: Path
    identity: str  # output of `ptxas --version`
    architectures: frozenset[str]  # supported by ptxas: "80", "90a"


@dataclass(frozen=True)
class Toolkit:
    nvrtc: Path  # the library
    version: tuple[int, int]
    assembler: Assembler | None  # None if no machine code is wanted

    @property
    def identity(self) -> str:
        """Images are rebuilt when it changes."""
        return f"{self.nvrtc.resolve().name} {self.version} {self.assembler}"


def system_nvcc() -> Path | None:
    """nvcc from the user's environment, or None."""
    if named := os.environ.get("NVCC"):
        found = shutil.which(named)
        if found is None:
            raise ToolkitError(f"NVCC={named} is not a program. {_HELP}")
        return Path(found)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            nvcc = Path(home, "bin", "nvcc")
            if os.access(nvcc, os.X_OK):
                return nvcc
    found = shutil.which("nvcc")
    return Path(found) if found else None


def missing_wheels(machine_code: bool) -> list[str]:
    """What pip should install for the build, because no toolkit here has it."""
    nvcc = system_nvcc()
    if nvcc and _library(_libraries_of_toolkit(nvcc)):
        return []
    return NVRTC_WHEELS + (MACHINE_CODE_WHEELS if machine_code else [])


def find(machine_code: bool) -> Toolkit:
    """The toolkit to build with; with ptxas and fatbinary only if machine code is wanted."""
    nvcc = system_nvcc()
    if nvcc and (library := _library(_libraries_of_toolkit(nvcc))):
        return _describe(library, _program_folders(nvcc), machine_code)
    for root in _wheels(sys.path):
        if library := _library([root / "lib"]):
            return _describe(library, [root / "bin"], machine_code)
    found = f"no NVRTC (libnvrtc.so) in the toolkit of {nvcc}" if nvcc else "no CUDA compiler found"
    raise ToolkitError(f"{found}. {_HELP}")


def _describe(library: Path, programs: list[Path], machine_code: bool) -> Toolkit:
    try:
        version = nvrtc.version(library)
    except nvrtc.NvrtcError as error:
        raise ToolkitError(f"{error}. {_HELP}") from None
    if version < OLDEST:
        raise ToolkitError(
            f"{library} is CUDA {version[0]}.{version[1]}; {OLDEST[0]}.{OLDEST[1]} or newer is "
            f"needed. {_HELP}"
        )
    return Toolkit(library, version, _assembler(programs) if machine_code else None)


def _assembler(folders: list[Path]) -> Assembler:
    ptxas, fatbinary = _beside("ptxas", folders), _beside("fatbinary", folders)
    architectures = re.findall(r"'sm_(\d+[af]?)'", _output(ptxas, "--help"))
    return Assembler(ptxas, fatbinary, _output(ptxas, "--version"), frozenset(architectures))


def _program_folders(nvcc: Path) -> list[Path]:
    # nvcc may be a wrapper or a symbolic link; a dry run prints the toolkit's real folder.
    here = re.search(r"^#\$ _HERE_=(.*)$", _output(nvcc, "--dryrun", "-ptx", "any.cu"), re.M)
    folders = [Path(here[1].strip())] if here else []
    return [*folders, nvcc.parent, nvcc.resolve().parent]


def _libraries_of_toolkit(nvcc: Path) -> Iterator[Path]:
    """Where NVIDIA's, conda's and Debian's toolkits have libraries."""
    machine = platform.machine()
    for folder in _program_folders(nvcc):
        for name in ("lib64", "lib", f"targets/{machine}-linux/lib", "targets/sbsa-linux/lib"):
            yield folder.parent / name
    if nvcc.resolve().is_relative_to("/usr/lib") or nvcc.parent == Path("/usr/bin"):
        yield Path(f"/usr/lib/{machine}-linux-gnu")


def _library(folders: Iterable[Path]) -> Path | None:
    """The newest libnvrtc.so.MAJOR of the first folder that has one."""
    for folder in folders:
        found = [file for file in folder.glob("libnvrtc.so.*") if file.suffix[1:].isdigit()]
        majors = [file for file in found if file.name == f"libnvrtc.so{file.suffix}"]
        if majors:
            return max(majors, key=lambda file: int(file.suffix[1:]))
    return None


def _wheels(path: Iterable[str]) -> Iterator[Path]:
    """Folders of NVIDIA's wheels, the newest CUDA of each first."""
    for folder in path:
        yield from sorted(Path(folder).glob("nvidia/cu[0-9]*"), reverse=True)


def _beside(name: str, folders: Iterable[Path]) -> Path:
    found = shutil.which(name, path=os.pathsep.join(map(str, folders)))
    if found is None:
        raise ToolkitError(f"machine code needs {name}, which is not beside NVRTC. {_HELP}")
    return Path(found)


def _output(program: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, check=True, errors="replace"
        )
    except OSError as error:
        raise ToolkitError(f"{program} does not run: {error}. {_HELP}") from None
    except subprocess.CalledProcessError as error:
        raise ToolkitError(
            f"{program} {' '.join(arguments)} failed:\n{error.stdout}{error.stderr}"
        ) from None
    return done.stdout + done.stderr
