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
sys.path += [str(BENCHMARKS), str(BENCHMARKS.parent / "validation")]

from exactness.corpus import CASES  # noqa: E402
from exactness.operations import OPERATIONS  # noqa: E402
from exactness.parts import compared_again  # noqa: E402
from exactness.patterns import draw  # noqa: E402
from exactness.play import PARTS  # noqa: E402
from exactness.predict import predicted  # noqa: E402
from exactness.reasons import BY_SCHEDULE, EXPLAINED, why  # noqa: E402

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


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("golden", GOLDEN, ids=[file.stem for file in RESULTS])
def test_calls(golden, name, request):
    """Every call's totals are those measured, but for the differences that are on record."""
    if name == "corpus":
        request.getfixturevalue("nvrtc")
    part, lines = PARTS[name], golden[name]["calls"]
    assert [line["call"] for line in lines] == [part.name(call) for call in part.calls()]
    assert compared_again(part, lines) == lines


@pytest.mark.parametrize("golden", GOLDEN, ids=[file.stem for file in RESULTS])
def test_what_differs_is_explained(golden):
    different = {
        name: {line["call"] for line in golden[name]["calls"] if line["differs"]} for name in PARTS
    }
    assert different["engine"] == set()
    assert different["corpus"] == set(EXPLAINED)
    for line in golden["variants"]["calls"]:
        assert all(why(line["call"], count) for count in line["differs"]), line
    assert set(BY_SCHEDULE) | set(EXPLAINED) <= {case.name for case in CASES}
    assert not set(BY_SCHEDULE) & set(EXPLAINED)


def traced(body: str) -> smemkern.Trace:
    """A kernel of one warp. %r4: 32 bytes a lane; %r8: 4; %r9: the same in all lanes."""
    ptx = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<14>;
    .reg .b64 %d<4>;
    .reg .b16 %h<3>;
    .reg .f32 %f<9>;
    .reg .pred %p1;
    .shared .align 4 .b8 first[4];
    .shared .align 16 .b8 tile[4096];
    .shared .u32 a, b, c, d;
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 5;
    mov.u32 %r3, tile;
    add.u32 %r4, %r3, %r2;
    shl.b32 %r7, %r1, 2;
    add.u32 %r8, %r3, %r7;
    mov.u32 %r5, %ctaid.x;
    mad.lo.u32 %r9, %r5, 64, %r3;
    setp.lt.u32 %p1, %r1, 7;
    {body}
    ret;
}}
"""
    return smemkern.trace(smemkern.Kernel(ptx, "k"), 1, 32, np.zeros(32, "f4"), hazards=False)


def machine_requests(body: str, op: str, mnemonic: str) -> int:
    rows = [row for row in traced(body).shared if row.op == op]
    assert sum(row.requests for row in rows) == body.count(mnemonic)
    return sum(row.machine_requests for row in rows)


@pytest.mark.parametrize(
    ("loads", "requests"),
    [
        ("ld.shared.f32 %f1, [%r4]; ld.shared.f32 %f2, [%r4+4];", 1),
        ("ld.shared.f32 %f1, [%r4+4]; ld.shared.f32 %f2, [%r4+8];", 1),  # 16 bytes cover both
        ("ld.shared.f32 %f1, [%r4+12]; ld.shared.f32 %f2, [%r4+16];", 2),  # two pieces of 16
        ("ld.shared.f32 %f1, [%r8]; ld.shared.f32 %f2, [%r8+4];", 2),  # multiples of 4 only
        ("ld.shared.f32 %f1, [%r4]; ld.shared.f32 %f2, [%r8+4];", 2),  # two registers
        # Of the upper half of a product nothing is known.
        ("mul.hi.u32 %r4, %r4, 16; ld.shared.f32 %f1, [%r4]; ld.shared.f32 %f2, [%r4+4];", 2),
        ("ld.shared.f32 %f1, [%r4]; bar.sync 0; ld.shared.f32 %f2, [%r4+4];", 2),
        ("ld.shared.f32 %f1, [%r4]; st.shared.f32 [%r8], %f1; ld.shared.f32 %f2, [%r4+4];", 2),
        ("ld.shared.f32 %f1, [%r4]; add.u32 %r4, %r4, 16; ld.shared.f32 %f2, [%r4+4];", 2),
        ("ld.volatile.shared.f32 %f1, [%r4]; ld.volatile.shared.f32 %f2, [%r4+4];", 2),
        ("ld.shared.v2.f32 {%f1,%f2}, [%r4]; ld.shared.v2.f32 {%f3,%f4}, [%r4+8];", 1),
    ],
)
def test_joined_loads(loads, requests):
    assert machine_requests(loads, "load", "ld.") == requests


def stores(form: str, offsets: list[int], base: str = "%r4") -> str:
    register = {"u16": "%h1", "u32": "%r1", "u64": "%d1", "v2.u32": "{%r1, %r2}"}[form]
    return " ".join(f"st.shared.{form} [{base}+{at}], {register};" for at in offsets)


@pytest.mark.parametrize(
    ("body", "requests"),
    [
        (stores("u32", [0, 4]), 1),
        (stores("u32", [4, 0]), 1),
        (stores("u32", [0, 4, 8, 12]), 1),
        (stores("u32", [0, 4, 8, 12, 16]), 2),
        (stores("u32", [0, 4, 8]), 2),  # no gaps: 8 bytes and 4
        (stores("u32", [4, 8]), 2),  # two halves
        (stores("u32", [0, 8, 12]), 2),
        (stores("u32", [0, 4, 0]), 2),
        (stores("u32", [0, 16, 4, 20]), 4),  # another piece in between
        (stores("u32", [0, 4, 16, 20]), 2),
        (stores("u32", [256, 0, 4, 8, 12]), 2),
        (stores("u32", [0, 8, 4, 12]), 1),
        (stores("u64", [0, 8]), 1),
        (stores("v2.u32", [0, 8]), 1),
        (stores("u16", [0, 2]), 1),
        (stores("u16", [0, 2, 4]), 2),
        (stores("u16", [0, 2, 4, 6]), 1),
        (stores("u16", [*range(0, 16, 2)]), 2),  # four at most
        (stores("u32", [0, 4], "%r8"), 2),  # multiples of 4 only
        (stores("u32", [0]) + stores("u32", [2048], "%r3") + stores("u32", [4]), 3),
        (stores("u32", [0]) + "bar.sync 0;" + stores("u32", [4]), 2),
        (stores("u32", [0]) + "ld.shared.u32 %r10, [%r3];" + stores("u32", [4]), 2),
        (stores("u32", [0]) + "@%p1 ld.shared.u32 %r10, [%r3];" + stores("u32", [4]), 2),
        (stores("u32", [0]) + "ld.param.u64 %d2, [out];" + stores("u32", [4]), 1),
        ("@%p1 st.shared.u32 [%r4], %r1; @%p1 st.shared.u32 [%r4+4], %r1;", 2),
        ("st.shared.u32 [a], 1; st.shared.u32 [b], 2; st.shared.u32 [c], 3;", 2),
        ("st.shared.u32 [a], 1; st.shared.u32 [d], 2; st.shared.u32 [tile], 3;", 2),
    ],
)
def test_joined_stores(body, requests):
    """As cuobjdump shows ptxas's work, on sm_90."""
    assert machine_requests(body, "store", "st.shared") == requests


@pytest.mark.parametrize(
    ("body", "wavefronts"),
    [
        ("red.shared.add.u32 [%r8], 1;", 1),
        ("red.shared.add.u32 [%r9], 1;", 1),  # counting: one address is one wavefront
        ("red.shared.add.u32 [%r4], 1;", 8),  # 32 words in 4 banks
        ("red.shared.inc.u32 [%r9], 0xffffffff;", 1),
        ("red.shared.inc.u32 [%r9], 7;", 32),
        ("mov.u32 %r10, 1; atom.shared.add.u32 %r11, [%r9], %r10;", 1),
        ("red.shared.add.u32 [%r9], 2;", 1),  # one lane adds 2 n
        ("red.shared.add.u32 [%r9], %r1;", 1),
        ("red.shared.min.s32 [%r9], %r1;", 1),
        ("red.shared.or.b32 [tile], %r1;", 1),
        ("atom.shared.add.u32 %r11, [%r9], 2; mov.u32 %r12, %r11;", 1),
        ("atom.shared.or.b32 %r11, [%r9], 2; mov.u32 %r12, %r11;", 32),
        ("red.shared.inc.u32 [tile], 5;", 32),
        ("shr.u32 %r10, %r1, 5; add.u32 %r10, %r10, %r9; red.shared.add.u32 [%r10], %r1;", 32),
        ("atom.shared.exch.b32 %r11, [%r9], %r1;", 32),
    ],
)
def test_forms_of_atomics(body, wavefronts):
    assert [row.wavefronts for row in traced(body).shared] == [wavefronts]
