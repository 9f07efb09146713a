"""python -m smemkern: what there is (info), what it does (demo), and the models."""

from __future__ import annotations

import argparse
import sys

from . import _cli_banks, _cli_occupancy


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m smemkern", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    commands.add_parser("info", help="version, devices, driver and compiler")
    demo = commands.add_parser("demo", help="run and check every variant, and print one table")
    demo.add_argument("--device", help="'emu', 'cuda' or 'cuda:N'; by default the best there is")
    _cli_banks.add_parser(commands)
    _cli_occupancy.add_parser(commands)
    chosen = parser.parse_args(arguments)

    if "run" in chosen:
        try:
            return int(chosen.run(chosen))
        except (TypeError, ValueError) as wrong:
            parser.error(str(wrong))

    if chosen.command == "info":
        from ._devices import show_config

        show_config()
        return 0
    from .demo import run

    return run(chosen.device)


if __name__ == "__main__":
    sys.exit(main())
