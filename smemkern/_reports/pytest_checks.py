"""What the pytest plugin (smemkern_pytest.py) does for tests that use it."""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .._trace.observe import Trace
from .._trace.watch import Watch, watch
from . import findings

COUNTS = ("requests", "wavefronts", "sectors")


class Limits(NamedTuple):
    """The keywords of the marker."""

    max_conflict_factor: float | None = None
    hazards: int | None = 0
    baseline: bool = True


def limits_of(item: pytest.Item) -> Limits:
    """The limits of a test: a marker of the function has precedence over one of its class."""
    given: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers("smemkern"))):
        unknown = ", ".join(map(repr, {*mark.kwargs} - {*Limits._fields}))
        if mark.args or unknown:
            found = unknown or "a positional argument"
            known = ", ".join(Limits._fields)
            pytest.fail(f"the marker smemkern has the keywords {known}, not {found}", pytrace=False)
        given |= mark.kwargs
    limits = Limits(**given)
    factor, hazards, _ = limits
    number = isinstance(factor, int | float) and not isinstance(factor, bool) and factor >= 1
    if factor is not None and not number:
        _wrong("max_conflict_factor should be a number of at least 1 or None", factor)
    whole = isinstance(hazards, int) and not isinstance(hazards, bool) and hazards >= 0
    if hazards is not None and not whole:
        _wrong("hazards should be an integer of at least 0 or None", hazards)
    return limits


def _wrong(message: str, found: object) -> None:
    pytest.fail(f"marker smemkern: {message}, not {found!r}", pytrace=False)


def watched(limits: Limits) -> AbstractContextManager[Watch]:
    """Watches what the test calls."""
    return watch(hazards=limits.hazards is not None)


def describe(item: pytest.Item, limits: Limits, seen: Watch) -> None:
    """Adds what was seen to the report of a test that fails for another reason."""
    problems = [*_hazards(limits, seen), *_conflicts(limits, seen)]
    if problems:
        item.add_report_section("call", "smemkern", "\n".join(problems))


def check(item: pytest.Item, limits: Limits, seen: Watch) -> None:
    """Fails the test if what was seen is over a limit or over the baseline."""
    __tracebackhide__ = True
    if not seen.traces:
        if seen.on_gpu:
            return  # the same test on device "cuda": nothing is counted there
        pytest.fail("marker smemkern: the test made no call of smemkern", pytrace=False)
    problems = [*_hazards(limits, seen), *_conflicts(limits, seen)]
    counts = {name: getattr(seen, name) for name in COUNTS}
    item.user_properties += [(f"smemkern_{name}", count) for name, count in counts.items()]
    plugin = item.config.pluginmanager.get_plugin("smemkern-baseline")
    if plugin is not None and limits.baseline and not problems:
        problems = plugin.compare(test_id(item), counts)
        if not problems:
            item.user_properties.append(("smemkern_baseline", test_id(item)))
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def _hazards(limits: Limits, seen: Watch) -> list[str]:
    if limits.hazards is None or seen.hazards <= limits.hazards:
        return []
    lines = [f"smemkern: {_many(seen.hazards, 'hazard')}, the limit is {limits.hazards}"]
    for trace in seen.traces:
        for row in trace.hazards:
            lines += [f"  {trace.launch.title}: {row.message}", *_quote(trace, row.line, row.file)]
    return lines


def _conflicts(limits: Limits, seen: Watch) -> list[str]:
    limit = limits.max_conflict_factor
    lines = []
    for trace in seen.traces:
        for row in findings.over_limit(trace.shared, limit):
            message = findings.conflict_message(row, limit or 1)
            lines += [f"smemkern: {trace.launch.title}: {message}"]
            lines += _quote(trace, row.line, row.file)
    return lines


def _many(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def _quote(trace: Trace, line: int, file: str | None) -> list[str]:
    """The source line, if the Kernel has it."""
    text = trace.launch.sources.get(file or "")
    lines = text.splitlines() if text else []
    return [f"      {line} | {lines[line - 1]}"] if 1 <= line <= len(lines) else []


def test_id(item: pytest.Item) -> str:
    """The test's node id, without the suffix that pytest-xdist adds for --dist=loadgroup."""
    name = item.nodeid
    for mark in item.iter_markers("xdist_group"):
        group = mark.kwargs.get("name", mark.args[0] if mark.args else "default")
        name = name.removesuffix(f"@{group}")
    return name


test_id.__test__ = False  # type: ignore[attr-defined]


# ---- the baseline


class BaselinePlugin:
    """Compares counts with those of a file. With pytest-xdist only the controller writes it."""

    def __init__(self, config: pytest.Config) -> None:
        self._updating = config.getoption("smemkern_update_baseline")
        self._is_worker = hasattr(config, "workerinput")
        self._file = _file(config)
        self._known = read(self._file, missing_is_empty=self._updating)
        self._found: dict[str, dict[str, int]] = {}

    def compare(self, name: str, counts: dict[str, int]) -> list[str]:
        """What is over the baseline, in lines."""
        known = self._known.get(name)
        if known is None and not self._updating:
            return [
                f"smemkern: {self._file.name} has no counts of this test; add them by "
                "--smemkern-update-baseline"
            ]
        rises = [
            f"smemkern: {count} rose from {known[count]} to {counts[count]} ({self._file.name})"
            for count in COUNTS
            if known and counts[count] > known[count]
        ]
        if rises and self._updating:
            rises.append("  to accept more, remove the test's entry from the file, then update it")
        return rises

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        name = properties.get("smemkern_baseline")
        if report.when == "call" and report.passed and isinstance(name, str):
            found = {count: properties[f"smemkern_{count}"] for count in COUNTS}
            if found != self._known.get(name):
                self._found[name] = {count: int(str(found[count])) for count in COUNTS}

    def pytest_sessionfinish(self) -> None:
        if self._updating and not self._is_worker and self._found:
            write(self._file, self._known | self._found)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._found:
            return
        tests = _many(len(self._found), "test")
        if self._updating:
            text = f"smemkern: counts of {tests} written to {self._file}"
        else:
            text = f"smemkern: counts of {tests} fell; keep them by --smemkern-update-baseline"
        terminalreporter.write_line(text)


def _file(config: pytest.Config) -> Path:
    given = config.getoption("smemkern_baseline")
    if given:
        return Path(config.invocation_params.dir, given)
    named = config.getini("smemkern_baseline")
    if not named:
        raise pytest.UsageError("--smemkern-update-baseline needs --smemkern-baseline FILE")
    return Path(config.inipath.parent if config.inipath else config.rootpath, named)


def read(file: Path, missing_is_empty: bool = False) -> dict[str, dict[str, int]]:
    """The counts of a baseline file, by test."""
    if missing_is_empty and not file.exists():
        return {}
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise pytest.UsageError(
            f"smemkern: {file}: {error.strerror}; make it by --smemkern-update-baseline"
        ) from None
    except ValueError as error:
        raise pytest.UsageError(f"smemkern: {file} is not JSON: {error}") from None
    rows = known.items() if isinstance(known, dict) else [("the file", None)]
    for name, counts in rows:
        whole = isinstance(counts, dict) and all(type(counts.get(n)) is int for n in COUNTS)
        if not whole:
            raise pytest.UsageError(
                f"smemkern: {file}: {name} should be an object with the integers "
                f"{', '.join(COUNTS)}"
            )
    return known


def write(file: Path, counts: dict[str, dict[str, int]]) -> None:
    """Writes a baseline file, with one line per test, so that changes are easy to review."""
    rows = [f"{json.dumps(name)}: {json.dumps(counts[name])}" for name in sorted(counts)]
    text = "{\n" + ",\n".join(f"  {row}" for row in rows) + "\n}\n"
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)
