"""Finds NVRTC and CUDA's headers, in the packages of the extra nvrtc or in a CUDA Toolkit."""

from __future__ import annotations

import os
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path


def _installed() -> Iterator[Path]:
    """The folders of sys.path in which packages are installed.

    Not all of sys.path: its first entry is the current folder or that of the program. Loading a
    library from there would run code that happens to be in the folder where Python was started.
    """
    known = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    known.update(getattr(site, "getsitepackages", list)())  # missing in old virtualenvs
    if getattr(site, "ENABLE_USER_SITE", False):
        known.add(site.getusersitepackages())
    if not sys.flags.ignore_environment:  # for pip install --target
        known.update(os.environ.get("PYTHONPATH", "").split(os.pathsep))
    for folder in sys.path:
        if folder in known and os.path.isabs(folder):
            yield Path(folder)


def wheels() -> Iterator[Path]:
    """Folders of NVIDIA's wheels: subfolders per package for CUDA 12, a common one from 13 on."""
    for folder in _installed():
        yield folder / "nvidia"


def library() -> str | None:
    """The path of the newest libnvrtc in the installed NVIDIA wheels, or None."""
    found: list[Path] = []
    for nvidia in wheels():
        for place in ("cu[0-9]*/lib", "cuda_nvrtc/lib"):
            found += nvidia.glob(f"{place}/libnvrtc.so.[0-9]*")
    # The suffix is the major version: .so.12, .so.13
    newest = max(found, key=lambda path: int(path.suffix[1:]), default=None)
    return None if newest is None else str(newest)


def _include_roots() -> Iterator[Path]:
    """Folders that may hold CUDA's headers, those most likely to match NVRTC first."""
    for nvidia in wheels():
        yield from sorted(nvidia.glob("cu[0-9]*/include"), reverse=True)
        yield nvidia / "cuda_runtime" / "include"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable], "include")
    nvcc = shutil.which("nvcc")
    if nvcc:
        yield Path(nvcc).resolve().parent.parent / "include"
    yield Path("/usr/local/cuda/include")


def all_include_options() -> tuple[str, ...]:
    """include_options(), and a toolkit for the headers of libraries that wheels leave out."""
    first = include_options()
    chosen = {option[2:] for option in first}
    roots = [root for root in _include_roots() if (root / "curand_kernel.h").is_file()]
    roots += [path.parent for nvidia in wheels() for path in nvidia.glob("*/include/curand.h")]
    more = dict.fromkeys(f"-I{root}" for root in roots if str(root) not in chosen)
    return (*first, *more)


def _folders(root: Path) -> list[Path] | None:
    """The header folders of an installation, including libcu++'s; None if it is incomplete."""
    libcuxx = (root / "cccl", root.parent.parent / "cuda_cccl" / "include", root)
    found = [folder for folder in libcuxx if (folder / "nv" / "target").is_file()]
    whole = all((root / name).is_file() for name in ("cuda_fp16.h", "crt/mma.h"))
    return list(dict.fromkeys([root, *found])) if whole and found else None


def include_options() -> tuple[str, ...]:
    """-I options for the first complete installation, or else for the first with cuda_fp16.h."""
    roots = [root for root in _include_roots() if (root / "cuda_fp16.h").is_file()]
    whole = [folders for folders in map(_folders, roots) if folders]
    chosen = whole[0] if whole else roots[:1]
    return tuple(f"-I{folder}" for folder in chosen)
