"""Reports for machines: SARIF 2.1.0, JUnit XML and GitHub's workflow commands.

The texts are untrusted: sources choose names, files and lines. Each format escapes them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO, cast
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from .._core import __version__
from .findings import RULES, Case, Finding, Place, Sources, of_error, shown

FORMATS = ("text", "json", "sarif", "junit", "github")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of commands that have reports."""
    group = parser.add_argument_group("reports")
    group.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        metavar="NAME",
        help="what to print: text, json, sarif, junit, or github (annotations of GitHub Actions)",
    )
    group.add_argument("--sarif", metavar="FILE", type=Path, help="also write SARIF 2.1.0")
    group.add_argument("--junit", metavar="FILE", type=Path, help="also write JUnit XML")


def printed_as(chosen: argparse.Namespace) -> str:
    """The format of a command's output."""
    return "json" if chosen.json else getattr(chosen, "format", "text")


def write(cases: Sequence[Case], chosen: argparse.Namespace) -> None:
    """Writes the files of --sarif and --junit."""
    for name, form in (("sarif", sarif), ("junit", junit)):
        file = getattr(chosen, name, None)
        if file is not None:
            file.write_text(form(cases), encoding="utf-8")


def fail(message: str, name: str, chosen: argparse.Namespace) -> None:
    """Reports an error that ended a command, in the formats that were asked for."""
    if not hasattr(chosen, "format"):
        return
    file = Path(getattr(chosen, "file", None) or getattr(chosen, "what", "") or ".")
    findings = of_error(message, Sources(file, getattr(chosen, "option", [])))
    case = Case(f"{name} {file.name}", shown(file), 1, findings)
    if printed_as(chosen) not in ("text", "json"):
        show(chosen.format, [case])
    write([case], chosen)


def quiet(chosen: argparse.Namespace) -> contextlib.AbstractContextManager[Any]:
    """While this is open, what kernels print is kept out of a report."""
    return contextlib.nullcontext() if printed_as(chosen) == "text" else quoting()


def quoting() -> contextlib.AbstractContextManager[Any]:
    """While this is open, what kernels print goes to stderr, each line marked."""
    return contextlib.redirect_stdout(cast(TextIO, Quoted()))


def quoted(message: str, chosen: argparse.Namespace) -> str:
    """A message for stderr, where GitHub looks for workflow commands at the beginning of lines.

    A compiler's message quotes lines of the source.
    """
    return re.sub(r"[\n\r]+", "\n| ", message) if printed_as(chosen) == "github" else message


def show(form: str, cases: Sequence[Case]) -> None:
    """Prints a report in one of the formats "sarif", "junit" and "github"."""
    text = {"sarif": sarif, "junit": junit, "github": github}[form](cases)
    sys.stdout.write(text.encode("utf-8", "replace").decode("utf-8"))


class Quoted:
    """A stream for what kernels print while a report is: to stderr, each line marked.

    A line that a kernel prints is then neither part of the report nor a workflow command. Lines
    after the first 100 are dropped.
    """

    def __init__(self) -> None:
        self._at_start = True
        self._lines = 0

    def write(self, text: str) -> int:
        for line in re.findall(r"[^\n\r]+|[\n\r]", text):
            if self._lines < 100:
                if self._at_start and line not in "\n\r":
                    sys.stderr.write("printf: ")
                sys.stderr.write("\n" if line == "\r" else line)
            self._at_start = line in "\n\r"
            self._lines += self._at_start
            if self._lines == 100 and self._at_start:
                sys.stderr.write("printf: further lines are not shown\n")
                self._lines += 1
        return len(text)

    def flush(self) -> None:
        sys.stderr.flush()


# ---- SARIF


def sarif(cases: Sequence[Case]) -> str:
    """SARIF 2.1.0, one run."""
    findings = [finding for case in cases for finding in case.findings]
    used = sorted({finding.rule for finding in findings})
    driver = {
        "name": "smemkern",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [
            {
                "id": rule,
                "shortDescription": {"text": RULES.get(rule, rule)},
                "fullDescription": {"text": RULES.get(rule, rule)},
            }
            for rule in used
        ],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [
            {"executionSuccessful": all(finding.rule != "error" for finding in findings)}
        ],
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(finding, used) for finding in findings],
    }
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def _sarif_result(finding: Finding, rules: Sequence[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": finding.level,
        "message": {"text": finding.message},
        "locations": [_sarif_location(finding.place)],
    }
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, **_sarif_location(place), "message": {"text": place.label or "see"}}
            for number, place in enumerate(finding.related, 1)
        ]
    return result


def _sarif_location(place: Place) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(place.file)},
            "region": {"startLine": max(place.line, 1)},
        }
    }


def _uri(path: str) -> str:
    quoted = quote(path, safe="/", errors="surrogatepass")
    return f"file://{quoted}" if path.startswith("/") else quoted


# ---- JUnit


def junit(cases: Sequence[Case]) -> str:
    """JUnit XML, in the form that pytest writes and CI systems read."""
    broken = [case for case in cases if _is_broken(case)]
    failed = [case for case in cases if case.errors and case not in broken]
    counts = (
        f'tests="{len(cases)}" failures="{len(failed)}" errors="{len(broken)}" skipped="0" '
        f'time="{sum(case.seconds for case in cases):.3f}"'
    )
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuites name="smemkern" {counts}>',
        f'<testsuite name="smemkern" {counts}>',
        *(_junit_case(case) for case in cases),
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _is_broken(case: Case) -> bool:
    return any(finding.rule == "error" for finding in case.errors)


def _junit_case(case: Case) -> str:
    head = (
        f"<testcase classname={_attribute(case.file)} name={_attribute(case.name)} "
        f'file={_attribute(case.file)} line="{case.line}" time="{case.seconds:.3f}"'
    )
    notes = [_line(finding) for finding in case.findings if finding.level != "error"]
    parts = []
    if case.errors:
        tag = "error" if _is_broken(case) else "failure"
        first = case.errors[0]
        more = f" (and {len(case.errors) - 1} more)" if len(case.errors) > 1 else ""
        body = "\n".join(_line(finding) for finding in case.errors)
        message = _attribute(first.message.partition("\n")[0] + more)
        parts.append(f"<{tag} type={_attribute(first.rule)} message={message}>{_xml(body)}</{tag}>")
    if notes:
        notes_text = "\n".join(notes)
        parts.append(f"<system-out>{_xml(notes_text)}</system-out>")
    return f"{head}>{''.join(parts)}</testcase>" if parts else f"{head}/>"


def _line(finding: Finding) -> str:
    place = finding.place
    return f"{place.file}:{place.line}: {finding.rule}: {finding.message}"


# XML 1.0 has no form for these characters, escaped or not.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))


def _attribute(text: str) -> str:
    entities = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
    return quoteattr(_NOT_XML.sub("\ufffd", text), entities)


# ---- GitHub


def github(cases: Sequence[Case]) -> str:
    """Workflow commands, which GitHub Actions shows at the lines of a change."""
    lines = [_command(finding) for case in cases for finding in case.findings]
    failed = sum(bool(case.errors) for case in cases)
    many = "1 kernel" if len(cases) == 1 else f"{len(cases)} kernels"
    found = f"{failed} with findings" if failed else "no findings"
    return "\n".join([*lines, f"smemkern: {many}, {found}"]) + "\n"


def _command(finding: Finding) -> str:
    level = {"note": "notice"}.get(finding.level, finding.level)
    more = "".join(f"\n{_where(place)}" for place in finding.related)
    properties = {
        "file": finding.place.file,
        "line": str(finding.place.line),
        "title": f"smemkern: {finding.rule}",
    }
    shown = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {shown}::{_data(finding.message + more)}"


def _where(place: Place) -> str:
    return f"{place.file}:{place.line}" + (f": {place.label}" if place.label else "")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
