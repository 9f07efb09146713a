"""The pytest plugin: the marker `smemkern`, the fixture `smemkern_watch`, the baseline of counts.

It is a module beside the package, because pytest imports it in every project where smemkern is
installed: importing the package imports NumPy. smemkern/_reports/pytest_checks.py does the work.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

_NEW = int(pytest.__version__.partition(".")[0]) >= 8  # has wrappers that may raise

if TYPE_CHECKING:
    from smemkern import Watch

MARKER = (
    "smemkern(max_conflict_factor=None, hazards=0, baseline=True): watch the test's calls of "
    "smemkern on the emulator; fail if the conflict factor of a line is over the limit, if there "
    "are more hazards (None: do not look for them), or if a count is over the baseline's"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("smemkern")
    group.addoption(
        "--smemkern-baseline",
        metavar="FILE",
        help="counts of marked tests, which may only fall (JSON; also the ini option "
        "smemkern_baseline)",
    )
    group.addoption(
        "--smemkern-update-baseline",
        action="store_true",
        help="write new and lower counts to the baseline",
    )
    parser.addini("smemkern_baseline", "baseline of counts, relative to this file", type="string")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    named = config.getoption("smemkern_baseline") or config.getini("smemkern_baseline")
    if named or config.getoption("smemkern_update_baseline"):
        from smemkern._reports import pytest_checks

        plugin = pytest_checks.BaselinePlugin(config)
        config.pluginmanager.register(plugin, "smemkern-baseline")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not _NEW and item.get_closest_marker("smemkern"):
        pytest.fail("the marker smemkern needs pytest 8 or newer", pytrace=False)


if _NEW:

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
        if item.get_closest_marker("smemkern") is None:
            return (yield)
        from smemkern._reports import pytest_checks

        limits = pytest_checks.limits_of(item)
        with pytest_checks.watched(limits) as seen:
            try:
                result = yield
            except BaseException:  # what was found may be the cause
                pytest_checks.describe(item, limits, seen)
                raise
        pytest_checks.check(item, limits, seen)
        return result


@pytest.fixture
def smemkern_watch() -> Iterator[Watch]:
    """The calls of smemkern that the test makes, with their traces; see smemkern.watch."""
    from smemkern import watch

    with watch() as seen:
        yield seen
