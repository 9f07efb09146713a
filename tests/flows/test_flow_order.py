"""No two steps of a flow race: what they read and write, and what they wait for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from buildtools import registry, rows_c

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "cuda"))
from cuda_build import CSRC, build  # noqa: E402


def test_flows_of_every_row(tmp_path: Path) -> None:
    rows = tmp_path / "registry_rows.c"
    rows.write_text(rows_c.c_source(registry.read(CSRC / "kernels")))
    program = tmp_path / "flow_sweep"
    sources = [rows, *sorted(HERE.glob("*.c")), *sorted(CSRC.glob("core/*.c"))]
    build(program, sources, "-O2", f"-I{CSRC}")
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    flows, in_turns, kept = map(int, done.stdout.split())
    assert flows > 10_000 and in_turns > 10_000 and kept > 50
