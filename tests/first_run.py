"""What plain `pytest` runs: some cases of every test that is quick; `pytest --all` runs all tests.

So a first run takes about two minutes on two cores, and touches every part. Which cases are run
is fixed, so that two runs are of the same ones. Tests that are picked by file, by -k or by -m are
never left out.
"""

from __future__ import annotations

import pytest

CHOSEN = pytest.StashKey[bool]()  # of a config: whether this is a first run
COLLECTED = pytest.StashKey[list[pytest.Item]]()  # of a session: all tests, also those left out

CASES = 2  # of a parametrised test: the first, and others evenly spaced

# Files and tests that take long for what they add to a first look.
LEFT_OUT: dict[str, str] = {}


SUMMARY = (
    "A first run: a few cases of each test. Left out: further cases, "
    f"and {len(LEFT_OUT)} slow tests (tests/first_run.py). Everything: pytest --all"
)


def is_wanted(config: pytest.Config) -> bool:
    """Whether nobody has said what to run."""
    chosen = config.option.keyword or config.option.markexpr or config.option.collectonly
    by_path = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return not (config.option.all_tests or chosen or by_path)


def name_of(item: pytest.Item) -> str:
    function = getattr(item, "originalname", None) or item.name
    return f"{item.nodeid.split('::')[0].removeprefix('tests/')}::{function}"


def is_left_out(name: str) -> bool:
    return name in LEFT_OUT or name.split("::")[0] in LEFT_OUT


def chosen(items: list[pytest.Item]) -> list[pytest.Item]:
    """The items of a first run, in their order."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(name_of(item), []).append(item)
    kept: set[pytest.Item] = set()
    for name, cases in groups.items():
        if not is_left_out(name):
            step = max(1, -(-len(cases) // CASES))
            kept.update(cases[::step])
    return [item for item in items if item in kept]
