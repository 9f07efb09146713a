"""Shared by all commands: common options, help texts, output and exit statuses.

A command is a module (trace.py, ...) with

    SUMMARY             one line
    ABOUT               what it prints
    EXAMPLES            pairs of a command line and its output; "..." stands for any text
    NEXT                related commands
    FOUND               the meaning of exit status 1; "" if the command does not use it
    add_arguments(parser)
    run(chosen)         runs the command and returns an Answer

An Answer has the result twice: as document nodes for text and as data for --json. The keys of the
data are documented in docs/command-line.md; tests/test_cli_json.py checks them against that page.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from .._compiler.kernel_file import Missing
from .._render.document import Node
from .._render.terminal import CHOICES, show
from .._reports import formats
from .._reports.findings import Case
from ..errors import CompileError, DriverTooOldError, Error, NoDeviceError

# Exit statuses.
FINE, FOUND, USAGE, MISSING, FAILED, INTERRUPTED, CLOSED = 0, 1, 2, 3, 4, 130, 141

_MEANINGS = {
    USAGE: "invalid command line, file or kernel source",
    MISSING: "this machine lacks something required: a GPU, ncu, NVRTC, a package",
    FAILED: "the run failed",
    INTERRUPTED: "interrupted",
}


_USAGE_ERRORS = (CompileError, OSError, OverflowError, TypeError, ValueError)
_MISSING_ERRORS = (DriverTooOldError, ImportError, NoDeviceError, Missing)


class Answer(NamedTuple):
    """The result of a command."""

    data: dict[str, Any]
    nodes: Sequence[Node]
    status: int = FINE
    cases: Sequence[Case] = ()  # for --format, --sarif and --junit


class Parser(argparse.ArgumentParser):
    """Reports usage errors in one line."""

    def __init__(self, **kw: Any) -> None:
        if sys.version_info >= (3, 14):
            kw["suggest_on_error"] = True
        super().__init__(formatter_class=_Formatter, **kw)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: error: {message}; see {self.prog} --help\n")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str, **kw: Any) -> None:
        super().__init__(prog, max_help_position=26, **kw)


def add_common(parser: argparse.ArgumentParser) -> None:
    """Options that every command has."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON document")
    group.add_argument(
        "--color",
        choices=CHOICES,
        default="auto",
        help="auto: on a terminal, unless NO_COLOR is set (default: auto); needs rich",
    )
    group.add_argument(
        "--traceback",
        action="store_true",
        default=os.environ.get("SMEMKERN_TRACEBACK", "") not in ("", "0"),
        help="print the Python traceback of an error, like SMEMKERN_TRACEBACK=1",
    )


def completed(action: argparse.Action, by: Callable[..., Iterable[str]]) -> None:
    """Sets the function that gives argcomplete the values of an option."""
    action.completer = by  # type: ignore[attr-defined]


def variant_names(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """The variants of the operation on the command line, or of all operations."""
    from .._variants.registry import variants

    op = getattr(parsed_args, "what", None) or getattr(parsed_args, "op", None)
    return list(dict.fromkeys(row.name for row in variants() if op in (row.op, None)))


def device_names(**_: Any) -> list[str]:
    """The values of --device."""
    from .._device.devices import devices

    return [device.name for device in devices()]


def about(text: str) -> str:
    """A command's description, shown above its options in --help."""
    return textwrap.fill(" ".join(text.split()), 78)


def epilog(command: Any, program: str) -> str:
    """Examples, related commands and exit statuses, shown below the options in --help."""
    examples, continued = [], " \\\n"
    for words, output in command.EXAMPLES:
        kept = re.sub(r"(--\S+) (?!--)", "\\1\0", words)  # an option and its value
        lines = textwrap.wrap(f"$ {program} {kept}", 76, subsequent_indent="      ")
        line = continued.join(lines).replace("\0", " ")
        examples.append(textwrap.indent(f"{line}\n{output}".rstrip(), "  "))
    found = {FOUND: command.FOUND} if command.FOUND else {}
    statuses = {FINE: "success", **found, **_MEANINGS}
    parts = {
        "example": "\n\n".join(examples),
        "see also": textwrap.indent(textwrap.fill(command.NEXT, 76), "  "),
        "exit status": "\n".join(f"  {code:>3}  {what}" for code, what in statuses.items()),
    }
    return "\n\n".join(f"{name}:\n{text}" for name, text in parts.items())


def print_answer(name: str, answer: Answer, chosen: argparse.Namespace) -> int:
    """Prints an answer and returns its exit status."""
    form = formats.printed_as(chosen)
    if form == "json":
        document = {"schema": f"smemkern.{name}/1", **plain(answer.data)}
        json.dump(document, sys.stdout, indent=2, allow_nan=False, ensure_ascii=False)
        sys.stdout.write("\n")
    elif form == "text":
        if answer.nodes:
            show(answer.nodes, sys.stdout, chosen.color)
    else:
        formats.show(form, answer.cases)
    sys.stdout.flush()
    formats.write(answer.cases, chosen)
    return answer.status


def status_and_message(error: Exception) -> tuple[int, str]:
    """The exit status for an error, and the message to print."""
    message = str(error).strip()
    if isinstance(error, _MISSING_ERRORS):
        return MISSING, message
    if isinstance(error, TimeoutError):  # an OSError
        return FAILED, message
    if isinstance(error, OSError) and error.filename:
        return USAGE, f"{error.filename}: {error.strerror}"
    if isinstance(error, _USAGE_ERRORS):
        return USAGE, message
    if isinstance(error, Error):
        return FAILED, message
    if isinstance(error, MemoryError):
        return FAILED, message or "out of memory; use smaller shapes"
    kind = type(error).__name__
    return FAILED, f"{kind}: {message}; this is a bug: please report what --traceback shows"


def plain(value: Any) -> Any:
    """Converts to JSON's types: tuples to lists, named tuples to objects, nan and inf to null."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):  # NumPy
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
