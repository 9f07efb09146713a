"""Finding NVRTC and CUDA's headers, where smemkern[nvrtc] puts them or in a toolkit."""

from __future__ import annotations

import os
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path


def _installed() -> Iterator[Path]:
    """Folders that packages are installed in, as far as they are on sys.path.

    Not all of sys.path: the first of it is the current folder, or a program's. A library would be
    loaded from there, and who starts Python in a folder does not mean to run what lies in it.
    """
    known = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    known.update(getattr(site, "getsitepackages", list)())  # which old virtualenvs lack
    if getattr(site, "ENABLE_USER_SITE", False):
        known.add(site.getusersitepackages())
    if not sys.flags.ignore_environment:  # as of pip install --target
        known.update(os.environ.get("PYTHONPATH", "").split(os.pathsep))
    for folder in sys.path:
        if folder in known and os.path.isabs(folder):
            yield Path(folder)


def _wheels() -> Iterator[Path]:
    """Folders of NVIDIA's wheels: one a package for CUDA 12, one in all from 13 on."""
    for folder in _installed():
        yield folder / "nvidia"


def library() -> str | None:
    """Path of the newest libnvrtc among NVIDIA's wheels that are installed, or None."""
    found: list[Path] = []
    for nvidia in _wheels():
        for place in ("cu[0-9]*/lib", "cuda_nvrtc/lib"):
            found += nvidia.glob(f"{place}/libnvrtc.so.[0-9]*")
    # The suffix is the major version: .so.12, .so.13
    newest = max(found, key=lambda path: int(path.suffix[1:]), default=None)
    return None if newest is None else str(newest)


def _include_roots() -> Iterator[Path]:
    """Folders that may hold CUDA's headers, the likeliest to fit first."""
    for nvidia in _wheels():
        yield from sorted(nvidia.glob("cu[0-9]*/include"), reverse=True)
        yield nvidia / "cuda_runtime" / "include"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable], "include")
    nvcc = shutil.which("nvcc")
    if nvcc:
        yield Path(nvcc).resolve().parent.parent / "include"
    yield Path("/usr/local/cuda/include")


def _folders(root: Path) -> list[Path] | None:
    """An installation's folders of headers, libcu++'s too; None where one of them is missing."""
    libcuxx = (root / "cccl", root.parent.parent / "cuda_cccl" / "include", root)
    found = [folder for folder in libcuxx if (folder / "nv" / "target").is_file()]
    whole = all((root / name).is_file() for name in ("cuda_fp16.h", "crt/mma.h"))
    return list(dict.fromkeys([root, *found])) if whole and found else None


def include_options() -> tuple[str, ...]:
    """-I options for the first whole installation; for want of one, the first with cuda_fp16.h."""
    roots = [root for root in _include_roots() if (root / "cuda_fp16.h").is_file()]
    whole = [folders for folders in map(_folders, roots) if folders]
    chosen = whole[0] if whole else roots[:1]
    return tuple(f"-I{folder}" for folder in chosen)
