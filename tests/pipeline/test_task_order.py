"""No two steps of a flow race, and flows are those recorded.

Of each row recorded_flows.txt has how many flows flow_sweep.c planned, in how many blocks made room
for others, in how many of these something was kept, all their steps, and a digest of the steps.
After a change that is meant to plan otherwise,

    python tests/flows/test_flow_order.py     # writes the file anew; read the difference
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
RECORD = HERE / "recorded_flows.txt"
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "cuda")]
from cuda_build import CSRC, build  # noqa: E402

from buildtools import registry, rows_c  # noqa: E402


def swept(folder: Path) -> str:
    """What the sweep prints, which ends in an error where two steps race."""
    rows = folder / "registry_rows.c"
    rows.write_text(rows_c.c_source(registry.read(CSRC / "kernels")))
    program = folder / "flow_sweep"
    sources = [rows, *sorted(HERE.glob("*.c")), *sorted(CSRC.glob("core/*.c"))]
    build(program, sources, "-O2", "-ffp-contract=off", f"-I{CSRC}")
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_flows_of_every_row(tmp_path: Path) -> None:
    said = swept(tmp_path)
    numbers = [line.rpartition(": ")[2].split()[:3] for line in said.splitlines()]
    flows, in_turns, kept = (sum(map(int, column)) for column in zip(*numbers, strict=True))
    assert flows > 10_000 and in_turns > 10_000 and kept > 50
    assert said == RECORD.read_text()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        RECORD.write_text(swept(Path(folder)))
