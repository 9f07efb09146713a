"""Plain pytest runs one case of each test; whoever says what to run gets all of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import first_run

HERE = Path(__file__).parent

CASES = """
import pytest

@pytest.mark.parametrize("n", range(5))
def test_many(n):
    assert n in (3, 1)

@pytest.mark.parametrize("n", range(2))
def test_two(n):
    pass

def test_one():
    pass

@pytest.mark.long(instead="test_one")
def test_long():
    pass
"""
OPTIONS = "[tool.pytest.ini_options]\ntestpaths = ['tests']\naddopts = ['-ra']\n"


@pytest.fixture
def run(tmp_path):
    """run(*arguments): how many tests passed and failed, of a project with this conftest.py."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tmp_path / "pyproject.toml").write_text(OPTIONS)
    (tests / "conftest.py").write_text((HERE / "conftest.py").read_text())
    for name in ("test_a", "test_b"):
        (tests / f"{name}.py").write_text(CASES)

    def run_one(*arguments):
        path = f"import sys; sys.path[:0] = [{str(HERE)!r}]; import pytest; sys.exit(pytest.main())"
        command = [sys.executable, "-c", path, *arguments, "-p", "no:cacheprovider"]
        alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # which takes half the time
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | alone
        )
        words = done.stdout.splitlines()[-1].replace(",", "").split()
        found = {words[i + 1]: int(words[i]) for i in range(len(words) - 1) if words[i].isdigit()}
        assert (first_run.SUMMARY in done.stdout) == ("failed" not in found)
        return found.get("passed", 0), found.get("failed", 0)

    return run_one


ALL = (12, 6)


def test_one_case_of_each(run):
    # of two files: 3 by the name of test_many, one of two, the one; not the long one
    assert run() == (6, 0)


@pytest.mark.parametrize("arguments", [["--all"], ["tests"], ["-k", "test"]], ids=" ".join)
def test_all_of_what_is_asked_for(run, arguments):
    passed, failed = run(*arguments)
    assert (passed, failed) == ALL


def test_a_file(run):
    assert run("tests/test_a.py") == (6, 3)


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [
        ([], (6, 0)),
        pytest.param(["--all"], ALL, marks=pytest.mark.long(instead="the case without --all")),
    ],
    ids=str,
)
def test_workers_are_told(run, arguments, counts):
    pytest.importorskip("xdist")
    assert run(*arguments, "-p", "xdist", "-n", "2") == counts


def test_cases_that_are_drawn(run):
    """Up to 4 of each test, the same ones with the same seed, others with another."""
    seeds = (1, 2, 3, 4, 5, 1)
    found = [run("--all", "--cases", "4", "--cases-seed", str(seed)) for seed in seeds]
    assert {passed + failed for passed, failed in found} == {2 * (4 + 2 + 1 + 1)}
    assert found[0] == found[-1] and len(set(found)) > 1
