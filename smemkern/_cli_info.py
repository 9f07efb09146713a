"""python -m smemkern info: what this installation has."""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(commands: Any) -> None:
    commands.add_parser("info", help="version, devices, driver and compiler")


def run(chosen: argparse.Namespace) -> int:
    from ._devices import show_config

    show_config()
    return 0
