"""Compiles the kernels of test files for Triton's race detectors, with their labels.

    python triton_tests.py consan FILE FOLDER     # python/test/gluon/test_consan.py of Triton
    python triton_tests.py cutracer FILE FOLDER   # tests/datarace_test/hopper-*.py of CUTracer

Needs an interpreter that has pytest and the Triton that FILE was written for; no GPU and no torch.
FOLDER gets the PTX of each launch, and cases.json: label, launch and arguments by case.
referee.py runs them. The label is what the test itself expects: for ConSan the message that a
failing run must print, or no failure. Tests that are not for sm_90 are listed in cases.json.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))
import triton_recorder
from triton_recorder import LAUNCHES

CLUSTERS = (1, 2, 4)
LABELS = {
    "outstanding": "race",
    "pending access": "race",
    "missing fence": "race",
    "Deadlock": "deadlock",
    "Barrier": "barrier",
}


def load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("suite_tests", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["suite_tests"] = module
    spec.loader.exec_module(module)
    return module


# ---- ConSan

# Functions that test files of before and after July 2026 call by different names.
RENAMED = (
    ("blackwell.tma", "async_copy_global_to_shared", "async_load"),
    ("blackwell.tma", "async_copy_shared_to_global", "async_store"),
    ("ampere.async_copy", "async_copy_global_to_shared", "async_load"),
)


def rename() -> None:
    """Both names stand for the function that the installed Triton has."""
    for where, old, new in RENAMED:
        module = importlib.import_module(f"triton.experimental.gluon.language.nvidia.{where}")
        function = getattr(module, new, None) or getattr(module, old)
        setattr(module, old, function)
        setattr(module, new, function)


class Output:
    """Stands for what a run prints: contains every message, and keeps those asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __contains__(self, text: str) -> bool:
        self.asked.append(text)
        return True

    def __eq__(self, other: object) -> bool:
        return other == ""

    def __hash__(self) -> int:
        return 0


class Result:
    """Of a run in a process of its own."""

    def __init__(self, exc: Exception | None) -> None:
        self.exc = exc
        self.driver_stderr_output = Output()


class Environment:
    """Stands for monkeypatch: nothing is instrumented."""

    def setenv(self, *_: str) -> None:
        pass


def expectation(module: Any, test: Any, values: dict[str, Any]) -> tuple[str, list[str]]:
    """The label, and the messages that the test looks for."""
    for exc in (RuntimeError("device-side assert"), None):
        result = Result(exc)
        module.run_in_process = lambda *_, result=result, **__: result
        try:
            test(**values, run_wrapper=True, monkeypatch=Environment())
        except AssertionError:
            continue
        asked = result.driver_stderr_output.asked
        labels = {label for text in asked for part, label in LABELS.items() if part in text}
        if exc and len(labels) != 1:
            raise RuntimeError(f"unknown messages: {asked}")
        return (labels.pop() if exc else "clean"), asked
    raise RuntimeError("the test passes neither with a failure nor without one")


def parameters(test: Any) -> list[dict[str, Any]]:
    """Every combination of the test's parameters."""
    lists = []
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            lists.append([{mark.args[0]: value} for value in mark.args[1]])
    names = inspect.signature(test).parameters
    if "num_ctas" in names:
        lists.append([{"num_ctas": n} for n in CLUSTERS])
    if "device" in names:
        lists.append([{"device": "cuda"}])
    return [{k: v for one in row for k, v in one.items()} for row in itertools.product(*lists)]


def skipped(test: Any) -> str:
    """Why the test is not for this GPU; else the empty string."""
    marks = [m for m in getattr(test, "pytestmark", ()) if m.name == "skipif" and any(m.args)]
    return marks[0].kwargs.get("reason", "skipped") if marks else ""


def consan(module: Any) -> tuple[dict[str, Any], dict[str, str]]:
    import pytest

    rename()
    cases, left_out = {}, {}
    for name, test in list(vars(module).items()):
        if not name.startswith("test_"):
            continue
        if why := skipped(test):
            left_out[name] = why
            continue
        if "run_wrapper" not in inspect.signature(test).parameters:
            left_out[name] = "not a test of a kernel"
            continue
        for values in parameters(test):
            shown = "-".join(f"{k}={v}" for k, v in values.items() if k != "device")
            full = f"{name.removeprefix('test_')}[{shown}]"
            try:
                label, asked = expectation(module, test, values)
                LAUNCHES.clear()
                test(**values, run_wrapper=False, monkeypatch=Environment())
            except pytest.skip.Exception:
                continue
            except Exception as error:
                left_out[full] = f"{type(error).__name__}: {error}"[:300]
                continue
            if len(LAUNCHES) != 1:
                raise RuntimeError(f"{full}: {len(LAUNCHES)} launches")
            cases[full] = {"label": label, "messages": asked, **LAUNCHES[0]}
            print(full, label, flush=True)
    return cases, left_out


# ---- CUTracer


def cutracer(module: Any) -> tuple[dict[str, Any], dict[str, str]]:
    torch, cases = sys.modules["torch"], {}
    for name, kernel in list(vars(module).items()):
        if not name.startswith("matmul_kernel_"):
            continue
        LAUNCHES.clear()
        a = torch.randn((module.M, module.K), dtype=torch.float16)
        b = torch.randn((module.K, module.N), dtype=torch.float16)
        module.run_matmul_with_kernel(kernel, a, b, check_correctness=False)
        label = "clean" if name == "matmul_kernel_correct" else "race"
        cases[name] = {"label": label, "messages": [], **LAUNCHES[0]}
        print(name, label, flush=True)
    return cases, {}


SUITES = {"consan": consan, "cutracer": cutracer}


def main() -> None:
    suite, file, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    triton_recorder.stand_in_torch()
    triton_recorder.record()
    cases, left_out = SUITES[suite](load(file))
    out.mkdir(parents=True, exist_ok=True)
    for number, case in enumerate(cases.values()):
        name = f"{number}.ptx"
        (out / name).write_text(case.pop("ptx"))
        case["ptx"] = name
    import triton

    made = {"triton": triton.__version__, "cases": cases, "left_out": left_out}
    (out / "cases.json").write_text(json.dumps(made, indent=1))
    print(f"{len(cases)} cases, {len(left_out)} left out")


if __name__ == "__main__":
    main()
