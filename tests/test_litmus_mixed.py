"""validation/litmus_mixed.py: the format of its tests, and its verdicts."""

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "validation" / "litmus_mixed.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="not a source tree")

PASSING = """
.global x;
.surfref s virtually aliases x;
.global flag;

d0.b0.t0 {
  $0, 2;
  st.release.gpu [flag], 1;
}

d0.b1.t0 {
  ld.acquire.gpu r0, [flag] == 1;
  $1 r1, $2;
}

$3(r1 $4 2) as r1;

$$

"""
BY_POINTER = "st [x] | ld | [x] | assert | =="
BY_SURFACE = "st [x] | suld | [s] | permit | !="


@pytest.fixture
def mixed():
    return importlib.import_module("litmus_mixed")


def folder(tmp_path, **files):
    (tmp_path / "tests").mkdir()
    for name, text in files.items():
        (tmp_path / "tests" / f"{name}.test").write_text(text)
    return tmp_path


def test_one_test_per_row(mixed):
    rows = list(mixed.expand(PASSING + BY_POINTER + "\n" + BY_SURFACE))
    tests = [mixed.read(text, mixed.title("p", text)) for text in rows]
    assert [t.name for t in tests] == ["p: st [x], 2; ld r1, [x]", "p: st [x], 2; suld r1, [s]"]
    assert [t.quantifier for t in tests] == ["forall", "exists"]
    assert tests[0].condition == "P1:r0 != 1 \\/ P1:r1 == 2"
    assert tests[1].condition == "P1:r0 == 1 /\\ P1:r1 != 2"
    assert [t.block for t in tests[0].threads] == [0, 1]
    assert tests[1].threads[1].ops[1].what == "surface"
    assert tests[1].threads[1].ops[1].location == "x"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("st.release", "fence.proxy.surface; st.release", "fence.proxy.surface is not in PTX"),
        ("st.release", "fence.proxy.alias; st.release", "two addresses"),
        (".global flag;", ".global y physically aliases x;", "two addresses of one memory"),
        ("$1 r1", "tld r1", "a read of a texture"),
        ("as r1", "", "no condition"),
    ],
)
def test_what_cannot_be_expressed(mixed, old, new, why):
    [text] = mixed.expand(PASSING.replace(old, new) + BY_POINTER)
    with pytest.raises(mixed.NotSupported, match=why):
        mixed.read(text, "case")


def test_verdicts(mixed, tmp_path):
    """With the labels the wrong way round all are wrong, and nothing explains that."""
    other = BY_POINTER.replace("assert", "permit").replace("==", "!=")
    racy = BY_SURFACE.replace("permit", "assert").replace("!=", "==")
    files = {"right": f"{BY_POINTER}\n{BY_SURFACE}", "wrong": f"{other}\n{racy}"}
    found = mixed.judge_all(folder(tmp_path, **{n: PASSING + r for n, r in files.items()}), 1)
    assert list(found["judged"].values()) == [
        "ordered, right",
        "race, right",
        "race, wrong",
        "ordered, wrong",
    ]
    assert list(found["model"].values()) == ["same", "different"]
    assert found["reasons"] == {"wrong": None}


def test_the_record(mixed):
    """Every difference has a reason."""
    record = json.loads((ROOT / "benchmarks" / "results" / "litmus-mixed.json").read_text())
    wrong = {n.partition(":")[0] for n, v in record["judged"].items() if v.endswith("wrong")}
    wrong |= {miss.partition(":")[0] for miss in record["by_model"]["misses"]}
    assert wrong == set(record["reasons"]) and all(record["reasons"].values())
    assert record["tests"] == sum(record["counts"].values()) == len(record["judged"])
