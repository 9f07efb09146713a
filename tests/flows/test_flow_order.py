"""No two steps of a flow race: what they read and write, and what they wait for."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from buildtools import registry, rows_c

HERE = Path(__file__).parent
CSRC = HERE.parent.parent / "csrc"


def test_flows_of_every_row(tmp_path: Path) -> None:
    compiler = shutil.which(os.environ.get("CC", "gcc").split()[0])
    if not compiler:
        pytest.skip("no C compiler")
    rows = tmp_path / "registry_rows.c"
    rows.write_text(rows_c.c_source(registry.read(CSRC / "kernels")))
    program = tmp_path / "flow_sweep"
    sources = [rows, HERE / "flow_sweep.c", HERE / "flow_order.c", *sorted(CSRC.glob("core/*.c"))]
    command = [compiler, "-std=gnu17", "-O2", "-g", f"-I{CSRC}", *sources, "-o", program, "-lm"]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    flows, in_turns, kept = map(int, done.stdout.split())
    assert flows > 10_000 and in_turns > 10_000 and kept > 50
