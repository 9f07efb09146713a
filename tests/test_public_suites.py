"""validation/public_suites.py: how it reads public programs, and what its record accounts for."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"


# ---- entries of PTX


def test_entries_have_their_parameters_and_their_block():
    from suites import decode

    text = (
        HEAD
        + """
    .extern .func (.param .b32 r) other (.param .b64 a);
    .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
    .visible .entry first( // .param .u64 no
        .param .u64 .ptr .global .align 4 p, .param .f32 x,
        .param .align 8 .b8 struct_[24], .param .u32 words[3])
    .reqntid 32, 2
    .explicitcluster
    .reqnctapercluster 4
    { { call (r), vprintf, (a, b); } ret; }
    .entry second() { call (r), other, (a); }
    .entry third
    { ret; }
    """
    )
    first, second, third = decode.entries(text)
    assert first == decode.Entry("first", (0, 0.0, bytes(24), bytes(12)), (32, 2, 1), (4, 1, 1), "")
    assert second == decode.Entry("second", (), (1, 1, 1), (1, 1, 1), "other")
    assert third == decode.Entry("third", (), (1, 1, 1), (1, 1, 1), "")


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ("ret;", None),
        ("ld.global.u32 %r, [%a]; ret;", None),  # a fault of a null pointer: it decodes
        ("tcgen05.fence::before_thread_sync; ret;", "tcgen05"),
        ("@%p bra nowhere;", "nowhere"),
    ],
)
def test_a_refusal_names_what_is_missing(body, missing):
    from suites import decode

    text = f"{HEAD}.entry k(.param .u64 a) {{ .reg .u32 %r; .reg .u64 %a; .reg .pred %p;"
    text += f" ld.param.u64 %a, [a]; {body} }}"
    error = decode.refusal(text, decode.entries(text)[0])
    assert (error is None) == (missing is None)
    assert missing is None or missing in decode.reason(error)


def test_a_call_of_another_module_is_a_refusal():
    from suites import decode

    text = f"{HEAD}.extern .func far ();\n.entry k() {{ call.uni far, (); ret; }}"
    error = decode.refusal(text, decode.entries(text)[0])
    assert "far" in decode.reason(error)


def test_a_module_is_cut_down_to_one_entry():
    from suites import decode

    part = ".visible .entry k{0}()\n{{\n  {{ mov.u32 %r, {0}; }}\n}}\n"
    text = (
        HEAD + ".global .u32 g;\n" + "".join(part.format(k) for k in range(3)) + ".global .u32 h;\n"
    )
    for k in range(3):
        expected = HEAD + ".global .u32 g;\n" + part.format(k) + ".global .u32 h;\n"
        assert [e.name for e in decode.entries(decode.alone(text, f"k{k}"))] == [f"k{k}"]
        assert decode.alone(text, f"k{k}").split() == expected.split()


# ---- names and comparisons


def test_names_are_taken_apart():
    from suites.reference import demangled, read_name

    mangled = "_Z4tileIfLi16ELb1EEvPT_i"
    name = read_name(demangled([mangled])[mangled])
    assert (name.kernel, name.template, name.numbers()) == (
        "tile",
        ["float", "16", "true"],
        [16, 1],
    )
    assert read_name("plain(int*)").kernel == "plain"
    assert read_name("void M2::k<64, 3u>(int)").numbers() == [64, 3]


def test_a_comparison_sees_each_difference_and_skips_what_is_not_specified():
    from suites.reference import Launch, difference

    rng = np.random.default_rng(7)
    expected = rng.standard_normal(50)
    for at in (0, 23, 49):
        got = expected.copy()
        got[at] += 1e-3
        launch = Launch(1, 1, [got], {0: expected}, 1e-6, 1e-6)
        assert f"1 of 50 differ; [{at}] is" in difference(launch)
        launch.expected[0] = np.where(np.arange(50) == at, np.nan, expected)
        assert difference(launch) == ""
        got[at] = np.nan
        launch.expected[0] = expected
        assert "is nan" in difference(launch)


def test_arrays_take_the_declared_type():
    from suites.reference import Launch, as_declared, read_name

    text = "void k<f<int, 2> >(__half*, float const*, std::pair<int, int>, __nv_bfloat16 const*)"
    arrays = [np.ones(4, np.float32) for _ in range(3)]
    launch = Launch(1, 1, [arrays[0], arrays[1], b"12", arrays[2]], {0: np.full(4, 100.0)})
    made = as_declared(read_name(text), launch)
    kinds = [made.args[k].dtype.name for k in (0, 1, 3)]
    assert kinds == ["float16", "float32", "bfloat16"] and made.atol == pytest.approx(1)


def test_a_wrong_result_and_a_race_are_found():
    """A kernel whose lanes read a neighbour's element without a barrier, and one that waits."""
    from suites.reference import Launch, run

    text = (
        HEAD
        + """.entry k(.param .u64 out) {
        .reg .u32 %i, %j, %v; .reg .u64 %a; .shared .align 4 .b8 tile[512];
        mov.u32 %i, %tid.x; mov.u32 %v, tile; mad.lo.u32 %j, %i, 4, %v; st.shared.u32 [%j], %i;
        BARRIER
        xor.b32 %j, %i, 64; mad.lo.u32 %j, %j, 4, %v; ld.shared.u32 %v, [%j];
        ld.param.u64 %a, [out]; mad.wide.u32 %a, %i, 4, %a; st.global.u32 [%a], %v; ret; }"""
    )
    for barrier, offset, right in (
        ("bar.sync 0;", 0, True),
        ("bar.sync 0;", 1, False),
        ("", 0, None),
    ):
        expected = np.arange(128) ^ 64
        launch = Launch(1, 128, [np.zeros(128, np.uint32)], {0: expected + offset}, 0, 0)
        outcome = run(text.replace("BARRIER", barrier), "k", launch)
        assert right is None or outcome.right == right
        assert bool(outcome.hazards) == (not barrier)


# ---- ZLUDA's table


def test_the_table_of_zluda_is_read(tmp_path):
    from suites import zluda

    file = tmp_path / zluda.TABLE
    file.parent.mkdir(parents=True)
    file.write_text("""
test_ptx!(one, [0xFFu32, 0b1010_0001, -1_0], [u64::max_value()]);
// test_ptx!(none, [1u8], [2u8]);
test_ptx_with_32!(two, [1.5f32, f32::NAN, f32::from_bits(0x3f800000)], [0x3, i32::MIN]);
test_ptx!(three);
test_ptx_warp!(four, [
    half::f16::from_f32(-0.5), half::f16::NEG_INFINITY, half::f16::NAN.to_bits(),
]);
test_ptx!(five, [std::f32::consts::PI / 2f32], [0.25, -3f64]);
""")
    table = zluda.table(tmp_path)
    assert sorted(table) == ["five", "four", "one", "three", "two"] and table["three"] == []
    np.testing.assert_array_equal(table["one"][0], np.array([255, 161, 2**32 - 10], np.uint32))
    assert table["one"][1].dtype == np.uint64 and table["one"][1][0] == 2**64 - 1
    np.testing.assert_array_equal(table["two"][0], np.array([1.5, np.nan, 1], np.float32))
    np.testing.assert_array_equal(table["two"][1], np.array([3, -(2**31)], np.int32))
    np.testing.assert_allclose(table["five"][0], np.array([np.pi / 2], np.float32), rtol=1e-7)
    assert table["five"][1].dtype == np.float64


@pytest.mark.parametrize("text", ["[x]", "[1u32 + 2]", "[f32::from_bits(y)]"])
def test_an_unknown_expression_is_refused(text):
    from suites import zluda

    with pytest.raises(ValueError, match="expected a constant, found"):
        zluda.array(text)


# ---- the record


def test_each_case_and_explanation_is_of_a_suite():
    from suites import adapters, explained, reference, table

    names = {suite.name for suite in table.SUITES + table.UNSEEN}
    assert adapters.__all__ and len(reference.CASES) > 50
    assert {case.suite for case in reference.CASES} <= names
    assert {one.suite for one in explained.EXPLAINED} <= names


@pytest.mark.parametrize("name", ["public-suites", "unseen-suites"])
def test_the_record_accounts_for_every_kernel(name):
    import records

    record = records.read(name)
    assert record and len(record["rows"]) >= 8
    for row in record["rows"]:
        refused = sum(one["count"] for one in row["refused"].values())
        assert row["decoded"] + refused == row["entries"], row["suite"]
        assert row["right"] + row["explained"] + row["wrong"] == row["run"] <= row["decoded"]
        assert all(reason.strip() for reason in row["refused"])
        wrong = [len(one["instances"]) for one in row["findings"] if one["wrong"]]
        assert sum(wrong) == row["explained"] + row["wrong"]


# ---- fingerprints of explained runs


def outcome(**changes):
    from suites import reference

    given = {
        "right": False,
        "detail": "argument 0: 3 of 8 differ; [1] is 2, expected 1",
        "hazards": ("RAW race, ...",),
        "places": ("RAW 12/9", "WAW 12/-"),
        "bits": bytes(range(32)),
    }
    return reference.Outcome(**{**given, **changes})


CHANGED = [
    {"bits": bytes(31) + b"\1"},
    {"right": True, "detail": ""},
    {"bits": None, "detail": "out of bounds: 4 bytes at 0x10, block (0, 0, 0)"},
    {"places": ("RAW 12/9",)},
    {"places": ("RAW 12/9", "WAW 13/-")},
    {"places": ("RAW 12/9", "WAW 12/-", "out-of-bounds 3/-")},
]


@pytest.mark.parametrize("changes", CHANGED)
def test_each_change_of_an_explained_run_shows(changes):
    from suites import fingerprints

    recorded = fingerprints.of(outcome())
    assert fingerprints.difference(fingerprints.of(outcome()), recorded) == ""
    assert fingerprints.difference(fingerprints.of(outcome(**changes)), recorded)
    assert "no such instance" in fingerprints.difference(recorded, None)


def test_what_varies_is_not_compared_and_the_rest_is():
    from suites import fingerprints

    runs = [outcome(bits=bytes([k]) * 32) for k in range(3)]
    recorded = fingerprints.common([fingerprints.of(run) for run in runs])
    assert recorded["bits"] == "varies" and recorded["result"] == "argument 0: 3 of 8 differ"
    assert not fingerprints.difference(fingerprints.of(outcome(bits=bytes(32))), recorded)
    other = outcome(detail="argument 0: 4 of 8 differ; [1] is 2, expected 1")
    assert "4 of 8" in fingerprints.difference(fingerprints.of(other), recorded)


def test_places_of_a_fault_are_those_of_the_source_alone():
    """Which block faults first, and what other blocks have found by then, is no difference."""
    from suites import fingerprints

    message = "kernel k, k.cu:7: out of bounds: 4 bytes at {}; block {}, thread (3, 0, 0)"
    one, two = (
        outcome(bits=None, detail=message.format(*at), places=("out-of-bounds 7/-", *places))
        for at, places in ((("0x190", "(1, 0, 0)"), ()), (("0x1a0", "(2, 0, 0)"), ("RAW 5/3",)))
    )
    assert fingerprints.of(one) == fingerprints.of(two)


def tally(tmp_path, monkeypatch, recorded):
    """The row of a suite whose only explained kernel is the first explanation's."""
    import public_suites
    from suites import build, fingerprints, reference, table

    path = tmp_path / "fingerprints.json"
    why = public_suites.EXPLAINED[0]
    name = reference.read_name(f"{why.kernel}(float*)")
    unit = build.Unit(why.suite, f"{why.file}.cu", None, "")
    if recorded:
        key = fingerprints.Record.key(unit.file, name)
        fingerprints.Record(path).replace(why.suite, {key: fingerprints.of(recorded)})
    monkeypatch.setattr(fingerprints.Record.__init__, "__defaults__", (path,))
    monkeypatch.setattr(build, "commit", lambda root: "0")
    suite = next(one for one in table.SUITES if one.name == why.suite)
    return public_suites.Tally(suite, tmp_path, 1), unit, name


@pytest.mark.parametrize(
    ("recorded", "found", "counted"),
    [
        (outcome, {}, "explained"),
        (outcome, {"bits": bytes(32)}, "wrong"),
        (outcome, {"places": ("RAW 1/2",)}, "wrong"),
        (None, {}, "wrong"),
    ],
)
def test_an_explanation_excuses_what_is_recorded_only(
    tmp_path, monkeypatch, recorded, found, counted
):
    row, unit, name = tally(tmp_path, monkeypatch, recorded and recorded())
    row.add(unit, name, outcome(**found))
    assert row.counts["explained"] == (counted == "explained")
    assert row.counts["wrong"] == (counted == "wrong") == len(row.changed)
    assert row.missing() == []


def test_an_explained_run_that_is_right_now_is_missing(tmp_path, monkeypatch):
    row, unit, name = tally(tmp_path, monkeypatch, outcome())
    row.add(unit, name, outcome(right=True, detail="", hazards=(), places=()))
    assert row.counts["right"] == 1 and len(row.missing()) == 1


def test_each_explanation_has_a_fingerprint():
    import public_suites
    import records
    from suites import fingerprints

    recorded, record = fingerprints.Record(), records.read("public-suites")
    assert record
    for row in record["rows"]:
        found = sum(len(one["instances"]) for one in row["findings"] if one["explained"])
        assert found == len(recorded.names(row["suite"])), row["suite"]
    for why in public_suites.EXPLAINED:
        keys = recorded.names(why.suite)
        assert any(re.search(why.file, key) for key in keys), why.kernel
