"""python -m smemkern demo: runs and checks every variant."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from .._render.document import Facts, Heading, Table
from .._render.progress import over
from .._render.table import Note
from .._render.terminal import growing, show
from .._reports import formats
from .common import FINE, Answer, completed, device_names
from .common import FOUND as WRONG

if TYPE_CHECKING:
    from .._variants.registry import Variant
    from ..demo import Demo

SUMMARY = "run and check every variant, and print their costs"
ABOUT = """\
Runs every variant of gemm, transpose and probe, checks the results against NumPy in
float64, and prints their costs: time and rate on the device, shared-memory requests
and wavefronts as counted by the emulator, the factor by which bank conflicts multiply
the wavefronts, and the error relative to the bound of rounding errors (at most 1 is
correct). Takes about ten seconds on the emulator."""
EXAMPLES = (
    (
        "demo --device emu",
        """\
device emu (PTX emulator on ... CPU threads): all variants, run and checked
...
gemm                 ms  GFLOP/s  requests  wavefronts  factor  error  ...
...
tiled               ...            1081344     1081344    1.00  ...
conflicted          ...            1081344    17842176   16.50  ...
padded              ...            1081344     1081344    1.00  ...
...""",
    ),
)
NEXT = (
    "trace gemm --variant conflicted --annotate: the line whose 1081344 requests cost 17842176 "
    "wavefronts; bench: more shapes on a GPU."
)
FOUND = "a result is wrong"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    device = parser.add_argument(
        "--device",
        metavar="NAME",
        help="'emu', 'cuda' or 'cuda:1' (default: the first GPU, or else emu)",
    )
    completed(device, device_names)


def run(chosen: argparse.Namespace) -> Answer:
    from .. import demo

    shown, runnable = demo.prepare(chosen.device)
    of_text = formats.printed_as(chosen) == "text"
    if of_text:
        show(shown.about(), sys.stdout, chosen.color)
        _print_lines(shown, runnable, chosen.color)
    else:
        rows = over(runnable, "demo", "variants")
        shown.lines.extend(demo.RUN[row.op](row, shown.device) for row in rows)
    data = {
        "device": shown.device,
        "lines": [line.data() for line in shown.lines],
        "left_out": [
            {"op": row.op, "variant": row.name, "reason": reason} for row, reason in shown.left_out
        ],
        "correct": not shown.wrong,
    }
    return Answer(data, shown.end() if of_text else (), WRONG if shown.wrong else FINE)


def _print_lines(shown: Demo, runnable: list[Variant], colour: str) -> None:
    """Runs the variants, and prints the line of each when it has run."""
    from .. import demo

    for op in dict.fromkeys(row.op for row in runnable):
        rows = [row for row in runnable if row.op == op]
        sys.stdout.write("\n")
        table = Table(demo.header(rows[0]), [demo.widest(rows)])
        printed, has_notes = growing(table, sys.stdout, colour)
        for row in rows:
            line = demo.RUN[op](row, shown.device)
            shown.lines.append(line)
            printed(line.cells())
        if not has_notes:
            sys.stdout.write("\n")
            notes = Facts([(row.name, Note(row.summary, "dim")) for row in rows])
            show([Heading(f"{op}: {table.header[-1]}"), notes], sys.stdout, colour)
    sys.stdout.write("\n")
