"""python -m smemkern check: run a kernel of a file on the emulator and say what is wrong with it.

    python -m smemkern check sum.cu --kernel sum --grid 4 --block 256 \\
        --arg 'f32[1024]=random' --arg 'f32[4]' --arg i32=1024

_argspec.py has the forms of --arg. Exit status: 0 nothing found, 1 hazards, 2 the command or the
kernel could not be understood.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from . import _cli_trace, _core
from ._hazards import Hazard, place
from ._observe import trace

CLEAN, FOUND, USAGE = 0, 1, 2


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("check", help="look for races and other hazards in a kernel")
    parser.add_argument("file", type=Path, help="CUDA C++ (.cu) or PTX (.ptx)")
    _cli_trace.add_kernel_arguments(parser, required=True)
    parser.add_argument(
        "--equal-writes", action="store_true", help="report races that write equal values, too"
    )


def run(chosen: argparse.Namespace) -> int:
    """The command; returns its exit status."""
    try:
        kernel, args, keywords = _cli_trace.kernel_call(chosen.file, chosen)
        found = trace(kernel, *args, equal_writes=chosen.equal_writes, **keywords)
    except (OSError, ValueError, TypeError, OverflowError, _core.Error) as error:
        print(f"smemkern check: {error}", file=sys.stderr)
        return USAGE
    for number, hazard in enumerate(found.hazards, 1):
        print(f"{number}. {hazard.message}")
        print(quote(hazard, chosen.file))
    if found.hazards:
        ended = " (the run ended there)" if found.incomplete else ""
        many = "1 hazard" if len(found.hazards) == 1 else f"{len(found.hazards)} hazards"
        print(f"{chosen.file}: kernel {kernel.name}: {many}{ended}")
        return FOUND
    print(f"{chosen.file}: kernel {kernel.name}: no hazards")
    return CLEAN


def quote(hazard: Hazard, file: Path) -> str:
    """The lines of the source that a hazard is about."""
    quoted = []
    pairs = {(hazard.file, hazard.line), (hazard.other_file, hazard.other_line)}
    for name, line in sorted(pairs, key=str):
        text = _line(name, line, file) if line else None
        if text is not None:
            quoted.append(f"     {place(name, line):>20} | {text}")
    return "\n".join(quoted) + "\n"


def _line(name: str | None, line: int, file: Path) -> str | None:
    """NVRTC calls the text of a file kernel.cu."""
    own = name is None or Path(name).name in ("kernel.cu", file.name)
    try:
        lines = (file if own else Path(str(name))).read_text().splitlines()
    except OSError:
        return None
    return lines[line - 1] if line <= len(lines) else None
