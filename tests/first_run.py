"""What plain `pytest` runs: two cases of every test; `pytest --all` runs all of them.

So a first run takes two to three minutes on two cores and touches every part. Of a test marked
`costly` it has one case. Which cases are run is fixed, so that two runs are of the same ones.
Nothing is left out of files, or of tests, that are picked by path, by -k or by -m. Tests that are
marked `long`, or cases, are left to --all, too: they take many seconds, and the mark names the test
that has their subject in a first run.
"""

from __future__ import annotations

import pytest

CHOSEN = pytest.StashKey[bool]()  # of a config: whether this is a first run
COLLECTED = pytest.StashKey[list[pytest.Item]]()  # of a session: all tests, also those left out

CASES = 2  # of a parametrised test: the first, and one from the middle

SUMMARY = (
    f"A first run: up to {CASES} cases of each test, and no further ones. "
    "pytest --all runs all cases."
)


def is_wanted(config: pytest.Config) -> bool:
    """Whether nobody has said what to run."""
    picked = config.option.keyword or config.option.markexpr or config.option.collectonly
    by_path = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return not (config.option.all_tests or picked or by_path)


def chosen(items: list[pytest.Item]) -> list[pytest.Item]:
    """The items of a first run, in their order."""
    tests: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("long"):
            continue
        function = getattr(item, "originalname", None) or item.name
        tests.setdefault((item.nodeid.split("::")[0], function), []).append(item)
    kept = {case for cases in tests.values() for case in _some(cases)}
    return [item for item in items if item in kept]


def _some(cases: list[pytest.Item]) -> list[pytest.Item]:
    most = 1 if cases[0].get_closest_marker("costly") else CASES
    return cases[:: -(-len(cases) // most)]
