"""Wrong calls on device arrays, and the driver failing at each call, on the fake driver.

The long form is every operation of fake_faults.py with every result of ALL_RESULTS:
    SMEMKERN_ALL_FAULTS=1 pytest tests/cuda/test_faults.py
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OPERATIONS = "direct blocks several_gpus transpose own_kernel textures timed arrays trim".split()
OUT_OF_MEMORY, NOT_FOUND, ILLEGAL_ADDRESS, LAUNCH_FAILED, UNKNOWN = 2, 500, 700, 719, 999
ALL_RESULTS = (OUT_OF_MEMORY, 46, 100, NOT_FOUND, ILLEGAL_ADDRESS, LAUNCH_FAILED, 803, UNKNOWN)
CHOSEN = [(operation, UNKNOWN) for operation in OPERATIONS]
CHOSEN += [(operation, OUT_OF_MEMORY) for operation in ("blocks", "own_kernel", "textures")]
CHOSEN += [(operation, LAUNCH_FAILED) for operation in ("blocks", "arrays")]
CHOSEN += [("direct", NOT_FOUND)]
if os.environ.get("SMEMKERN_ALL_FAULTS"):
    CHOSEN = [(operation, result) for operation in OPERATIONS for result in ALL_RESULTS]


def test_wrong_calls(on_fake_driver: Callable[..., str]) -> None:
    """All of those that docs/reliability.md counts."""
    rows = re.findall(r"^row\(", (HERE / "fake_wrong_calls.py").read_text(), re.MULTILINE)
    assert int(on_fake_driver("fake_wrong_calls.py")) == len(rows)


@pytest.mark.parametrize(("operation", "result"), CHOSEN)
def test_each_call_failing(on_fake_driver: Callable[..., str], operation: str, result: int) -> None:
    told = on_fake_driver("fake_faults.py", operation, str(result), seconds=300)
    assert int(told.split(": ")[-1].split()[0]) > 50


def test_processes(on_fake_driver: Callable[..., str]) -> None:
    assert on_fake_driver("fake_processes.py").strip() == "right"


def test_threads(on_fake_driver: Callable[..., str]) -> None:
    assert int(on_fake_driver("fake_threads.py", "2", "12").split()[0]) >= 36


@pytest.mark.long(instead="the tests above, of the same faults without the script")
def test_what_a_gpu_is_asked_to_suffer(on_fake_driver: Callable[..., str], tmp_path: Path) -> None:
    """The script that measures a GPU's faults: the fake's kernels crash under the same names."""
    script = HERE.parent.parent / "validation" / "faults.py"
    on_fake_driver(str(script), "--size", "64", "--results", str(tmp_path), seconds=300)
    cases = json.loads((tmp_path / "faults-fake-gpu-0.json").read_text())["cases"]
    told = cases["out_of_memory"]
    assert told["a kernel"]["raised"] == "MemoryError" and told["once it is free"]["right"]
    for name in ("trap", "illegal_address"):
        assert cases[name]["a kernel"]["raised"] == "LaunchError" and cases[name]["its array"]
    queued = cases["illegal_address_on_the_gpu"]
    assert queued["a kernel"]["right"]
    assert "a kernel failed before" in queued["the same, at once"]["message"]
    for name, case in cases.items():
        lost = name in ("trap", "illegal_address", "illegal_address_on_the_gpu")
        for told in case.get("afterwards", {}).values():
            assert told.get("right", lost), name
        if lost:
            assert "Start a new process" in case["afterwards"]["the next kernel"]["message"]
            assert case["afterwards"]["the emulator"]["right"]
    assert "spawn" in cases["fork"]["after it"]["GPU"]["message"]
