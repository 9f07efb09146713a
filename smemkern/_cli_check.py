"""python -m smemkern check: hazards of a kernel in a file."""

from __future__ import annotations

from typing import Any

from ._check import add_arguments, run

__all__ = ["add_parser", "run"]


def add_parser(commands: Any) -> None:
    add_arguments(commands.add_parser("check", help="look for races and other hazards in a kernel"))
