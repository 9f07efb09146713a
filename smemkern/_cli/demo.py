"""python -m smemkern demo: runs and checks every variant."""

from __future__ import annotations

import argparse

from .common import FINE, Answer, completed, device_names
from .common import FOUND as WRONG

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
    from ..demo import demonstrate

    shown = demonstrate(chosen.device)
    data = {
        "device": shown.device,
        "lines": [line.data() for line in shown.lines],
        "left_out": [
            {"op": row.op, "variant": row.name, "reason": reason} for row, reason in shown.left_out
        ],
        "correct": not shown.wrong,
    }
    return Answer(data, shown._nodes(), WRONG if shown.wrong else FINE)
