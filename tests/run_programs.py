"""Programs for `smemkern run`, compiled by nvcc."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests" / "run" / "programs"


def page_source():
    """sum.cu of docs/run.md."""
    page = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
    return re.search(r"```cuda\n(.*?)```", page, re.S)[1]


def compiled(folder, name, *options, text=None):
    """folder/name, from programs/name.cu or from a text."""
    if not shutil.which("nvcc"):
        pytest.skip("needs nvcc")
    source = folder / f"{name}.cu"
    source.write_text(text or (PROGRAMS / source.name).read_text())
    command = ["nvcc", "-g", "-lineinfo", *options, source.name, "-o", name]
    subprocess.run(command, check=True, cwd=folder)
    return folder / name
