"""python -m smemkern: the shared-memory laboratory from the command line.

A command is a module, as described in _cli.py, and an entry of COMMANDS.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from pathlib import Path

from . import (
    __version__,
    _cli,
    _cli_banks,
    _cli_bench,
    _cli_check,
    _cli_ci,
    _cli_completion,
    _cli_demo,
    _cli_info,
    _cli_judge,
    _cli_occupancy,
    _cli_profile,
    _cli_trace,
    _reports,
)
from .errors import (
    CompileError,
    DriverTooOldError,
    Error,
    NoDeviceError,
)

COMMANDS = {
    "info": _cli_info,
    "demo": _cli_demo,
    "bench": _cli_bench,
    "trace": _cli_trace,
    "banks": _cli_banks,
    "occupancy": _cli_occupancy,
    "profile": _cli_profile,
    "check": _cli_check,
    "ci": _cli_ci,
    "judge": _cli_judge,
    "completion": _cli_completion,
}

_USAGE = (CompileError, OSError, OverflowError, TypeError, ValueError)
_MISSING = (DriverTooOldError, ImportError, NoDeviceError, _cli.Missing)


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    program = "smemkern" if Path(sys.argv[0]).name == "smemkern" else "python -m smemkern"
    top = _cli.Parser(
        prog=program,
        usage="%(prog)s [-h] [--version] COMMAND ...",
        description="The shared-memory laboratory for CUDA: how kernels use shared memory,\n"
        "with or without a GPU.\n\ncommands:\n"
        + "\n".join(f"  {name:<12}{command.SUMMARY}" for name, command in COMMANDS.items()),
        epilog=f"Begin with: {program} demo\n{program} COMMAND --help describes a command.",
    )
    top.add_argument("--version", action="version", version=f"smemkern {__version__}")
    commands = top.add_subparsers(
        dest="command", metavar="COMMAND", required=True, help=argparse.SUPPRESS
    )
    for name, command in COMMANDS.items():
        own = commands.add_parser(
            name,
            prog=f"{program} {name}",
            help=command.SUMMARY,
            description=_cli.about(command.ABOUT),
            epilog=_cli.epilog(command, program),
        )
        command.add_arguments(own)
        _cli.add_common(own)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _cli.INTERRUPTED
    except BrokenPipeError:  # such as `| head`; redirect Python's final flush to /dev/null
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _cli.CLOSED


def _run(arguments: list[str] | None) -> int:
    top = parser()
    _cli_completion.complete(top)
    try:
        chosen = top.parse_args(arguments)
    except SystemExit as end:  # --help, --version, or a usage error
        return int(end.code or 0)
    try:
        with _reports.quiet(chosen):
            answer = COMMANDS[chosen.command].run(chosen)
        return _cli.print_answer(chosen.command, answer, chosen)
    except BrokenPipeError:
        raise
    except Exception as error:
        if chosen.traceback:
            traceback.print_exc()
        status, message = _status_and_message(error)
        shown = _reports.quoted(message, chosen)
        print(f"{top.prog} {chosen.command}: error: {shown}", file=sys.stderr)
        _report_error(message, chosen)
        return status


def _report_error(message: str, chosen: argparse.Namespace) -> None:
    """Adds the error to the reports, unless writing a report is what failed."""
    with contextlib.suppress(OSError):
        _reports.fail(message, chosen.command, chosen)


def _status_and_message(error: Exception) -> tuple[int, str]:
    """The exit status for an error, and the message to print."""
    message = str(error).strip()
    if isinstance(error, _MISSING):
        return _cli.MISSING, message
    if isinstance(error, TimeoutError):  # an OSError
        return _cli.FAILED, message
    if isinstance(error, OSError) and error.filename:
        return _cli.USAGE, f"{error.filename}: {error.strerror}"
    if isinstance(error, _USAGE):
        return _cli.USAGE, message
    if isinstance(error, Error):
        return _cli.FAILED, message
    if isinstance(error, MemoryError):
        return _cli.FAILED, message or "out of memory; use smaller shapes"
    kind = type(error).__name__
    return _cli.FAILED, f"{kind}: {message}; this is a bug: please report what --traceback shows"


if __name__ == "__main__":
    sys.exit(main())
