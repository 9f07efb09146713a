"""Calls on arrays of other libraries, and of NumPy, on a fake driver: each case a process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


def cases() -> Iterator[tuple[str, str]]:
    """Scripts, and what each has under CASES; read, as only a fake driver's process imports it."""
    for script in sorted(Path(__file__).parent.glob("fake_*.py")):
        listed = re.search(r"^CASES = \((.*?)\)$", script.read_text(), re.MULTILINE | re.DOTALL)
        for name in re.findall(r"\w+", listed[1]) if listed else ():
            yield script.name, name


@pytest.mark.parametrize(("script", "case"), list(cases()))
def test_case(on_fake_driver: Callable[..., str], script: str, case: str) -> None:
    on_fake_driver(script, case)


def test_there_are_cases() -> None:
    assert len(list(cases())) >= 45
