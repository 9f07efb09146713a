"""The laboratory page for tests, made once from what is in the clone.

$SMEMKERN_LAB_PAGE names a page that is made already.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from buildtools import lab_page

ROOT = Path(__file__).resolve().parents[1]
MADE = ROOT / "build" / "lab"


def lab() -> Path:
    """The page's file; skips the test if the compiler of its module is not installed."""
    if named := os.environ.get("SMEMKERN_LAB_PAGE"):
        return Path(named)
    if find_spec("ziglang") is None:
        pytest.skip("the laboratory page needs the package ziglang: pip install --group lab")
    MADE.mkdir(parents=True, exist_ok=True)
    with open(MADE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        module = lab_page.made_module()
        page = MADE / f"lab-{_digest(module)}.html"
        if not page.exists():
            for old in MADE.glob("lab-*.html"):
                old.unlink()
            page.write_text(lab_page.page(module), encoding="utf-8")
    return page


def _digest(module: bytes) -> str:
    digest = hashlib.sha256(module)
    folders = (lab_page.LAB, lab_page.WEB, lab_page.MADE)
    files = [*(path for folder in folders for path in folder.rglob("*")), Path(lab_page.__file__)]
    for path in sorted(files):
        if path.is_file() and path.suffix in (
            ".js",
            ".css",
            ".html",
            ".ptx",
            ".json",
            ".cu",
            ".py",
        ):
            digest.update(f"{path.name} {path.stat().st_mtime_ns}".encode())
    return digest.hexdigest()[:16]
