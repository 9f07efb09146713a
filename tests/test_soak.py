"""Random calls against NumPy, drawn by hypothesis; validation/soak.py runs many thousands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import soak_cases
from checks import record

ROOT = Path(__file__).resolve().parent.parent
needs_tree = pytest.mark.skipif(
    not (ROOT / "benchmarks" / "rows.py").exists(), reason="not a source tree"
)


@needs_tree
@pytest.mark.parametrize("check", soak_cases.CHECKS, ids=lambda check: check.__name__)
@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(random=st.randoms(use_true_random=False))
def test_any_call(check, device, random) -> None:
    from rows import parameter_sets

    check(random, device, 70, parameter_sets)


@needs_tree
@pytest.mark.parametrize("device", ["cuda", "emu"])
def test_the_long_run_found_nothing(device) -> None:
    run = record(f"soak-{device}")
    assert run["device"] == device and not run["failed"]
    assert run["count"] >= {"cuda": 100_000, "emu": 20_000}[device]
