"""python -m smemkern judge."""

import json

import numpy as np
import pytest

import smemkern
from judged import ARGS, HEAD, RELU, RIGHT
from smemkern._judge.inputs import template

# ---- the command

FILES = {
    "ref.cu": HEAD + RELU + "}",
    "same.cu": HEAD + RIGHT["another form"] + "}",
    "racy.cu": HEAD + "y[0] = i;}",
    "broken.cu": HEAD,
    "wrong.cu": HEAD + "if (i < n) y[i] = x[i] + w[i]; }",
    "prints.cu": HEAD + RELU + r'printf("verdict: clean\n::error::x\n"); y[n] = 1; }',
    "two.cu": HEAD + RELU + '}\nextern "C" __global__ void g(int *y) { }\n',
    "ref.py": "import numpy as np\ndef f(x, w, y, n):\n    y[:] = np.fmax(x, 0) * w + 1\n",
    "junk.ptx": "junk",
}
LAUNCH = "--grid 'cdiv(n,64)' --block 64 --size n=150 " + " ".join(f"--arg {a}" for a in ARGS)


@pytest.fixture
def files(tmp_path, monkeypatch, nvrtc):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command(command, files):
    assert command.run(f"judge ref.cu same.cu {LAUNCH}") == 0
    assert command.out.startswith("verdict: clean\n")
    assert command.run(f"judge ref.py:f same.cu {LAUNCH}") == 0
    found = command.json(f"judge ref.cu racy.cu {LAUNCH}")
    assert command.status == 1 and found["verdict"] == "racy"
    assert found["problems"][0]["hazard"]["kind"] == "WAW"
    assert {one["verdict"] for one in found["problems"]} <= {"racy", "wrong"}
    found = command.json(f"judge ref.cu wrong.cu {LAUNCH}")
    again = command.json(f"judge ref.cu wrong.cu {LAUNCH} --seed {found['seed']}")
    assert again["problems"] == found["problems"] and again["verdict"] == "wrong"
    assert command.run(f"judge ref.cu racy.cu {LAUNCH} --format github") == 1
    assert command.out.startswith("::error file=racy.cu,line=3,title=smemkern%3A WAW::racy: WAW")


def test_candidates_that_do_not_run(command, files):
    for name, message in (("broken.cu", "does not compile"), ("junk.ptx", "")):
        assert command.run(f"judge ref.cu {name} {LAUNCH} --junit x.xml --sarif x.sarif") == 1
        assert f"wrong: {message}" in command.out
        assert "<failure" in (files / "x.xml").read_text()
        assert json.loads((files / "x.sarif").read_text())["runs"][0]["results"]
    assert command.run(f"judge ref.cu two.cu {LAUNCH}") == 1 and "cannot be loaded" in command.out
    assert command.run(f"judge ref.cu two.cu {LAUNCH} --kernel f") == 0
    assert command.run(f"judge ref.cu same.cu {LAUNCH} --arg i32=1") == 2
    assert "takes 4 arguments" in command.err


def test_a_candidate_cannot_print_a_verdict(command, files):
    assert command.run(f"judge ref.cu prints.cu {LAUNCH}") == 1
    assert command.out.startswith("verdict: wrong\n") and "verdict: clean" not in command.out
    assert all(line.startswith("printf: ") for line in command.err.splitlines())


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (f"broken.cu same.cu {LAUNCH}", "could not compile"),
        (f"racy.cu same.cu {LAUNCH}", "the reference has a hazard"),
        (f"none.cu same.cu {LAUNCH}", "No such file"),
        (f"ref.cu none.cu {LAUNCH}", "No such file"),
        (f"ref.py same.cu {LAUNCH}", "pass ref.py:NAME"),
        (f"ref.py:g same.cu {LAUNCH}", "has no function 'g'"),
        (f"ref.cu same.cu {LAUNCH} --size m", "--size should be NAME=N"),
        (f"ref.cu same.cu {LAUNCH} --size 2=3", "--size should be NAME=N"),
        (f"ref.cu same.cu {LAUNCH} --values nans", "values should be of random"),
        (f"ref.cu same.cu {LAUNCH} --grid k", "there are: n; a size is given as --size k="),
        (f"ref.cu same.cu {LAUNCH} --arg {{5,f32[n]}}", "judge takes arrays and numbers, and no"),
        (f"ref.cu same.cu {LAUNCH} --timeout 0", "a positive number"),
        ("ref.cu same.cu --block 1", "required: --grid"),
    ],
)
def test_mistakes(command, files, words, error):
    assert command.run(f"judge {words}") == 2
    assert error in command.err and not command.out


def test_numbers_without_a_type(command, files):
    """`n` and `2*n` are of the parameter's type, as `i32=n` is of that one."""
    typed = command.json(f"judge ref.cu same.cu {LAUNCH} --seed 3")
    plain = command.json(f"judge ref.cu same.cu {LAUNCH.replace('i32=n', 'n')} --seed 3")
    assert LAUNCH.count("i32=n") == 1
    assert plain["verdict"] == typed["verdict"] == "clean"
    assert template("2*n+1").make({"n": 4}, np.random.default_rng()) == 9


def test_compiling_has_limits(files, monkeypatch):
    from pathlib import Path

    from smemkern._judge import runs

    assert runs.compiled(Path("ref.cu"), None, ()).name == "f"
    with pytest.raises(smemkern.CompileError, match="did not compile in 0.001 seconds"):
        runs.compiled(Path("ref.cu"), None, (), seconds=0.001)
    monkeypatch.setattr(runs, "CHILD", ("-c", "import os; os.abort()"))
    with pytest.raises(smemkern.CompileError, match="ref.cu: the compiler ended with -6"):
        runs.compiled(Path("ref.cu"), None, ())
