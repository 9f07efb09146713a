"""python -m smemkern profile: the GPU's counters next to the predicted ones."""

from __future__ import annotations

import argparse

from . import calls, common
from .common import Answer

SUMMARY = "run Nsight Compute, and compare with the trace"
ABOUT = """\
Runs a call on the GPU under Nsight Compute's ncu and on the emulator, and prints the
counters of both side by side, for the whole call and by source line. "=" means that
the prediction is exact. Needs a GPU, ncu, and permission to read counters."""
EXAMPLES = (
    (
        "profile gemm --variant conflicted --shape 256 256 256",
        """\
gemm_conflicted

what                  as written  predicted  measured     metric
shared load requests     1048576     540672    540672  =  smsp__sass_inst_...
...""",
    ),
)
NEXT = (
    "docs/exactness.md: which counters always agree, and why others differ; trace: the same "
    "predictions without a GPU."
)
FOUND = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    calls.add_call(parser)


def run(chosen: argparse.Namespace) -> Answer:
    from .. import _core
    from .._performance import ncu
    from .._performance.profile import profile

    what, args, keywords = calls.call_of(chosen)
    try:
        ncu.find_ncu()
    except _core.Error as error:
        raise common.Missing(str(error)) from None
    found = profile(what, *args, **keywords)
    data = {
        "kernel": found.trace.launch.kernel,
        "command": found.command,
        "counters": [{**row._asdict(), "equal": row.equal} for row in found.rows],
        "lines": [{**line._asdict(), "equal": line.equal} for line in found.lines],
    }
    return Answer(data, found._nodes())
