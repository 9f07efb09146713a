"""validation/programs: what it runs, how it judges output, and its reference of GPT-2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = """
program = main
$(program): main.cu
\tnvcc -I../include ./main.cu -o $@
main.cu:
run: $(program)
\t$(LAUNCHER) ./$(program) 268435456 512 \\
\t  -f 7 1000 > log
"""
KERNEL = {"launches": 1, "errors": []}
REPORT = {"kernels": [KERNEL], "misuses": [], "unsupported": [], "started": True}


@pytest.fixture
def package(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return pytest.importorskip("validation.programs")


def test_a_makefile_says_what_runs(package, tmp_path):
    from validation.programs import hecbench

    (tmp_path / "Makefile").write_text(MAKEFILE)
    words = hecbench.command(tmp_path)
    assert words == ["./main", "268435456", "512", "-f", "7", "1000"]
    assert hecbench.smaller(words[1:]) == ["1048576", "64", "-f", "7", "1"]


@pytest.mark.parametrize(
    ("said", "status", "result"),
    [
        ("PASS", 0, "pass"),
        ("Number of failures: 0 out of 1\nPASS", 0, "pass"),
        ("PASS\n1 result FAILED", 0, "fail"),
        ("NOT OK 1.5 0.5", 0, "fail"),
        ("done", 0, "ends"),
        ("done", 1, "fail"),
        ("cannot open file x.dat", 1, "left out"),
    ],
)
def test_output_is_judged(package, said, status, result):
    from validation.programs import running

    program = running.Program("one", None, ["./one"])
    assert running.verdict(program, REPORT, status, said)["result"] == result


@pytest.mark.parametrize(
    ("said", "result"), [("done", "pass"), ("FAILED attempts: 3", "pass"), ("3 off", "fail")]
)
def test_a_program_may_say_only_what_is_wrong(package, said, result):
    from validation.programs import running

    program = running.Program("one", None, ["./one"], wrong=r"\d off")
    assert running.verdict(program, REPORT, 0, said)["result"] == result


def test_sizes_in_a_source_are_cut(package, tmp_path):
    from validation.programs import sizes

    (tmp_path / "main.cu").write_text(
        "#define N   4096\nint m = 4096, MN = 1 << 20; // \xe9\n", "latin-1"
    )
    sizes.make(["main.cu: N 4096 -> N 33", "main.cu: 1 << 20 -> 1 << 5"], tmp_path)
    text = (tmp_path / "main.cu").read_text("latin-1")
    assert text == "#define N 33\nint m = 4096, MN = 1 << 5; // \xe9\n"


@pytest.mark.parametrize(
    "edit",
    [
        "main.cu: N 4096 -> N 4096",
        "main.cu: N 409 -> N 4",
        "main.cu: M 4096 -> M 4",
        "main.cu: n < 4096 -> n <= 40",
        "main.cu: 1e-3f -> true",
    ],
)
def test_an_edit_without_effect_or_of_more_than_numbers_is_an_error(package, tmp_path, edit):
    from validation.programs import sizes

    (tmp_path / "main.cu").write_text("N 4096 n < 4096 1e-3f")
    with pytest.raises(ValueError, match="expected"):
        sizes.make([edit], tmp_path)


def test_a_program_that_launches_nothing_is_left_out(package):
    from validation.programs import running

    program, report = running.Program("one", None, ["./one"]), {**REPORT, "kernels": []}
    assert running.verdict(program, report, 0, "PASS")["result"] == "left out"


def test_an_unsupported_call_fails_without_a_check(package):
    from validation.programs import running

    program = running.Program("one", None, ["./one"])
    report = {**REPORT, "unsupported": [{"call": "cuIpcGetMemHandle"}]}
    assert running.verdict(program, report, 0, "done")["why"] == ["cuIpcGetMemHandle"]


def test_the_gradient_is_that_of_the_loss(package):
    from validation.programs import gpt2

    random = np.random.default_rng(3)
    size = gpt2.Size(length=5, longest=6, vocabulary=11, padded=12, channels=8)
    weights = gpt2.initial(size, random)
    tokens = random.integers(0, size.vocabulary, (2, size.batch, size.length))
    gradient = gpt2.step(size, weights, *tokens)[2]
    for name, value in weights.items():
        way = random.standard_normal(value.shape)
        if name == "wte":
            way[size.vocabulary :] = 0
        losses = [
            gpt2.step(size, {**weights, name: value + step * way}, *tokens)[1]
            for step in (1e-5, -1e-5)
        ]
        slope = (losses[0] - losses[1]) / 2e-5
        assert slope == pytest.approx((gradient[name] * way).sum(), rel=1e-5, abs=1e-8), name
