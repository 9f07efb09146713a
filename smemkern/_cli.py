"""What the commands share: their options, their help, how they answer, and how they end.

A command is a module (_cli_trace.py, ...) with

    SUMMARY             one line
    ABOUT               what it shows
    EXAMPLES            pairs of a command line and what it prints; "..." stands for what varies
    NEXT                what to look at then
    FOUND               what exit status 1 means of it; "" where it has none
    add_arguments(parser)
    run(chosen)         does it, and returns an Answer

An answer is the same thing twice: blocks for people and data for machines. docs/command-line.md has
the keys of each command's data; tests/test_cli_json.py holds the commands to that page.
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

from ._blocks import Block
from ._terminal import CHOICES, show

FINE, FOUND, USAGE, NOTHING, FAILED, INTERRUPTED, CLOSED = 0, 1, 2, 3, 4, 130, 141

_ENDS = {
    USAGE: "the command line, a file or a kernel's source was not understood",
    NOTHING: "this machine lacks what is needed: a GPU, ncu, NVRTC, a package",
    FAILED: "the run failed",
    INTERRUPTED: "interrupted",
}


class Answer(NamedTuple):
    """What a command found."""

    data: dict[str, Any]
    blocks: Sequence[Block]
    status: int = FINE


class Missing(Exception):
    """This machine lacks something; the message says what, and what to do."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

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
        help="auto: on a terminal, and not if NO_COLOR is set (auto); needs rich",
    )
    group.add_argument(
        "--traceback",
        action="store_true",
        default=os.environ.get("SMEMKERN_TRACEBACK", "") not in ("", "0"),
        help="show where an error came from; so does SMEMKERN_TRACEBACK=1",
    )


def completed(action: argparse.Action, by: Callable[..., Iterable[str]]) -> None:
    """Let argcomplete ask a function for the values that an option may have."""
    action.completer = by  # type: ignore[attr-defined]


def variant_names(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Of the operation that the command line has named, or of all."""
    from ._registry import variants

    op = getattr(parsed_args, "what", None) or getattr(parsed_args, "op", None)
    return list(dict.fromkeys(row.name for row in variants() if op in (row.op, None)))


def device_names(**_: Any) -> list[str]:
    """What --device may be."""
    from ._devices import devices

    return [device.name for device in devices()]


def about(text: str) -> str:
    """The upper half of a command's help."""
    return textwrap.fill(" ".join(text.split()), 78)


def epilog(command: Any, program: str) -> str:
    """The lower half."""
    examples, continued = [], " \\\n"
    for words, output in command.EXAMPLES:
        kept = re.sub(r"(--\S+) (?!--)", "\\1\0", words)  # an option and its value
        lines = textwrap.wrap(f"$ {program} {kept}", 76, subsequent_indent="      ")
        line = continued.join(lines).replace("\0", " ")
        examples.append(textwrap.indent(f"{line}\n{output}".rstrip(), "  "))
    ends = {FINE: "fine", **({FOUND: command.FOUND} if command.FOUND else {}), **_ENDS}
    parts = {
        "example": "\n\n".join(examples),
        "look at next": textwrap.indent(textwrap.fill(command.NEXT, 76), "  "),
        "exit status": "\n".join(f"  {code:>3}  {what}" for code, what in ends.items()),
    }
    return "\n\n".join(f"{name}:\n{text}" for name, text in parts.items())


def give(name: str, answer: Answer, chosen: argparse.Namespace) -> int:
    """Print an answer; its exit status."""
    if chosen.json:
        document = {"schema": f"smemkern.{name}/1", **plain(answer.data)}
        json.dump(document, sys.stdout, indent=2, allow_nan=False, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        show(answer.blocks, sys.stdout, chosen.color)
    sys.stdout.flush()
    return answer.status


def plain(value: Any) -> Any:
    """As JSON has it: tuples are lists, named tuples and mappings objects, nan and inf null."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):  # of NumPy
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
