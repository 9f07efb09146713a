"""What the scripts of long runs write down, and what the tables say where they have not run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOG = """#4252\tINITED cov: 901 ft: 1557 corp: 2341/3057Kb exec/s: 2126 rss: 450Mb
#9021\tDONE   cov: 1443 ft: 3120 corp: 3693/5107Kb lim: 3000 exec/s: 6747 rss: 502Mb
Done 9021 runs in 2 second(s)
stat::number_of_executed_units: 9021
stat::average_exec_per_sec:     4510
"""
ENDED = """#512\tINITED cov: 702 ft: 1557 corp: 2341/3057Kb exec/s: 2126 rss: 450Mb
SUMMARY: {}
stat::number_of_executed_units: 600
"""


def test_a_run_again_takes_the_place_of_its_row(tmp_path):
    import records

    path = tmp_path / "made" / "runs.json"
    for row in ({"kind": "b", "n": 1}, {"kind": "a", "n": 2}, {"kind": "b", "n": 3}):
        records.put_row(path, row, "kind")
    assert json.loads(path.read_text())["rows"] == [{"kind": "a", "n": 2}, {"kind": "b", "n": 3}]


def test_a_compressed_record_is_read_by_either_name(tmp_path, monkeypatch):
    import records

    monkeypatch.setattr(records, "RESULTS", tmp_path)
    plain, compressed = tmp_path / "runs.json", tmp_path / "runs.json.xz"
    record = {"rows": list(range(9999))}
    assert records.read("runs") is None
    with pytest.raises(FileNotFoundError, match="no record .*runs.json"):
        records.load(plain)
    for path, other in ((plain, compressed), (compressed, plain)):
        records.write(path, record)
        assert path.exists() and not other.exists()
        assert records.read("runs") == records.load(plain) == records.load(compressed) == record
        assert records.names("ru") == ["runs"] and records.stored(other) == path
    assert compressed.stat().st_size < 9999


def test_large_records_are_compressed():
    """But the one that readers give to smemkern.plot.roofline()."""
    import records

    sizes = {file.name: file.stat().st_size for file in records.RESULTS.glob("*.json")}
    assert {name for name, size in sizes.items() if size > 110_000} <= {"nvidia-h200.json"}


def test_facts_name_no_machine():
    import records

    assert set(records.facts()) == {"date", "commit", "cpu", "cores", "python"}


def test_what_workers_of_libfuzzer_say():
    import fuzz

    ends = ["AddressSanitizer: SEGV in f", "libFuzzer: timeout", "libFuzzer: out-of-memory (4)"]
    assert fuzz.outcome([LOG, *map(ENDED.format, [*ends, ends[0]])]) == {
        "executions": 9021 + 4 * 600,
        "edges": 1443,
        "out_of_memory": 1,
        "timeouts": 1,
        "crashes": 2,
    }
    assert fuzz.outcome([LOG])["crashes"] == 0
    with pytest.raises(SystemExit, match="did not run"):
        fuzz.outcome([LOG, "clang: no such file"])


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
