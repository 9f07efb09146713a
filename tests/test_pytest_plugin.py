"""The pytest plugin, in projects of its own: the marker, the fixture, the baseline, xdist."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = '''
import numpy as np
import pytest
import smemkern

SOURCE = """extern "C" __global__ void flip(const float *x, float *y) {
    __shared__ float tile[32][32 + PAD];
    tile[threadIdx.y][threadIdx.x] = x[32 * threadIdx.y + threadIdx.x];
    SYNC;
    y[32 * threadIdx.y + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}"""

def flip(pad=1, sync="__syncthreads()"):
    x = np.random.rand(32, 32).astype("f")
    y = np.zeros_like(x)
    options = f"-DPAD={pad}", f"-DSYNC={sync}"
    smemkern.Kernel(SOURCE, "flip", options)(1, (32, 32), x, y, device="emu")
    return x, y
'''


@pytest.fixture
def project(tmp_path, nvrtc):
    """run(source, *options): pytest in a new project; its status, counts and output."""

    def run(source, *options, plugins=("smemkern_pytest",), above=SOURCE):
        (tmp_path / "test_it.py").write_text(above + source)
        environment = os.environ | {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "COLUMNS": "200",
        }
        named = [word for plugin in plugins for word in ("-p", plugin)]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *named, *options],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        run.out = done.stdout + done.stderr
        found = re.findall(r"(\d+) (passed|failed|error|skipped)", run.out.splitlines()[-1])
        return {name: int(count) for count, name in found}

    run.folder = tmp_path
    return run


def test_the_marker(project):
    source = """
@pytest.mark.smemkern(max_conflict_factor=1.0)
def test_good():
    x, y = flip()
    assert (y == x.T).all()

@pytest.mark.smemkern(max_conflict_factor=32)
def test_within_the_limit():
    flip(0)

@pytest.mark.smemkern(max_conflict_factor=31.5)
def test_bad_conflicts():
    flip(0)

@pytest.mark.smemkern
def test_bad_race():
    flip(sync="")

@pytest.mark.smemkern(hazards=1)
def test_known_race():
    flip(sync="")

@pytest.mark.smemkern(hazards=None)
def test_not_checked():
    flip(sync="")

@pytest.mark.smemkern
def test_bad_no_call():
    pass

@pytest.mark.smemkern
def test_bad_itself():
    flip(0, sync="")
    assert 1 == 2

@pytest.mark.smemkern(max_conflict_factor=0.5)
def test_bad_limit():
    flip()

@pytest.mark.smemkern(conflicts=1)
def test_bad_keyword():
    flip()

@pytest.mark.smemkern(hazards=0)
class TestClass:
    def test_bad_race_of_a_class(self):
        flip(sync="")

    @pytest.mark.smemkern(hazards=None, max_conflict_factor=1)
    def test_closer(self):
        flip(sync="")

@pytest.mark.smemkern
@pytest.mark.xfail(strict=True)
def test_expected():
    assert 0

@pytest.mark.smemkern
@pytest.mark.parametrize("name", ["tiled", "padded"])
def test_operations(name):
    a = np.ones((32, 32), np.float32)
    assert (smemkern.gemm(a, a, variant=name) == 32).all()

def test_unmarked():
    flip(0, "")
"""
    found = project(source, "-rA")
    bad = {*re.findall(r"FAILED test_it.py::(?:\w+::)?(\w+)", project.out)}
    expected = {*re.findall(r"def (test_bad\w*)", source)}
    assert bad == expected, project.out
    assert found["failed"] == len(expected)
    for text in (
        "bank conflicts: kernel.cu:5 load: factor 32.00 is over the limit of 31.5",
        "5 |     y[32 * threadIdx.y + threadIdx.x] = tile[threadIdx.x][threadIdx.y];",
        "smemkern: 1 hazard, the limit is 0",
        "RAW race, shared tile[1][0]",
        "the test made no call of smemkern",
        "max_conflict_factor should be a number of at least 1 or None, not 0.5",
        "not 'conflicts'",
        "assert 1 == 2",
        "Captured smemkern call",
    ):
        assert text in project.out, text


def test_the_fixture(project):
    source = """
def test_sums(smemkern_watch):
    flip()
    flip(0)
    assert smemkern_watch.requests == 128
    assert smemkern_watch.wavefronts == 64 + 32 + 1024
    assert smemkern_watch.conflict_factor == 32 and smemkern_watch.hazards == 0
    assert [t.launch.kernel for t in smemkern_watch.traces] == ["flip", "flip"]

@pytest.mark.smemkern(max_conflict_factor=1)
def test_both(smemkern_watch):
    flip()
    assert smemkern_watch.wavefronts == 64
"""
    assert project(source, "--strict-markers") == {"passed": 2}, project.out


MARKED = """
import os
PAD = int(os.environ.get("PAD", 1))

@pytest.mark.smemkern
@pytest.mark.parametrize("at", [1, 2])
def test_flip(at):
    flip(PAD)

@pytest.mark.smemkern(baseline=False)
def test_not_in_it():
    flip(PAD)

def test_unmarked():
    flip(PAD)
"""


@pytest.mark.parametrize(
    "workers", [0, pytest.param(2, marks=pytest.mark.long(instead="the case without workers"))]
)
def test_the_baseline(project, workers, monkeypatch):
    pytest.importorskip("xdist")
    more = ["-n", str(workers)] if workers else []
    plugins = ("smemkern_pytest", "xdist")

    def run(*options):
        return project(MARKED, *more, *options, plugins=plugins)

    option = "--smemkern-baseline=counts.json"
    file = project.folder / "counts.json"
    assert run(option) == {} and "make it by --smemkern-update-baseline" in project.out
    monkeypatch.setenv("PAD", "0")
    assert run(option, "--smemkern-update-baseline") == {"passed": 4}, project.out
    counts = {"requests": 64, "wavefronts": 32 + 1024, "sectors": 256}
    first = {f"test_it.py::test_flip[{at}]": counts for at in (1, 2)}
    assert json.loads(file.read_text()) == first
    assert file.read_text().splitlines() == ["{", *file.read_text().splitlines()[1:3], "}"]

    monkeypatch.setenv("PAD", "1")  # fewer
    assert run(option) == {"passed": 4}
    assert "counts of 2 tests fell" in project.out and json.loads(file.read_text()) == first
    assert run(option, "--smemkern-update-baseline", "-k", "1") == {"passed": 1}
    lower = first | {"test_it.py::test_flip[1]": counts | {"wavefronts": 64}}
    assert json.loads(file.read_text()) == lower

    monkeypatch.setenv("PAD", "0")  # more than the lowered one
    for more_options in ([], ["--smemkern-update-baseline"]):
        assert run(option, *more_options) == {"failed": 1, "passed": 3}
        assert "smemkern: wavefronts rose from 64 to 1056 (counts.json)" in project.out
        assert json.loads(file.read_text()) == lower
    file.write_text("{}")
    assert run(option) == {"failed": 2, "passed": 2}
    assert "counts.json has no counts of this test" in project.out


def test_the_ini_option(project):
    (project.folder / "pytest.ini").write_text("[pytest]\nsmemkern_baseline = kept/counts.json\n")
    (project.folder / "kept").mkdir()
    assert project(MARKED, "--smemkern-update-baseline") == {"passed": 4}
    assert len(json.loads((project.folder / "kept" / "counts.json").read_text())) == 2
    assert project(MARKED) == {"passed": 4}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "is not JSON"),
        ("[]", "the file should be an object"),
        ('{"a": {"requests": 1}}', "a should be an object with the integers"),
        ('{"a": {"requests": 1, "wavefronts": 1.5, "sectors": 2}}', "a should be an object"),
    ],
)
def test_files_that_are_no_baseline(project, text, error):
    (project.folder / "counts.json").write_text(text)
    assert project(MARKED, "--smemkern-baseline=counts.json") == {}
    assert error in project.out and "Traceback" not in project.out


def test_an_update_needs_a_file(project):
    assert project(MARKED, "--smemkern-update-baseline") == {}
    assert "--smemkern-update-baseline needs --smemkern-baseline FILE" in project.out


def test_other_projects_do_not_import_the_package(project):
    source = """
def test_it():
    assert True
"""
    (project.folder / "conftest.py").write_text(
        "import sys\n"
        "def pytest_sessionfinish():\n"
        "    print('imported', [name for name in ('smemkern', 'numpy') if name in sys.modules])\n"
    )
    assert project(source, "-s", above="") == {"passed": 1}, project.out
    assert "imported []" in project.out


def test_the_example_of_the_page(project):
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    flip = re.search(r'source = """\n(.*?)"""', readme, re.S)[1]
    example = re.search(r"```python\n(.*?)```", page, re.S)[1]
    (project.folder / "flip.cu").write_text(flip)
    assert project(example) == {"failed": 1}
    assert "RAW race" in project.out and "is over the limit of 1" in project.out
    mended = flip.replace("[32][32]", "[32][33]").replace("    y[", "    __syncthreads();\n    y[")
    (project.folder / "flip.cu").write_text(mended)
    assert project(example) == {"passed": 1}, project.out


def test_it_is_registered_as_an_entry_point():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.pytest11]\nsmemkern = "smemkern_pytest"' in text
    assert 'py-modules = ["smemkern_pytest"]' in text
