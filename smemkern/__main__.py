"""python -m smemkern: the shared-memory laboratory from the command line.

A command is a module, as _cli/common.py describes it, and an entry of COMMANDS.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from pathlib import Path

from . import __version__
from ._cli import (
    banks,
    bench,
    check,
    ci,
    common,
    completion,
    debug,
    demo,
    info,
    judge,
    occupancy,
    profile,
    run,
    share,
    trace,
)
from ._reports import formats

COMMANDS = {
    "info": info,
    "demo": demo,
    "bench": bench,
    "trace": trace,
    "banks": banks,
    "occupancy": occupancy,
    "profile": profile,
    "check": check,
    "ci": ci,
    "run": run,
    "judge": judge,
    "share": share,
    "debug": debug,
    "completion": completion,
}


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    program = "smemkern" if Path(sys.argv[0]).name == "smemkern" else "python -m smemkern"
    top = common.Parser(
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
            description=common.about(command.ABOUT),
            epilog=common.epilog(command, program),
        )
        command.add_arguments(own)
        common.add_common(own)
        own.set_defaults(parser=own)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return common.INTERRUPTED
    except BrokenPipeError:  # such as `| head`; redirect Python's final flush to /dev/null
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return common.CLOSED


def _run(arguments: list[str] | None) -> int:
    top = parser()
    completion.complete(top)
    try:
        chosen, rest = top.parse_known_args(arguments)
        if rest:
            chosen.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    except SystemExit as end:  # --help, --version, or a usage error
        return int(end.code or 0)
    try:
        with formats.quiet(chosen):
            answer = COMMANDS[chosen.command].run(chosen)
        return common.print_answer(chosen.command, answer, chosen)
    except BrokenPipeError:
        raise
    except Exception as error:
        if chosen.traceback:
            traceback.print_exc()
        status, message = common.status_and_message(error)
        shown = formats.quoted(message, chosen)
        print(f"{top.prog} {chosen.command}: error: {shown}", file=sys.stderr)
        _report_error(message, chosen)
        return status


def _report_error(message: str, chosen: argparse.Namespace) -> None:
    """Adds the error to the reports, unless writing a report is what failed."""
    with contextlib.suppress(OSError):
        formats.fail(message, chosen.command, chosen)


if __name__ == "__main__":
    sys.exit(main())
