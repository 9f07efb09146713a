"""No two tasks of a pipeline race, and plans are those recorded.

recorded_pipelines.txt has, for each variant, the number of pipelines that plan_sweep.c planned, of
those that reuse device memory, of those among them with prepacked operands, the number of all
tasks, and a digest of the tasks. After a new row, or an intended change of plans:

    python tests/pipeline/test_task_order.py     # rewrites the file; review the difference
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RECORD = HERE / "recorded_pipelines.txt"
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "cuda")]
from cuda_build import CSRC, build  # noqa: E402

from buildtools import registry, rows_c  # noqa: E402


def swept(folder: Path) -> str:
    """The output of the sweep, which fails if two tasks race."""
    rows = folder / "registry_rows.c"
    rows.write_text(rows_c.c_source(registry.read(CSRC / "kernels")))
    program = folder / "plan_sweep"
    sources = [rows, *sorted(HERE.glob("*.c")), *sorted(CSRC.glob("core/*.c"))]
    sources += sorted(CSRC.glob("pipeline/plan/*.c"))
    build(program, sources, "-O2", "-ffp-contract=off", f"-I{CSRC}")
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long(instead="the pipelines of one row, and test_cut_products.py")
def test_pipelines_of_every_row(tmp_path: Path) -> None:
    output = swept(tmp_path)
    numbers = [line.rpartition(": ")[2].split()[:3] for line in output.splitlines()]
    pipelines, reusing, prepacked = (sum(map(int, column)) for column in zip(*numbers, strict=True))
    assert pipelines > 10_000 and reusing > 10_000 and prepacked > 50
    again = "a new row, or an intended change? python tests/pipeline/test_task_order.py"
    assert output == RECORD.read_text(), again


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        RECORD.write_text(swept(Path(folder)))
