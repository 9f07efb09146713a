"""The counting rules against what an NVIDIA GPU counted, without one.

benchmarks/results/exactness-*.json holds, of random requests that a seed gives back, what Nsight
Compute measured and what the emulator said then. The emulator has to say it again.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import smemkern

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))

from exactness.operations import OPERATIONS  # noqa: E402
from exactness.patterns import draw  # noqa: E402
from exactness.predict import predicted  # noqa: E402
from exactness.variants import calls  # noqa: E402
from exactness.variants import predicted as predicted_call  # noqa: E402

RESULTS = sorted((BENCHMARKS / "results").glob("exactness-*.json"))
GOLDEN = [json.loads(file.read_text()) for file in RESULTS]
ROWS = [
    pytest.param(golden["seed"], name, row, id=f"{file.stem}-{name}")
    for file, golden in zip(RESULTS, GOLDEN, strict=True)
    for name, row in golden["operations"].items()
]


def test_every_operation_was_measured():
    assert GOLDEN
    for golden in GOLDEN:
        assert set(golden["operations"]) == set(OPERATIONS)


@pytest.mark.parametrize(("seed", "name", "row"), ROWS)
def test_patterns(seed, name, row):
    operation = OPERATIONS[name]
    patterns = draw(operation, seed, row["patterns"])
    said = [predicted(operation, pattern) for pattern in patterns]
    if not row["modelled"]:
        # What the hardware counts; of cp.async only the instrumented code does.
        measured = row.get("hardware", row.get("sass"))
        assert said == measured
    else:
        assert said == row["predicted"]


@pytest.mark.parametrize("golden", GOLDEN, ids=[file.stem for file in RESULTS])
def test_variants(golden):
    """Every call's totals are those measured, but for the differences that are on record."""
    measured = {line["call"]: line for line in golden["variants"]}
    for call in calls():
        line = measured[str(call)]
        said = predicted_call(call)
        differs = {
            what: [said[what], count]
            for what, count in zip(said, line["measured"], strict=True)
            if said[what] != count
        }
        assert differs == line["differs"], str(call)


def joined(loads: str) -> list[int]:
    """Machine requests and wavefronts of a kernel that loads with `loads`, a warp of 32 lanes."""
    ptx = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<12>;
    .reg .b64 %d<4>;
    .reg .f32 %f<9>;
    .shared .align 4 .b8 first[4];
    .shared .align 16 .b8 tile[4096];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 5;
    mov.u32 %r3, tile;
    add.u32 %r4, %r3, %r2;
    shl.b32 %r7, %r1, 2;
    add.u32 %r8, %r3, %r7;
    {loads}
    ret;
}}
"""
    trace = smemkern.trace(smemkern.Kernel(ptx, "k"), 1, 32, np.zeros(32, "f4"))
    rows = [row for row in trace.shared if row.op == "load"]
    assert sum(row.requests for row in rows) == loads.count("ld.")
    return [sum(r.machine_requests for r in rows), sum(r.machine_wavefronts for r in rows)]


@pytest.mark.parametrize(
    ("loads", "requests"),
    [
        ("ld.shared.f32 %f1, [%r4]; ld.shared.f32 %f2, [%r4+4];", 1),
        ("ld.shared.f32 %f1, [%r4+4]; ld.shared.f32 %f2, [%r4+8];", 1),  # 16 bytes cover both
        ("ld.shared.f32 %f1, [%r4+12]; ld.shared.f32 %f2, [%r4+16];", 2),  # two pieces of 16
        ("ld.shared.f32 %f1, [%r8]; ld.shared.f32 %f2, [%r8+4];", 2),  # multiples of 4 only
        ("ld.shared.f32 %f1, [%r4]; ld.shared.f32 %f2, [%r8+4];", 2),  # two registers
        ("ld.shared.f32 %f1, [%r4]; bar.sync 0; ld.shared.f32 %f2, [%r4+4];", 2),
        ("ld.shared.f32 %f1, [%r4]; st.shared.f32 [%r8], %f1; ld.shared.f32 %f2, [%r4+4];", 2),
        ("ld.shared.f32 %f1, [%r4]; add.u32 %r4, %r4, 16; ld.shared.f32 %f2, [%r4+4];", 2),
        ("ld.volatile.shared.f32 %f1, [%r4]; ld.volatile.shared.f32 %f2, [%r4+4];", 2),
        ("ld.shared.v2.f32 {%f1,%f2}, [%r4]; ld.shared.v2.f32 {%f3,%f4}, [%r4+8];", 1),
    ],
)
def test_joined_loads(loads, requests):
    assert joined(loads)[0] == requests
