"""Finding NVRTC where `pip install smemkern[nvrtc]` puts it; the core searches the system."""

from __future__ import annotations

import sys
from pathlib import Path


def library() -> str | None:
    """Path of the newest libnvrtc among NVIDIA's wheels on sys.path, or None."""
    found: list[Path] = []
    for folder in sys.path:
        nvidia = Path(folder or ".", "nvidia")
        for place in ("cu[0-9]*/lib", "cuda_nvrtc/lib"):
            found += nvidia.glob(f"{place}/libnvrtc.so.[0-9]*")
    # The suffix is the major version: .so.12, .so.13
    newest = max(found, key=lambda path: int(path.suffix[1:]), default=None)
    return None if newest is None else str(newest)
