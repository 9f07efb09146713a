"""Kernels with deliberate mistakes: PTX only, because only the emulator runs them.

csrc/kernels/mistakes/<name>.cu -> nvcc -> <name>.ptx
"""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import registry
from .images import ImageError
from .toolkit import Toolkit

OPTIONS = ("-ptx", "-arch=compute_90", "-lineinfo", "-std=c++17", "-allow-unsupported-compiler")


def build(sources: Path, made: Path, kit: Toolkit) -> list[Path]:
    """Compiles every mistake to PTX in the folder `made`. Files that are newer than their source
    and all headers are kept."""
    made.mkdir(parents=True, exist_ok=True)
    headers = [*sources.glob("*.cuh"), *registry.headers(sources.parent)]
    changed = max(header.stat().st_mtime for header in headers)

    def build_one(source: Path) -> Path:
        ptx = made / f"{source.stem}.ptx"
        if not ptx.exists() or ptx.stat().st_mtime < max(changed, source.stat().st_mtime):
            _compile(source, ptx, kit)
        return ptx

    with ThreadPoolExecutor() as pool:
        return list(pool.map(build_one, sorted(sources.glob("*.cu"))))


def _compile(source: Path, ptx: Path, kit: Toolkit) -> None:
    fresh = ptx.with_suffix(".new")
    command = [str(kit.nvcc), *OPTIONS, source.name, "-o", str(fresh.resolve())]
    done = subprocess.run(
        command, cwd=source.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise ImageError(f"{source.name} does not compile:\n{' '.join(command)}\n{done.stdout}")
    # .file directives hold paths of the build machine; keep only the file name.
    text = re.sub(r'(?m)^(\s*\.file\s+\d+\s+")[^"\n]*/', r"\1", fresh.read_text())
    ptx.write_text(text)
    fresh.unlink()
