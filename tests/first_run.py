"""What plain `pytest` runs: one case of every test; `pytest --all` runs all of them, and
`pytest --all --cases N` up to N of each, drawn at random, others in each run.

So a first run takes about two minutes on two cores and touches every part. The name of a test
decides which of its cases is run: two runs are of the same ones, and tests of the same variants
have different ones of them. Nothing is left out of files, or of tests, that are picked by path, by
-k or by -m. Tests that are marked `long`, or cases, are left to --all, too: they take many seconds,
and the mark names the test that has their subject in a first run.
"""

from __future__ import annotations

import random
import zlib

import pytest

CHOSEN = pytest.StashKey[bool]()  # of a config: whether this is a first run
SEED = pytest.StashKey[int]()  # of a config: of the cases that --cases draws
COLLECTED = pytest.StashKey[list[pytest.Item]]()  # of a session: all tests, also those left out

SUMMARY = "A first run: one case of each test. pytest --all runs all cases."


def is_wanted(config: pytest.Config) -> bool:
    """Whether nobody has said what to run."""
    picked = config.option.keyword or config.option.markexpr or config.option.collectonly
    by_path = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return not (config.option.all_tests or picked or by_path)


def chosen(items: list[pytest.Item]) -> list[pytest.Item]:
    """The items of a first run, in their order."""
    tests = _by_function([item for item in items if not item.get_closest_marker("long")])
    kept = {_one(cases) for cases in tests}
    return [item for item in items if item in kept]


def drawn(items: list[pytest.Item], most: int, seed: int) -> list[pytest.Item]:
    """Up to `most` cases of each test, in their order. What needs a GPU counts apart."""
    rng = random.Random(seed)
    kept = set()
    for cases in _by_function(items):
        skipped = [case for case in cases if _is_skipped(case)]
        others = [case for case in cases if not _is_skipped(case)]
        for some in (skipped, others):
            kept.update(rng.sample(some, min(most, len(some))))
    return [item for item in items if item in kept]


def _by_function(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    tests: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        function = getattr(item, "originalname", None) or item.name
        tests.setdefault((item.nodeid.split("::")[0], function), []).append(item)
    return list(tests.values())


def _is_skipped(case: pytest.Item) -> bool:
    return any(all(mark.args[:1]) for mark in case.iter_markers("skipif"))


def _one(cases: list[pytest.Item]) -> pytest.Item:
    able = [case for case in cases if not _is_skipped(case)] or cases
    name = getattr(able[0], "originalname", None) or able[0].name
    return able[zlib.crc32(name.encode()) % len(able)]
