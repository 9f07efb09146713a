"""What the scripts of long runs write down, and what the tables say where they have not run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOG = """INFO: -fork=2: fuzzing in separate process(s)
#2187: cov: 901 ft: 1557 corp: 211 exec/s 728 oom/timeout/crash: 0/0/0 time: 3s job: 1 dft_time: 0
#9021: cov: 1443 ft: 3120 corp: 340 exec/s 911 oom/timeout/crash: 1/2/3 time: 9s job: 4 dft_time: 0
INFO: exiting: 0 time: 12s
"""


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])


def test_a_run_again_takes_the_place_of_its_row(tmp_path):
    import records

    path = tmp_path / "made" / "runs.json"
    for row in ({"kind": "b", "n": 1}, {"kind": "a", "n": 2}, {"kind": "b", "n": 3}):
        records.put_row(path, row, "kind")
    assert json.loads(path.read_text())["rows"] == [{"kind": "a", "n": 2}, {"kind": "b", "n": 3}]


def test_facts_name_no_machine():
    import records

    assert set(records.facts()) == {"date", "commit", "cpu", "cores", "python"}


def test_the_last_line_of_libfuzzer_counts():
    import fuzz

    assert fuzz.outcome(LOG) == {
        "executions": 9021,
        "edges": 1443,
        "inputs": 340,
        "out_of_memory": 1,
        "timeouts": 2,
        "crashes": 3,
    }
    with pytest.raises(SystemExit, match="did not run"):
        fuzz.outcome("clang: no such file")


def test_what_a_sanitized_run_says(tmp_path):
    import sanitized

    lines = ["....", "==== 12 passed, 3 skipped in 4.5s ====", "noise"]
    assert sanitized.outcome("address", lines, tmp_path) == "12 passed, 3 skipped in 4.5s"
    assert sanitized.outcome("driver", ["8 calls"], tmp_path) == "8 calls"
    load = {"at_once": {"threads": 4, "calls": 55, "failed": [{}]}}
    (tmp_path / "load-emu-free-threaded.json").write_text(json.dumps(load))
    assert sanitized.outcome("thread", [], tmp_path) == "4 threads, 55 calls, 1 failed"


def test_nothing_is_claimed_without_a_record(monkeypatch, tmp_path):
    import records
    import reliability_tables as tables

    monkeypatch.setattr(records, "RESULTS", tmp_path)
    for part in (tables.fuzz, tables.sanitizers, tables.leaks, tables.driver_faults, tables.load):
        assert "not recorded yet" in part() or part() == "Not yet run."
    row = {"target": "fuzz_ptx", "seed": 7, "seconds": 30, "workers": 2, **records.facts()}
    counts = {"executions": 1_234_567, "edges": 89, "crashes": 0, "timeouts": 0}
    records.put_row(tmp_path / "fuzz.json", {**row, **counts, "compiler": "clang 14"}, "seed")
    space = "\N{NO-BREAK SPACE}"
    assert f"| `fuzz_ptx` | 7 | 1{space}234{space}567 | 89 | 0 | 0 | 60 |" in tables.fuzz()
