"""python -m smemkern demo: every variant, run and checked."""

from __future__ import annotations

import argparse

from ._cli import FINE, Answer, completed, device_names
from ._cli import FOUND as WRONG

SUMMARY = "run and check every variant, and print one table"
ABOUT = """\
Runs every variant through a real product, transpose or probe, checks it against
NumPy in float64, and prints what it cost: time and rate on the device, requests and
wavefronts of shared memory as the emulator counts them, the factor by which bank
conflicts multiply these, and the error (1 is the most that rounding can do).
About half a minute on the emulator."""
EXAMPLES = (
    (
        "demo --device emu",
        """\
device emu (PTX emulator on ... CPU threads): every variant, run and checked
...
gemm                 ms  GFLOP/s  requests  wavefronts  factor   error  what it is
...
tiled               ...            1081344     1081344    1.00  ...
conflicted          ...            1081344    17842176   16.50  ...
padded              ...            1081344     1081344    1.00  ...
...""",
    ),
)
NEXT = (
    "trace gemm --variant conflicted --annotate: the line that makes 1081344 requests cost "
    "17842176 wavefronts; bench, for more shapes on a GPU."
)
FOUND = "a result was wrong"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    device = parser.add_argument(
        "--device", metavar="NAME", help="'emu', 'cuda' or 'cuda:1'; by default the best there is"
    )
    completed(device, device_names)


def run(chosen: argparse.Namespace) -> Answer:
    from .demo import demonstrate

    shown = demonstrate(chosen.device)
    data = {
        "device": shown.device,
        "lines": [line.data() for line in shown.lines],
        "left_out": [
            {"op": row.op, "variant": row.name, "reason": reason} for row, reason in shown.left_out
        ],
        "correct": not shown.wrong,
    }
    return Answer(data, shown._blocks(), WRONG if shown.wrong else FINE)
