"""Runs tests of CuPy and of Numba (numba-cuda) under `smemkern run`, and writes which pass.

    python validation/framework_tests.py numba CHECKOUT [--seed N] [--count 300] [--minutes 60]

CHECKOUT is a folder of https://github.com/NVIDIA/numba-cuda or https://github.com/cupy/cupy, at the
version of the package that is installed. Test functions are drawn by the seed from the folders
below, and of each that has parameters one set of them. What passes or is skipped without a launch
of a kernel does not count towards the sample. Each test has a process of its own, and no GPU. What
the record holds is not run again, so a run that was ended goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
# pytest takes no names with brackets in them, which CuPy's have. A name can have several lines, of
# which --collect-only shows the first as the test's.
ONLY_ONE = """
import os
def pytest_collection_modifyitems(items):
    items[:] = [one for one in items if one.nodeid.startswith(os.environ["ONLY"])][:1]
"""


@dataclass(frozen=True)
class Framework:
    package: str
    tests: str  # the part of a checkout that is run; the rest would hide the installed package
    config: str
    folders: tuple[str, ...]
    without: tuple[str, ...] = ()  # tests of other libraries


FRAMEWORKS = {
    "numba": Framework(
        "numba-cuda",
        "numba_cuda/numba/cuda/tests",
        "testing/pytest.ini",
        ("cudapy", "cudadrv", "doc_examples", "nrt"),
    ),
    "cupy": Framework(
        "cupy-cuda13x",
        "tests",
        "pyproject.toml",
        ("tests/cupy_tests",),
        ("fft_tests", "linalg_tests", "random_tests", "test_cublas.py", "typing"),
    ),
}


def arrange(framework: str, checkout: Path, scratch: Path) -> list[str]:
    """A folder to run the tests in; what pytest is given there."""
    about = FRAMEWORKS[framework]
    if framework == "numba":  # its tests are in the package
        shutil.copy(checkout / about.config, scratch / "pytest.ini")
        shutil.copy(checkout / "testing" / "conftest.py", scratch)
        # Tests are named by their paths from there.
        packages = Path(find_spec("numba_cuda").origin).parent.parent
        return ["-o", "addopts=--benchmark-disable", f"--rootdir={packages}", "--pyargs"]
    shutil.copytree(checkout / about.tests, scratch / about.tests)
    shutil.copy(checkout / about.config, scratch)
    return []


def draw(framework: str, options: list[str], scratch: Path, seed: int) -> list[str]:
    """The tests in the order in which they are run."""
    about = FRAMEWORKS[framework]
    folders = [*about.folders]
    if framework == "numba":
        folders = [f"numba.cuda.tests.{folder}" for folder in folders]
    words = [sys.executable, "-m", "smemkern", "run", "--json", sys.executable, *PYTEST]
    done = subprocess.run(
        [*words, "--collect-only", *options, *folders],
        cwd=scratch,
        capture_output=True,
        text=True,
        check=False,
    )
    sets: dict[str, list[str]] = {}
    for line in sorted(set(done.stderr.splitlines())):
        is_test = "::" in line and " " not in line.partition("[")[0]
        if is_test and not any(part in line.partition("::")[0] for part in about.without):
            sets.setdefault(line.partition("[")[0], []).append(line)
    if not sets:
        raise SystemExit(done.stderr[-2000:])
    chance = random.Random(seed)
    names = sorted(sets)
    chance.shuffle(names)
    print(f"{len(names)} test functions", flush=True)
    return [chance.choice(sets[name]) for name in names]


def run_test(test: str, options: list[str], scratch: Path, limit: float) -> dict[str, object]:
    junit = scratch / "junit.xml"
    junit.unlink(missing_ok=True)
    words = [sys.executable, "-m", "smemkern", "run", "--json", sys.executable, *PYTEST]
    place = test.partition("::")[0]
    if options:  # the installed package's tests: by their module
        place = place[place.index("numba/cuda/tests") :].removesuffix(".py").replace("/", ".")
    (scratch / "only_one.py").write_text(ONLY_ONE)
    environment = {"CUPY_CACHE_DIR": str(scratch / "cache"), "ONLY": test, "PYTHONPATH": "."}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] += os.pathsep + os.environ["PYTHONPATH"]
    started = time.monotonic()
    process = subprocess.Popen(
        [*words, "-p", "only_one", f"--junitxml={junit}", *options, place],
        cwd=scratch,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    slow = False
    try:
        raw = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        slow = True
        process.terminate()  # the report of what it did until now follows
        try:
            raw = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raw = process.communicate()
    row: dict[str, object] = {"seconds": round(time.monotonic() - started, 1)}
    try:
        found = json.loads(raw[0])
    except ValueError:
        found = {}
    kernels = found.get("kernels", [])
    row["launches"] = sum(kernel["launches"] for kernel in kernels)
    row |= verdict(junit, slow, found, raw[1].decode(errors="replace"))
    notes = {
        "unsupported": sorted({one["call"] for one in found.get("unsupported", [])}),
        "misuses": sorted({one["message"][:200] for one in found.get("misuses", [])}),
        "errors": sorted({error[:200] for kernel in kernels for error in kernel["errors"]}),
        "hazards": sorted(
            {f"{row['kind']} in {k['kernel'][:60]}" for k in kernels for row in k["hazards"]}
        ),
    }
    return row | {name: values for name, values in notes.items() if values}


def verdict(junit: Path, slow: bool, found: dict[str, object], printed: str) -> dict[str, object]:
    if slow:
        return {"result": "time out"}
    try:
        [case] = xml.parse(junit).iter("testcase")
    except (OSError, ValueError, xml.ParseError):
        last = [line for line in printed.splitlines() if line.strip()][-3:]
        return {"result": "failed", "why": f"status {found.get('status')}: {' | '.join(last)}"}
    for kind, result in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        if (told := case.find(kind)) is not None:
            lines = [line for line in (told.text or "").splitlines() if line.startswith("E  ")]
            why = [line[1:].strip() for line in lines if line[1:].strip()]
            text = told.get("message", "").split("\n")[0] if result == "skipped" else ""
            text = text or " | ".join([why[0], why[-1]] if why else [told.get("message", "")])
            return {"result": result, "why": text[:400]}
    return {"result": "passed"}


def counts(row: dict[str, object]) -> bool:
    return bool(row["launches"]) or row["result"] not in ("passed", "skipped")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--count", type=int, default=300, help="tests that launch kernels")
    parser.add_argument("--minutes", type=float, default=60, help="begin no test after that")
    parser.add_argument("--limit", type=float, default=60, help="seconds per test")
    parser.add_argument("--again", default="", help="run those with this result once more")
    chosen = parser.parse_args()
    path = RESULTS / f"framework-tests-{chosen.framework}.json"
    record = json.loads(path.read_text()) if path.exists() else {"seed": chosen.seed, "tests": {}}
    rows, started = record["tests"], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        options = arrange(chosen.framework, chosen.checkout.resolve(), scratch)
        order = draw(chosen.framework, options, scratch, record["seed"])
        for test in order:
            again = test in rows and rows[test]["result"] == chosen.again
            if test in rows and not again:
                continue
            if sum(map(counts, rows.values())) >= chosen.count and not again:
                continue
            if time.monotonic() - started > 60 * chosen.minutes:
                break
            rows[test] = run_test(test, options, scratch, chosen.limit)
            print(f"{test}: {rows[test]}", flush=True)
            record |= {
                "version": version(FRAMEWORKS[chosen.framework].package),
                "limit": chosen.limit,
                "of": len(order),
                "left out": sum(1 for row in rows.values() if not counts(row)),
                "counts": Counter(str(row["result"]) for row in rows.values() if counts(row)),
                "tests": rows,
            }
            path.write_text(json.dumps(record, indent=1) + "\n")
    print(record.get("counts"))


if __name__ == "__main__":
    main()
