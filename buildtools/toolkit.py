"""Finds a CUDA compiler: $NVCC, $CUDA_HOME, PATH, and otherwise the CUDA Toolkit's wheels.

The wheels become build requirements only if none of the first three has nvcc (pep517/). A machine
with a toolkit builds with its own; one without it builds the same kernels.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# nvcc, its back end, the headers it includes implicitly, the runtime's headers, and libcu++.
WHEELS = [
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
    "NVIDIA's wheels for the build: " + ", ".join(WHEELS)
)


class ToolkitError(RuntimeError):
    """No CUDA compiler, or one that cannot be used."""


@dataclass(frozen=True)
class Toolkit:
    nvcc: Path
    ptxas: Path
    fatbinary: Path
    version: tuple[int, int]
    identity: str  # output of `nvcc --version`; images are rebuilt when it changes
    architectures: frozenset[str]  # supported by ptxas: "80", "90a"


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


def find() -> Toolkit:
    """The toolkit to build with."""
    nvcc = system_nvcc() or next(_wheel_nvccs(sys.path), None)
    if nvcc is None:
        raise ToolkitError(f"no CUDA compiler found. {_HELP}")
    return describe(nvcc)


def describe(nvcc: Path) -> Toolkit:
    identity = _output(nvcc, "--version")
    release = re.search(r"release (\d+)\.(\d+)", identity)
    if release is None:
        raise ToolkitError(f"{nvcc} --version prints no release:\n{identity}")
    version = (int(release[1]), int(release[2]))
    if version < OLDEST:
        raise ToolkitError(
            f"{nvcc} is CUDA {version[0]}.{version[1]}; {OLDEST[0]}.{OLDEST[1]} or newer is "
            f"needed. {_HELP}"
        )
    # nvcc may be a wrapper or a symbolic link; a dry run prints the toolkit's real folder.
    here = re.search(r"^#\$ _HERE_=(.*)$", _output(nvcc, "--dryrun", "-ptx", "any.cu"), re.M)
    folders = [here[1].strip()] if here else []
    folders += [str(nvcc.parent), str(nvcc.resolve().parent)]
    ptxas, fatbinary = _beside("ptxas", folders), _beside("fatbinary", folders)
    return Toolkit(
        nvcc=nvcc,
        ptxas=ptxas,
        fatbinary=fatbinary,
        version=version,
        identity=identity,
        architectures=frozenset(re.findall(r"'sm_(\d+[af]?)'", _output(ptxas, "--help"))),
    )


def _wheel_nvccs(path: Iterable[str]) -> Iterator[Path]:
    for folder in path:
        for nvcc in sorted(Path(folder).glob("nvidia/cu*/bin/nvcc"), reverse=True):
            if os.access(nvcc, os.X_OK):
                yield nvcc


def _beside(name: str, folders: Iterable[str]) -> Path:
    found = shutil.which(name, path=os.pathsep.join(folders)) or shutil.which(name)
    if found is None:
        raise ToolkitError(f"{name} is neither beside nvcc nor on PATH. {_HELP}")
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
