"""python -m smemkern: what there is (info), what it does (demo), what is wrong (check)."""

from __future__ import annotations

import argparse
import sys

from . import _check


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m smemkern", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    commands.add_parser("info", help="version, devices, driver and compiler")
    demo = commands.add_parser("demo", help="run and check every variant, and print one table")
    demo.add_argument("--device", help="'emu', 'cuda' or 'cuda:N'; by default the best there is")
    check = commands.add_parser("check", help="look for races and other hazards in a kernel")
    _check.add_arguments(check)
    chosen = parser.parse_args(arguments)

    if chosen.command == "info":
        from ._devices import show_config

        show_config()
        return 0
    if chosen.command == "check":
        return _check.run(chosen)
    from .demo import run

    return run(chosen.device)


if __name__ == "__main__":
    sys.exit(main())
