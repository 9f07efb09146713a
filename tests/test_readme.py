"""The README is run, not believed: its example, and the tables that are made from results."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


MICROSCOPE, EXAMPLE = re.findall(r"```python\n(.*?)```", README, re.S)


def test_the_example_runs(capsys):
    example = EXAMPLE
    assert len([line for line in example.splitlines() if line.strip()]) <= 13
    exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    *rungs, last = printed
    assert len(rungs) >= 10
    for name, error, *_ in map(str.split, rungs):
        assert float(error) < (0.1 if name in ("tf32", "mma_tf32", "fp16x1") else 1e-4)
    assert float(last.split()[0]) > 1


def test_the_microscope_shows_what_is_printed_below_it(capsys, nvrtc):
    exec(compile(MICROSCOPE, "README.md", "exec"), {})
    printed = " ".join(capsys.readouterr().out.split())
    below = README.split(MICROSCOPE)[1]
    listing, answer = below.split("```")[2].split("\n\n")
    for part in (listing, answer):
        assert " ".join(part.split()) in printed


def test_ci_finds_the_test_command():
    marked = README.split("<!-- ci: test -->")[1].splitlines()
    command = next(line for line in marked if line.startswith("python3"))
    assert command.endswith("pytest")


@pytest.fixture
def tables():
    import tables

    return tables


def test_tables_are_fresh(tables):
    assert tables.rewritten(README) == README


def test_other_pages_and_the_picture_are_fresh(tables):
    for file, parts in tables.documents().items():
        text = file.read_text(encoding="utf-8")
        assert tables.rewritten(text, parts) == text, file.name
    assert tables.ladder.is_fresh(tables.pictured())


def test_the_notebooks_results_are_fresh(tables):
    record = tables.notebook_record
    assert record.FILE.read_text(encoding="utf-8") == record.text()


def test_picture(tables, tmp_path):
    """The same figures, the same bytes; other figures, another picture."""
    pytest.importorskip("matplotlib")
    results = tables.pictured()
    files = [tmp_path / name for name in ("one.svg", "two.svg")]
    for file in files:
        tables.ladder.picture(results, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert tables.ladder.is_fresh(results, files[0])
    first, *others = results["gemm"]["lines"]
    lines = [{**line, "tflops": 2 * line["tflops"]} for line in (first, *others)]
    assert not tables.ladder.is_fresh({"gemm": {**results["gemm"], "lines": lines}}, files[0])


def test_no_variant_exceeds_its_ceiling(tables):
    """That is: each has the ceiling of the units that it computes with. Each group of the picture
    has a variant once."""
    for results in tables.gpus():
        for line in results["gemm"]["lines"]:
            top = tables.ladder.ceiling(results, line["variant"], line["dtype"])
            assert line["tflops"] < top, (results["gemm"]["gpu"], line)
        bars = [(entry.group, entry.name) for entry in tables.ladder.entries(results)]
        assert len(bars) == len({*bars})


def test_tables_take_numbers_from_results(tables):
    facts = dict(gpu="G", driver="1", toolkit="13.0", date="2026-01-01", commit="abc", torch="2")
    facts |= dict(multiprocessors=100, sm_clock_mhz="1953.125")  # a peak of 50 TFLOP/s
    line = dict(params={}, dtype="float32", ms=1.0, runs=5, error=1e-6)
    names = [name for op, name in tables.table() if op == "gemm"]
    lines = [
        dict(line, variant=name, shape=shape, tflops=tflops, ms=1 / tflops)
        for shape in (tables.SQUARE, tables.LARGE, tables.ODD)
        for name, tflops in [("cuBLAS", 50.0), *((name, 12.5) for name in names)]
    ]
    results = {"gemm": {**facts, "lines": lines}}
    text = tables.rungs(results)
    floats = [name for name in names if "float32" in tables.table()["gemm", name].dtypes]
    assert text.count("| float32 | 12.5 | 12.5 | 12.5 | – |") == len(floats)  # no ceiling of a "G"
    assert "–" in text  # float64 was not measured, and is not claimed
    facts["gpu"] = "NVIDIA H200"
    results["gemm"] |= facts
    assert "| `naive` | one thread" in tables.rungs(results)
    assert tables.rungs(results).count("| 12.5 | 12.5 | 12.5 | 25\N{NO-BREAK SPACE}% | 0.25 |") > 8
    assert "| `simt` | cuBLAS, float32 | 0.25 | – | 0.25 |" in tables.goals(results)
    assert "| 12 TFLOP/s, 25 % of peak | They agree" in tables.claims(results)
    assert tables.is_clean(results)
    assert not tables.is_clean({"tests": {"exit_status": 1}})
    assert not tables.is_clean({"sanitizers": {**facts, "memcheck": {"clean": False}}})
