"""Kernels with deliberate mistakes: PTX only, because only the emulator runs them.

csrc/kernels/mistakes/<name>.cu -> <name>.ptx
"""

from __future__ import annotations

from pathlib import Path

from . import registry
from .images import ptx_of
from .toolkit import Toolkit

OPTIONS = ("-arch=compute_90", "-lineinfo", "-std=c++17")


def build(sources: Path, made: Path, kit: Toolkit) -> list[Path]:
    """Compiles every mistake to PTX in the folder `made`. Files that are newer than their source
    and all headers are kept."""
    made.mkdir(parents=True, exist_ok=True)
    headers = [*sources.glob("*.cuh"), *registry.headers(sources.parent)]
    changed = max(header.stat().st_mtime for header in headers)

    def build_one(source: Path) -> Path:
        ptx = made / f"{source.stem}.ptx"
        if not ptx.exists() or ptx.stat().st_mtime < max(changed, source.stat().st_mtime):
            ptx.write_text(ptx_of(source.name, source.name, sources, OPTIONS, kit))
        return ptx

    return [build_one(source) for source in sorted(sources.glob("*.cu"))]
