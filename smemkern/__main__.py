"""python -m smemkern: the shared-memory laboratory from the command line.

A command is a module with add_parser(commands) and run(chosen), and a row of the table.
"""

from __future__ import annotations

import argparse
import sys

from . import (
    _cli_banks,
    _cli_bench,
    _cli_check,
    _cli_demo,
    _cli_info,
    _cli_occupancy,
    _cli_profile,
    _cli_trace,
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
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m smemkern", description="The shared-memory laboratory for CUDA."
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for command in COMMANDS.values():
        command.add_parser(commands)
    chosen = parser.parse_args(arguments)
    try:
        return COMMANDS[chosen.command].run(chosen)
    except (TypeError, ValueError) as wrong:
        parser.error(str(wrong))


if __name__ == "__main__":
    sys.exit(main())
