"""python -m smemkern check: looks for hazards in a kernel of a file, on the emulator.

_trace/argspec.py describes the forms of --arg.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from .._compiler.demangle import demangled
from .._core import Kernel
from .._render.document import Listing, Node, Paragraph
from .._render.table import Cell
from .._reports import formats
from .._trace.hazards import Hazard, place
from .._trace.observe import trace
from . import calls, common, results
from .common import Answer

SUMMARY = "look for races and other hazards in a kernel"
ABOUT = """\
Runs a kernel of a file on the emulator and looks for races, uninitialised reads,
accesses out of bounds, divergent barriers and asynchronous copies without a wait. Each
hazard quotes the conflicting source lines. A run reveals only hazards of the code that
it executes, so choose a shape with partial tiles."""
EXAMPLES = (
    (
        "check sum.cu --grid 4 --block 256 --arg 'f32[1000]=random' --arg 'f32[4]' --arg i32=1000",
        """\
1. RAW race, shared part[1]: sum.cu:9 reads it in block (0, 0, 0)
   thread (0, 0, 0), ...
   sum.cu:9 |             part[threadIdx.x] += part[threadIdx.x + half];
   cure: a __syncthreads() that all threads of the block reach, ...

sum.cu: kernel sum: 1 hazard""",
    ),
)
NEXT = (
    "docs/hazards.md: every kind of hazard, and how to fix it; trace: the cost of the fixed "
    "kernel. In Python, Kernel(..., check=True) raises HazardError."
)
FOUND = "hazards were found, or a factor is over --max-factor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="CUDA C++ (.cu) or PTX (.ptx)")
    calls.add_kernel_arguments(parser, required=True)
    parser.add_argument(
        "--equal-writes", action="store_true", help="also report races that write equal values"
    )
    parser.add_argument(
        "--no-optimise",
        action="store_true",
        help="like -G: the optimiser removes accesses that race",
    )
    results.add_limit(parser)
    formats.add_arguments(parser)


def run(chosen: argparse.Namespace) -> Answer:
    if chosen.no_optimise:
        if chosen.file.suffix == ".ptx":
            raise ValueError("--no-optimise needs CUDA C++; a .ptx file is run as it is")
        chosen.debug = True
    started = time.perf_counter()
    kernel, args, keywords = calls.kernel_call(chosen.file, chosen)
    found = trace(kernel, *args, equal_writes=chosen.equal_writes, progress=True, **keywords)
    nodes: list[Node] = [Paragraph(f"note: {row.message}") for row in found.benign]
    for number, hazard in enumerate(found.hazards, 1):
        message = Cell(f"{number}. {hazard.message}", "bad")
        cure = [f"   cure: {hazard.cure}"] if hazard.cure else []
        nodes.append(Listing([message, *quote(hazard, kernel), *cure], indent=3))
    nodes += results.limit_nodes(found, chosen.max_factor)
    many = "1 hazard" if len(found.hazards) == 1 else f"{len(found.hazards) or 'no'} hazards"
    ended = " (a fault ended the run)" if found.incomplete else ""
    nodes.append(
        Paragraph(
            f"{chosen.file}: kernel {demangled(kernel.name).written}: {many}{ended}",
            "bad" if found.hazards else "good",
        )
    )
    data = {
        "file": str(chosen.file),
        "kernel": kernel.name,
        "incomplete": found.incomplete,
        "hazards": [results.hazard_data(hazard) for hazard in found.hazards],
        "benign": [results.hazard_data(row) for row in found.benign],
        **results.limit_data(found, chosen.max_factor),
    }
    seconds = time.perf_counter() - started
    case = results.case_of(found, "check", chosen.file, chosen, seconds)
    return Answer(data, nodes, common.FOUND if case.errors else common.FINE, [case])


def quote(hazard: Hazard, kernel: Kernel) -> list[str]:
    """The source lines of a hazard, and the lines that call them."""
    places = {(hazard.file, hazard.line): 0, (hazard.other_file, hazard.other_line or 0): 0}
    quoted = []
    for name, line in sorted(places, key=str):
        quoted += _quoted(kernel, name, line, "")
    calls = dict.fromkeys((*hazard.callers, *hazard.other_callers))
    for name, line in calls:
        if (name, line) not in places:
            quoted += _quoted(kernel, name, line, "  (calls it)")
    return quoted


def _quoted(kernel: Kernel, name: str | None, line: int, note: str) -> list[str]:
    text = source_line(kernel, name, line) if line else None
    return [] if text is None else [f"     {place(name, line):>20} | {text}{note}"]


def source_line(kernel: Kernel, name: str | None, line: int) -> str | None:
    """A line of one of the kernel's files, or of its PTX; None if it is not known."""
    text = kernel.ptx if name is None else kernel._origin.text_of(name, kernel.ptx)
    lines = (text or "").splitlines()
    return lines[line - 1] if 1 <= line <= len(lines) else None
