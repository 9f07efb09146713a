"""python -m smemkern check: run a kernel of a file on the emulator and say what is wrong with it.

_argspec.py has the forms of --arg.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import _cli, _cli_trace
from ._blocks import Block, Listing, Paragraph
from ._cli import Answer
from ._hazards import Hazard, place
from ._observe import trace
from ._table import Cell

SUMMARY = "look for races and other hazards in a kernel"
ABOUT = """\
Runs a kernel of a file on the emulator and looks for races, reads of what nobody
wrote, accesses out of bounds, barriers that not everybody reaches and copies that
nobody waits for. Each finding quotes the lines that are wrong together. One run shows
what that run does: choose a shape with edges."""
EXAMPLES = (
    (
        "check sum.cu --grid 4 --block 256 --arg 'f32[1000]=random' --arg 'f32[4]' --arg i32=1000",
        """\
1. RAW race, shared part[1]: kernel.cu:9 reads it in block (0, 0, 0) thread (0, 0, 0), ...
              kernel.cu:9 |             part[threadIdx.x] += part[threadIdx.x + half];

sum.cu: kernel sum: 1 hazard""",
    ),
)
NEXT = (
    "docs/hazards.md: every kind, and how to mend it; trace, for what the mended kernel costs; in "
    "Python, Kernel(..., check=True) raises HazardError."
)
FOUND = "hazards were found"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="CUDA C++ (.cu) or PTX (.ptx)")
    _cli_trace.add_kernel_arguments(parser, required=True)
    parser.add_argument(
        "--equal-writes", action="store_true", help="report races that write equal values, too"
    )


def run(chosen: argparse.Namespace) -> Answer:
    kernel, args, keywords = _cli_trace.kernel_call(chosen.file, chosen)
    found = trace(kernel, *args, equal_writes=chosen.equal_writes, progress=True, **keywords)
    blocks: list[Block] = []
    for number, hazard in enumerate(found.hazards, 1):
        message = Cell(f"{number}. {hazard.message}", "bad")
        blocks.append(Listing([message, *quote(hazard, chosen.file)], indent=3))
    many = "1 hazard" if len(found.hazards) == 1 else f"{len(found.hazards) or 'no'} hazards"
    ended = " (the run ended there)" if found.incomplete else ""
    blocks.append(
        Paragraph(
            f"{chosen.file}: kernel {kernel.name}: {many}{ended}",
            "bad" if found.hazards else "good",
        )
    )
    data = {
        "file": str(chosen.file),
        "kernel": kernel.name,
        "incomplete": found.incomplete,
        "hazards": [_cli_trace.hazard_data(hazard) for hazard in found.hazards],
    }
    return Answer(data, blocks, _cli.FOUND if found.hazards else _cli.FINE)


def quote(hazard: Hazard, file: Path) -> list[str]:
    """The lines of the source that a hazard is about."""
    quoted = []
    pairs = {(hazard.file, hazard.line), (hazard.other_file, hazard.other_line)}
    for name, line in sorted(pairs, key=str):
        text = _line(name, line, file) if line else None
        if text is not None:
            quoted.append(f"     {place(name, line):>20} | {text}")
    return quoted


def _line(name: str | None, line: int, file: Path) -> str | None:
    """NVRTC calls the text of a file kernel.cu."""
    own = name is None or Path(name).name in ("kernel.cu", file.name)
    try:
        lines = (file if own else Path(str(name))).read_text().splitlines()
    except OSError:
        return None
    return lines[line - 1] if line <= len(lines) else None
