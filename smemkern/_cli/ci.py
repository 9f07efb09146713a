"""python -m smemkern ci: checks the launches that comments of source files describe.

// smemkern: check --grid 4 --block 256 --arg f32[1000]=random --arg f32[4] --arg i32=1000
"""

from __future__ import annotations

import argparse
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from .._render.document import Node, Paragraph
from .._reports import findings, formats
from . import check, common
from .common import Answer

SUMMARY = "check all launches that comments of source files describe"
ABOUT = """\
Searches files, or folders of .cu, .cuh and .ptx files, for comments such as
"// smemkern: check --grid 4 --block 256 --arg f32[1000]=random". Each is a launch to
check, with the options of check. The options of the comment go on in the comment lines
below it that begin with "--". Reports of all launches go into one file."""
EXAMPLES = (
    (
        "ci src --junit smemkern.xml",
        """src/sum.cu:1:

1. RAW race, shared part[1]: ...
...
src/sum.cu: kernel sum: 1 hazard

1 launch checked, 1 with findings""",
    ),
)
NEXT = "check: its options; docs/ci.md: GitHub Actions, GitLab, pre-commit, pytest."
FOUND = "a launch has hazards, or a factor over its --max-factor"

SUFFIXES = (".cu", ".cuh", ".ptx")
_COMMENT = re.compile(r"^\s*//\s*smemkern:\s*(.*?)\s*$")
_MORE = re.compile(r"^\s*//\s*(--.*?)\s*$")


class Launch(NamedTuple):
    """A comment that describes a launch."""

    file: Path
    line: int
    text: str


class Checked(NamedTuple):
    """A launch and how its check ended."""

    launch: Launch
    status: int
    message: str  # of an error
    case: findings.Case


class _Parser(common.Parser):
    """Reports errors of a comment as exceptions."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files and folders")
    formats.add_arguments(parser)


def run(chosen: argparse.Namespace) -> Answer:
    found = []
    nodes: list[Node] = []
    for file in _files(chosen.paths):
        launches = list(launches_in(file))
        if not launches:
            hint = "add comments such as // smemkern: check --grid 1 --block 32"
            nodes.append(Paragraph(f"{file}: no launches: {hint}"))
        for launch in launches:
            checked, shown = _check(launch)
            found.append(checked)
            nodes += shown
    failed = sum(one.status != common.FINE for one in found)
    many = "1 launch" if len(found) == 1 else f"{len(found)} launches"
    summary = f"{many} checked" + (f", {failed} with findings" if failed else "")
    nodes.append(Paragraph(summary, "bad" if failed else "good"))
    status = max((one.status for one in found), default=common.FINE)
    return Answer({"runs": list(map(_data, found))}, nodes, status, [one.case for one in found])


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            inside = (one for one in path.rglob("*") if one.suffix in SUFFIXES and one.is_file())
            visible = (one for one in inside if not _is_hidden(one.relative_to(path)))
            yield from sorted(visible)
        else:
            yield path


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def launches_in(file: Path) -> Iterator[Launch]:
    """The launches that the comments of a file describe."""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    for at, line in enumerate(lines):
        if comment := _COMMENT.match(line):
            text = [comment[1]]
            for below in lines[at + 1 :]:
                more = _MORE.match(below)
                if not more:
                    break
                text.append(more[1])
            yield Launch(file, at + 1, " ".join(text))


def _check(launch: Launch) -> tuple[Checked, list[Node]]:
    started = time.perf_counter()
    where = f"{launch.file}:{launch.line}"
    try:
        answer = check.run(_options(launch))
    except Exception as error:
        status, message = common.status_and_message(error)
        sources = findings.Sources(launch.file)
        errors = findings.of_error(message, sources)
        if len(errors) == 1 and errors[0].place.line == 1:  # of no line: of the comment
            errors = [errors[0]._replace(place=sources.find(None, launch.line))]
        case = findings.Case(
            launch.text,
            findings.shown(launch.file),
            launch.line,
            errors,
            time.perf_counter() - started,
        )
        return Checked(launch, status, message, case), [Paragraph(f"{where}: {message}", "bad")]
    name = f"{answer.cases[0].name}, line {launch.line}"  # GitLab joins cases of equal names
    case = answer.cases[0]._replace(name=name, line=launch.line)
    return Checked(launch, answer.status, "", case), [Paragraph(f"{where}:"), *answer.nodes]


def _options(launch: Launch) -> argparse.Namespace:
    words = shlex.split(launch.text)
    if words[:1] != ["check"]:
        raise ValueError(f'expected "smemkern: check" and its options, found {launch.text!r}')
    parser = _Parser(prog="check", add_help=False, allow_abbrev=False)
    check.add_arguments(parser)
    chosen = parser.parse_args([str(launch.file), *words[1:]])
    if chosen.sarif or chosen.junit or chosen.format != "text":
        raise ValueError("--format, --sarif and --junit belong to the command line of ci")
    return chosen


def _data(checked: Checked) -> dict[str, Any]:
    return {
        "file": str(checked.launch.file),
        "line": checked.launch.line,
        "command": checked.launch.text,
        "status": checked.status,
        "error": checked.message or None,
        "findings": [
            {
                "rule": one.rule,
                "level": one.level,
                "message": one.message,
                "file": one.place.file,
                "line": one.place.line,
            }
            for one in checked.case.findings
        ],
    }
