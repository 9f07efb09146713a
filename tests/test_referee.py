"""validation/referee.py: its verdicts on made-up cases, its formulas, and its records."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "validation" / "referee.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="not a source tree")


@pytest.fixture(autouse=True)
def folders(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.syspath_prepend(SCRIPT.parent)


def module(name):
    return importlib.import_module(name)


KERNEL = """typedef int data_t;
#include "indigo_cuda.h"

__global__ void test_kernel(int *nindex, int *nlist, data_t *data1, data_t *data2, int numv)
{
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  %s
}

void serial_code() { host_only(); }
"""
BODIES = {
    "add": "if (i < numv) atomicAdd(data1, 1);",
    "add_atomicBug": "if (i < numv) data1[0]++;",
    "flag_atomicBug": "if (i < numv) data1[0] = 1;",
    "add_boundsBug": "data1[i] = i;",
    "add_boundsBug_atomicBug": "data2[i] = i; data1[0] = i;",
    "cas": "if (i < numv) { int old = *data1, a;"
    " do { a = old; old = atomicCAS(data1, a, a + 1); } while (a != old); }",
}
LABELS = {
    "add": "clean",
    "add_atomicBug": "race",
    "flag_atomicBug": "race",
    "add_boundsBug": "bounds",
    "add_boundsBug_atomicBug": "race",
    "cas": "clean",
}


@pytest.fixture
def suite(tmp_path):
    """A folder like Indigo's, with a graph of 70 vertices in a ring."""
    (tmp_path / "input").mkdir()
    (tmp_path / "indigo_sources" / "some").mkdir(parents=True)
    n = 70
    words = np.array([n, n, *range(n + 1), *((i + 1) % n for i in range(n))], "<i4")
    words.tofile(tmp_path / "input" / "ring.egr")
    for name, body in BODIES.items():
        (tmp_path / "indigo_sources" / "some" / f"{name}.cu").write_text(KERNEL % body)
    return tmp_path


def test_verdicts(suite, nvrtc):
    referee = module("referee")
    cases = module("referee_indigo").cases(suite)
    assert {case.name: case.label for case in cases} == LABELS
    for case in cases:
        judged = referee.judge(case)
        said = {form: referee.says(judged[form]) for form in case.forms}
        assert said == dict.fromkeys(case.forms, case.label), case.name
        assert "reason" not in judged


def test_arguments(suite):
    [exact, *_] = runs = list(module("referee_indigo").cases(suite)[0].runs())
    assert [len(a) for a in exact.arguments[:4]] == [71, 70, 70, 70]
    assert exact.arguments[4] == 70
    assert exact.arguments[2][0] == 0 and exact.arguments[2].max() < 70
    assert len(runs) == 4 and {len(run.arguments[0]) for run in runs} == {71, 71 + 66560}


def test_an_error_is_no_verdict_on_races(suite, nvrtc):
    file = suite / "indigo_sources" / "some" / "broken.cu"
    file.write_text(KERNEL % "undeclared();")
    [case] = [case for case in module("referee_indigo").cases(suite) if case.name == "broken"]
    judged = module("referee").judge(case)
    assert module("referee").says(judged["optimised"]) == "error"
    assert judged["reason"] is None


def test_command(suite, nvrtc):
    command = [sys.executable, str(SCRIPT), "indigo", str(suite)]
    done = subprocess.run([*command, "--print"], capture_output=True, text=True, check=True)
    record = json.loads(done.stdout)
    assert record["matrix"]["optimised"]["race"]["race"] == 3
    empty = subprocess.run([*command[:-1], str(suite / "input")], capture_output=True, text=True)
    assert empty.returncode == 2 and "no cases of indigo" in empty.stderr


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("7", 7),
        ("min((4 * n), 32)", 20),
        ("Σ_{i | 0 ≤ i ≤ (n - 1)} 1", 5),
        ("Σ_{i | 0 ≤ i ≤ (n - 1)} Σ_{j | i ≤ j ≤ (n - 1)} 1", 15),
        ("Σ_{j | 0 ≤ j ≤ ⌊(ub - lb) / step⌋} 1", 4),
        ("Σ_{i | 0 ≤ i ≤ ((n << 2) - 1)} i", 190),
        ("Σ_{i | 1 ≤ i ≤ ⌊log₂((n + 4))⌋} 1", 3),
        ("if ((n < 4)) then 1 else 3", 3),
        ("if ((lb < 4)) then 1 else 3", 1),
    ],
)
def test_formulas(formula, value):
    assert (
        module("referee_formula").value_of(formula, {"n": 5, "lb": 2, "ub": 9, "step": 2}) == value
    )


@pytest.mark.parametrize("name", ["indigo", "faial"])
def test_records(name):
    """The matrix counts the cases, and every difference from a label has a reason."""
    referee = module("referee")
    record = module("records").read(f"referee-{name}")
    for form, found in record["matrix"].items():
        assert found == referee.matrix(record["cases"], form)
    for case, one in record["cases"].items():
        differs = any(referee.says(one[form]) != one["label"] for form in record["matrix"])
        assert differs == bool(one.get("reason")), case
    for row in record.get("costs", []):
        assert (row["counted"] != row["expected"]) == bool(row.get("reason")), row
