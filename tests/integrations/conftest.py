"""Tests with the real packages of other tools, and without a GPU.

The packages: pip install --group integrations. Tests of those that are missing are skipped.
"""

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def seed():
    """A new seed for each test, printed if it fails."""
    number = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {number}")
    return number


@pytest.fixture
def random(seed):
    return np.random.default_rng(seed)


@pytest.fixture(scope="session")
def tri():
    pytest.importorskip("triton")
    import integrations_triton

    return integrations_triton


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings("ignore::UserWarning"))
