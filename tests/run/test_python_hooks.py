"""smemkern/_python_hooks: packages are told to stop at PTX. A stand-in for one of them."""

import sys

import pytest

COMPILER = "def compile(source, *args, target='cubin', **kw):\n    return target\n"
TEST = """
from pycuda.compiler import compile

def test_target():
    assert compile("", *[None] * 8) == "ptx"
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "packages" / "pycuda"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "compiler.py").write_text(COMPILER)
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))


def test_in_a_script(package, run_program, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"{TEST}\ntest_target()\nprint('PASS')\n")
    status, out, err = run_program(sys.executable, script)
    assert status == 0 and out.startswith("PASS\n"), err


def test_below_pytest(package, run_program, tmp_path):
    """Its finder takes modules whose names match python_files, before all others."""
    (tmp_path / "pytest.ini").write_text("[pytest]\npython_files = *.py\n")
    (tmp_path / "test_of_it.py").write_text(TEST)
    words = (
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-q",
        f"--rootdir={tmp_path}",
    )
    status, out, _ = run_program(sys.executable, *words, tmp_path)
    assert status == 0 and "1 passed" in out, out
