"""python -m smemkern demo: every variant, run and checked."""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(commands: Any) -> None:
    demo = commands.add_parser("demo", help="run and check every variant, and print one table")
    demo.add_argument("--device", help="'emu', 'cuda' or 'cuda:N'; by default the best there is")


def run(chosen: argparse.Namespace) -> int:
    from .demo import run

    return run(chosen.device)
