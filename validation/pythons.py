"""Builds the extension for other Pythons, and runs part of the suite and exit tests there.

    python validation/pythons.py ~/.pyenv/versions/3.1*/bin/python /opt/3.14t/bin/python3.14t

A Python without the packages that the tests need gets a virtual environment below --folder. That
folder also has the copy of the tree that is built; if it is kept, the next run compiles little.
Needs the kernel images of an ordinary build. Rows of other Pythons in
benchmarks/results/pythons.json are kept.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "validation")]
sys.path.append(str(ROOT / "benchmarks"))

import records  # noqa: E402
from sanitized import copied  # noqa: E402
from test_shutdown import START, WORKS  # noqa: E402

TESTS = [f"tests/test_{n}.py" for n in "shutdown api processes kernel sandbox long_texts".split()]
TESTS += [f"tests/emu/test_emu_{n}.py" for n in "calls control errors memory print warp".split()]
# Left out: a test of the installed version (this tree is not installed), and a time limit.
LEFT_OUT = "tests/test_api.py::test_version", "tests/test_api.py::test_import_is_cheap"
NEEDED = "numpy>=2 pytest pytest-xdist hypothesis ml_dtypes setuptools>=77".split()
PRESENT = "import numpy, pytest, xdist, hypothesis, ml_dtypes, setuptools"
ABOUT = """
import json, numpy, platform, sys, sysconfig
free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
name = "%d.%d" % sys.version_info[:2] + "t" * free
print(json.dumps([name, {
    "version": platform.python_version(), "free_threaded": free, "numpy": numpy.__version__}]))
"""


def called(python: Path, *words: str) -> str:
    return subprocess.run([python, *words], capture_output=True, text=True, check=True).stdout


def with_packages(python: Path, folder: Path) -> Path:
    """This Python if it has the packages, else that of a virtual environment with them."""
    if subprocess.run([python, "-c", PRESENT], capture_output=True).returncode == 0:
        return python
    version = called(python, "-c", "import sys; print(sys.version.split()[0], sys.abiflags)")
    home = folder / "environments" / version.replace(" ", "").strip()
    if not home.exists():
        subprocess.run([python, "-m", "venv", home], check=True)
        subprocess.run([home / "bin" / "pip", "install", "-q", *NEEDED], check=True)
    return home / "bin" / "python"


def tested(python: Path, tree: Path) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as reports:
        report = Path(reports, "report.xml")
        command = [python, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
        command += [f"--deselect={name}" for name in LEFT_OUT]
        subprocess.run([*command, f"--junitxml={report}", *TESTS], cwd=tree, env=found_in(tree))
        suite = xml.parse(report).getroot().find("testsuite")
    assert suite is not None
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    return {
        "passed": count["tests"] - failed - count["skipped"],
        "failed": failed,
        "skipped": count["skipped"],
    }


def found_in(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree)}


def exits(python: Path, tree: Path, runs: int) -> dict[str, Any]:
    """Exit statuses, counted, of processes that exit while four daemon threads are in calls."""
    statuses: Counter[str] = Counter()
    for _ in range(runs):
        for work in WORKS.values():
            code = f"start(*4 * [ever(lambda: {work})]); time.sleep({random.uniform(0, 0.3)})"
            program = textwrap.dedent(START) + code
            command = [python, "-c", program]
            try:
                done = subprocess.run(
                    command, cwd=tree, env=found_in(tree), capture_output=True, timeout=60
                )
                statuses[str(done.returncode)] += 1
            except subprocess.TimeoutExpired:
                statuses["hung"] += 1
    return {"runs": sum(statuses.values()), "statuses": dict(statuses)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pythons", nargs="+", type=Path)
    parser.add_argument("--folder", type=Path, help="for the copy; else a temporary one")
    parser.add_argument("--runs", type=int, default=5, help="processes that end, of each kind")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # not ignored, as nohup makes it
    commit = called(Path("git"), "-C", str(ROOT), "rev-parse", "--short=12", "HEAD").strip()
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        tree = folder / "tree"
        copied(tree)
        for given in options.pythons:
            python = with_packages(given.absolute(), folder)
            name, about = json.loads(called(python, "-c", ABOUT))
            print(f"{name}: {about}", flush=True)
            build = [python, "setup.py", "-q", "build_ext", "--inplace"]
            subprocess.run(build, cwd=tree, check=True)
            record = {
                **about,
                "date": datetime.date.today().isoformat(),
                "commit": commit,
                "suite": tested(python, tree),
                "shutdown": exits(python, tree, options.runs),
            }
            known = records.read("pythons") or {}
            records.write(records.RESULTS / "pythons.json", {**known, name: record})
            print(record, flush=True)
            good &= not record["suite"]["failed"] and [*record["shutdown"]["statuses"]] == ["0"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
