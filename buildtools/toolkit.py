"""Finds the CUDA compilers, in the toolkit of $NVCC, $CUDA_HOME or PATH, or in NVIDIA's wheels.

Machine code is made of the PTX of nvcc, whose counts were compared with a GPU's. NVRTC takes half
of its time, and makes the PTX for an emulator alone. The wheels become build requirements only
where no toolkit has what is needed (pep517/).
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
# nvcc, its back end, the headers it includes implicitly, the runtime's headers, and libcu++.
NVCC_WHEELS = [
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-nvvm==13.0.*",
    "nvidia-cuda-crt==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "nvidia-cuda-cccl==13.0.*",
]

OLDEST = (12, 0)

_HELP = (
    "Set NVCC to the compiler, CUDA_HOME to the toolkit's folder, or put nvcc on PATH; "
    "or build with isolation (without --no-build-isolation), which installs "
    "NVIDIA's wheels for the build: "
)


class ToolkitError(RuntimeError):
    """No CUDA compiler, or one that cannot be used."""


@dataclass(frozen=True)
class Assembler:
    """What makes machine code."""

    ptxas: Path
    fatbinary: Path
    architectures: frozenset[str]  # supported by ptxas: "80", "90a"


@dataclass(frozen=True)
class Toolkit:
    compiler: Path  # nvcc, or NVRTC's library
    is_nvrtc: bool
    version: tuple[int, int]
    identity: str  # images are rebuilt when it changes
    assembler: Assembler | None  # None if no machine code is wanted


def system_nvcc() -> Path | None:
    """nvcc from the user's environment, or None."""
    if named := os.environ.get("NVCC"):
        found = shutil.which(named)
        if found is None:
            raise ToolkitError(f"NVCC={named} is not a program. {_HELP}{', '.join(NVCC_WHEELS)}")
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
    if machine_code:
        return [] if nvcc else NVCC_WHEELS
    return [] if nvcc and _library(_libraries_of_toolkit(nvcc)) else NVRTC_WHEELS


def find(machine_code: bool) -> Toolkit:
    """The toolkit to build with; without machine code NVRTC, if there is one, or else nvcc."""
    nvcc = system_nvcc()
    if not machine_code:
        folders = [root / "lib" for root in _wheels(sys.path)]
        library = (nvcc and _library(_libraries_of_toolkit(nvcc))) or _library(folders)
        if library:
            return _with_nvrtc(library)
    nvcc = nvcc or next(_wheel_nvccs(sys.path), None)
    if nvcc is None:
        wheels = NVCC_WHEELS if machine_code else NVRTC_WHEELS
        raise ToolkitError(f"no CUDA compiler found. {_HELP}{', '.join(wheels)}")
    return describe(nvcc, machine_code)


def _with_nvrtc(library: Path) -> Toolkit:
    try:
        version = nvrtc.version(library)
    except nvrtc.NvrtcError as error:
        raise ToolkitError(f"{error}. {_HELP}{', '.join(NVRTC_WHEELS)}") from None
    _check_age(library, version)
    return Toolkit(library, True, version, f"{library.resolve().name} {version}", None)


def describe(nvcc: Path, machine_code: bool = True) -> Toolkit:
    identity = _output(nvcc, "--version")
    release = re.search(r"release (\d+)\.(\d+)", identity)
    if release is None:
        raise ToolkitError(f"{nvcc} --version prints no release:\n{identity}")
    version = (int(release[1]), int(release[2]))
    _check_age(nvcc, version)
    assembler = _assembler(_program_folders(nvcc)) if machine_code else None
    return Toolkit(nvcc, False, version, identity, assembler)


def _check_age(compiler: Path, version: tuple[int, int]) -> None:
    if version < OLDEST:
        raise ToolkitError(
            f"{compiler} is CUDA {version[0]}.{version[1]}; {OLDEST[0]}.{OLDEST[1]} or newer is "
            f"needed. {_HELP}{', '.join(NVCC_WHEELS)}"
        )


def _assembler(folders: list[Path]) -> Assembler:
    ptxas, fatbinary = _beside("ptxas", folders), _beside("fatbinary", folders)
    architectures = re.findall(r"'sm_(\d+[af]?)'", _output(ptxas, "--help"))
    return Assembler(ptxas, fatbinary, frozenset(architectures))


def _wheel_nvccs(path: Iterable[str]) -> Iterator[Path]:
    for root in _wheels(path):
        if os.access(root / "bin" / "nvcc", os.X_OK):
            yield root / "bin" / "nvcc"


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
    found = shutil.which(name, path=os.pathsep.join(map(str, folders))) or shutil.which(name)
    if found is None:
        wheels = ", ".join(NVCC_WHEELS)
        raise ToolkitError(f"{name} is neither beside nvcc nor on PATH. {_HELP}{wheels}")
    return Path(found)


def _output(program: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, check=True, errors="replace"
        )
    except OSError as error:
        raise ToolkitError(
            f"{program} does not run: {error}. {_HELP}{', '.join(NVCC_WHEELS)}"
        ) from None
    except subprocess.CalledProcessError as error:
        raise ToolkitError(
            f"{program} {' '.join(arguments)} failed:\n{error.stdout}{error.stderr}"
        ) from None
    return done.stdout + done.stderr
