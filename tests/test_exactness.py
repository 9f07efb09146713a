"""The emulator's counts beside those that Nsight Compute measured on a GPU; needs no GPU.

benchmarks/results/exactness-*.json.xz holds the measured counts, and the emulator's counts of that
day. Requests are drawn again from the record's seed. Where the rule is exact, the emulator must
give the measured count. Where the rule is only modelled, or a call's count is known to differ, the
test is a regression test: the emulator must give its own earlier count, which says nothing about
the hardware. What the record lacks is skipped, as not measured yet. If a kernel has changed, and
its counts with it: python validation/exact.py --forget FILE, which needs no GPU.
"""

from functools import cache

import numpy as np
import pytest

import smemkern
from checks import NVCC_IMAGES, record
from exactness.corpus import CASES
from exactness.operations import OPERATIONS
from exactness.parts import groups, is_as_recorded
from exactness.patterns import draw
from exactness.play import PARTS
from exactness.predict import predicted
from exactness.reasons import BY_SCHEDULE, EXPLAINED, OF_NVCC, not_measured, why
from records import names

RECORDS = {name: record(name) for name in names("exactness-")}
CALLS = {name: groups(part) for name, part in PARTS.items()}
EXACT = [name for name, operation in OPERATIONS.items() if not operation.modelled]
MODELLED = [name for name, operation in OPERATIONS.items() if operation.modelled]
every_record = pytest.mark.parametrize("golden", RECORDS.values(), ids=RECORDS)


# ---- single requests


def row_of(golden, name):
    row = golden.get("operations", {}).get(name)
    if row is None:
        pytest.skip(not_measured(name, name))
    assert row["modelled"] == OPERATIONS[name].modelled
    return row


def said_of(golden, name, row):
    patterns = draw(OPERATIONS[name], golden["seed"], row["patterns"])
    return [predicted(OPERATIONS[name], pattern) for pattern in patterns]


@pytest.mark.parametrize("name", EXACT)
@every_record
def test_exact_requests(golden, name):
    row = row_of(golden, name)
    # What the hardware counts; of cp.async only the instrumented code does.
    assert said_of(golden, name, row) == row.get("hardware", row.get("sass"))


@pytest.mark.parametrize("name", MODELLED)
@every_record
def test_regression_of_modelled_requests(golden, name):
    """The emulator beside its own earlier counts. How often those were right is in the record."""
    row = row_of(golden, name)
    assert said_of(golden, name, row) == row["predicted"]


# ---- calls of variants, of the corpus and of the copy engine


@cache
def said_of_call(name, group, n):
    return PARTS[name].predicted(CALLS[name][group][n])


def compare_calls(golden, name, group, regression):
    """The counts of a group's calls that the record says are equal, or with `regression` the
    others. Skips at the end if the record lacks a call."""
    if name == "variants" and group.split()[1] in OF_NVCC and not NVCC_IMAGES:
        pytest.skip("counted in nvcc's PTX; this build has NVRTC's")
    part, calls = PARTS[name], CALLS[name][group]
    lines = {line["call"]: line for line in golden.get(name, {}).get("calls", ())}
    missing = [call for call in map(part.name, calls) if call not in lines]
    for n, call in enumerate(calls):
        if (line := lines.get(part.name(call))) is None:
            continue
        measured = dict(zip(part.counters, line["measured"], strict=False))
        wanted = {what: measured[what] for what in measured if what not in line["differs"]}
        if regression:
            wanted = {what: said for what, (said, _) in line["differs"].items()}
        if wanted:
            said = said_of_call(name, group, n)
            assert {what: said[what] for what in wanted} == wanted, part.name(call)
    if missing:
        others = "the others are equal" if len(missing) < len(calls) else "none is compared"
        what = f"{len(missing)} of {len(calls)} calls of {group} ({others})"
        pytest.skip(not_measured(what, name))


def of_calls(regression):
    """(record, part, group); of the regression tests those that have something to compare."""
    for file, golden in RECORDS.items():
        for name, by_group in CALLS.items():
            lines = golden.get(name, {}).get("calls", ())
            differ = {line["call"] for line in lines if line["differs"]}
            for group, calls in by_group.items():
                if not regression or not differ.isdisjoint(map(PARTS[name].name, calls)):
                    yield pytest.param(golden, name, group, id=f"{file}-{name}-{group}")


@pytest.mark.parametrize(("golden", "name", "group"), [*of_calls(False)])
def test_exact_counts_of_calls(golden, name, group, request):
    if name == "corpus":
        request.getfixturevalue("nvrtc")
    compare_calls(golden, name, group, regression=False)


@pytest.mark.parametrize(("golden", "name", "group"), [*of_calls(True)])
def test_regression_of_counts_that_differ(golden, name, group, request):
    """The emulator beside its own earlier counts, where those are not the measured ones."""
    if name == "corpus":
        request.getfixturevalue("nvrtc")
    compare_calls(golden, name, group, regression=True)


# ---- the record itself


def test_there_is_a_record():
    assert RECORDS


@every_record
def test_the_record_has_nothing_that_is_gone(golden):
    """Else: python validation/exact.py --again FILE, which needs no GPU."""
    assert set(golden.get("operations", {})) <= set(OPERATIONS)
    for name, part in PARTS.items():
        calls = set(map(part.name, part.calls()))
        gone = [c["call"] for c in golden.get(name, {}).get("calls", ()) if c["call"] not in calls]
        assert not gone


def without(golden, name, gone):
    calls = [line for line in golden[name]["calls"] if not gone(line["call"])]
    return {**golden, name: {"calls": calls}}


def test_changed_kernels_are_told():
    """A line whose counts, of which one differs, are the emulator's; and one with another count."""
    part = PARTS["variants"]
    call = CALLS["variants"]["probe broadcast"][0]
    said = part.predicted(call)
    first, *others = said
    line = {
        "call": part.name(call),
        "measured": [said[first] + 1, *(said[what] for what in others)],
        "differs": {first: (said[first], said[first] + 1)},
    }
    assert tuple(said) == tuple(part.counters)
    assert is_as_recorded(part, call, line)
    line["differs"] = {}
    assert not is_as_recorded(part, call, line)


@every_record
@pytest.mark.parametrize(
    ("name", "group"),
    [("variants", "probe broadcast"), ("corpus", "k_means"), ("engine", "bulk")],
)
def test_what_the_record_lacks_is_skipped(golden, name, group):
    lacks = without(golden, name, set(map(PARTS[name].name, CALLS[name][group])).__contains__)
    reason = f"not measured yet: .*none is compared.*python validation/exact.py --only {name}`"
    with pytest.raises(pytest.skip.Exception, match=reason):
        compare_calls(lacks, name, group, regression=False)


def test_an_operation_that_the_record_lacks_is_skipped():
    with pytest.raises(pytest.skip.Exception, match="not measured yet: ld_b32.* --only ld_b32`"):
        row_of({"operations": {}}, "ld_b32")


@every_record
def test_a_skip_hides_no_wrong_count(golden):
    """The record lacks one call of a row, and has another with counts that are not ours."""
    first, second, *_ = map(str, CALLS["variants"]["probe broadcast"])
    lacks = without(golden, "variants", first.__eq__)
    with pytest.raises(pytest.skip.Exception, match="1 of . calls .*the others are equal"):
        compare_calls(lacks, "variants", "probe broadcast", regression=False)
    lines = lacks["variants"]["calls"]
    [place] = [n for n, line in enumerate(lines) if line["call"] == second]
    lines[place] = lines[place] | {"measured": [count + 1 for count in lines[place]["measured"]]}
    with pytest.raises(AssertionError, match=second):
        compare_calls(lacks, "variants", "probe broadcast", regression=False)


@every_record
def test_what_differs_is_explained(golden):
    different = {
        name: {line["call"] for line in golden.get(name, {}).get("calls", ()) if line["differs"]}
        for name in PARTS
    }
    assert different["engine"] == different["products"] == different["multicasts"] == set()
    assert different["corpus"] == set(EXPLAINED) or "corpus" not in golden
    for name, part in PARTS.items():
        for line in golden.get(name, {}).get("calls", ()):
            measured = dict(zip(part.counters, line["measured"], strict=False))
            assert all(was != now == measured[w] for w, (was, now) in line["differs"].items())
            assert name != "variants" or all(why(line["call"], w) for w in line["differs"]), line
    assert set(BY_SCHEDULE) | set(EXPLAINED) <= {case.name for case in CASES}
    assert not set(BY_SCHEDULE) & set(EXPLAINED)


# ---- what ptxas makes of neighbouring accesses, and of atomics


def traced(body: str, words: int = 32) -> smemkern.Trace:
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
    return smemkern.trace(smemkern.Kernel(ptx, "k"), 1, 32, np.zeros(words, "f4"), hazards=False)


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


# %r4 = tile + a product of registers, of which %r10 is any and %r11, %r12 are multiples.
PRODUCTS = {
    "mul.lo.u32 %r4, %r10, %r10;": 4,
    "shl.b32 %r11, %r10, 4; mul.lo.u32 %r4, %r10, %r11;": 1,
    "shl.b32 %r11, %r10, 3; mul.lo.u32 %r4, %r11, %r10;": 2,
    "shl.b32 %r11, %r10, 1; shl.b32 %r12, %r1, 3; mul.lo.u32 %r4, %r11, %r12;": 1,
    "shl.b32 %r11, %r10, 2; mad.lo.u32 %r13, %r10, %r11, %r7; shl.b32 %r4, %r13, 2;": 1,
    # 4 ((4 x + 1) (4 y + 3) + 1), a multiple of 16, which ptxas does not see
    "shl.b32 %r11, %r10, 2; add.u32 %r11, %r11, 1; shl.b32 %r12, %r1, 2; add.u32 %r12, %r12, 3;"
    "mul.lo.u32 %r13, %r11, %r12; add.u32 %r6, %r13, 1; shl.b32 %r4, %r6, 2;": 4,
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_joined_stores_at_products(product):
    """As nvdisasm shows ptxas's work, on sm_90."""
    first = "mov.u32 %r10, %ctaid.x;" + product + "add.u32 %r4, %r4, %r3;"
    body = first + stores("u32", [0, 4, 8, 12])
    assert machine_requests(body, "store", "st.shared") == PRODUCTS[product]


@pytest.mark.parametrize(
    ("size", "wavefronts"),
    [
        ("16", 4),
        ("0", 4),
        ("8", 8),  # as measured, of all that ptxas does not see to be all or nothing
        ("%r10", 8),
        ("%r11", 4),
    ],
)
def test_copies_of_a_size(size, wavefronts):
    """16 bytes a lane, of neighbouring lanes: each writes zeros, too, or not."""
    body = f"""
    ld.param.u64 %d1, [out];
    shl.b32 %r2, %r1, 4;
    cvt.u64.u32 %d2, %r2;
    add.u64 %d1, %d1, %d2;
    add.u32 %r4, %r3, %r2;
    setp.lt.u32 %p1, %r1, 32;
    min.u32 %r10, %r1, 0;
    add.u32 %r10, %r10, 16;
    selp.b32 %r11, 16, 0, %p1;
    cp.async.cg.shared.global [%r4], [%d1], 16, {size};
    cp.async.wait_all;"""
    [row] = [row for row in traced(body, words=128).shared if row.op == "copy_async"]
    assert row.wavefronts == wavefronts


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
