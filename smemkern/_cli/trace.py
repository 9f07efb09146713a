"""python -m smemkern trace: the counts of a variant, or of a kernel in a file."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from .. import _core
from .._render.document import Paragraph
from .._render.terminal import width_of
from .._reports import formats
from .._trace.observe import Trace
from . import calls, common, results
from .common import Answer

SUMMARY = "count what the hardware would count, line by line"
ABOUT = """Runs a variant on random data, or your own kernel, on the emulator. Prints for each
source line its accesses to shared memory (requests, wavefronts, the fewest wavefronts
possible for their bytes, the worst request) and to global memory (requests, 32-byte
sectors). A factor of 1.00 is free of bank conflicts. Races and other hazards are
listed below the counts. No GPU is needed."""
EXAMPLES = (
    (
        "trace transpose --variant tiled --shape 64 64",
        """\
shared                 op    width requests wavefronts ideal worst factor
transpose_tiled.cu:... store     4      128        128   128     1   1.00
transpose_tiled.cu:... load      4      128       4096   128    32  32.00

global                 op     width  requests  sectors  ideal
transpose_tiled.cu:... load       4       128      512    512
transpose_tiled.cu:... store      4       128      512    512
...""",
    ),
    (
        "trace sum.cu --grid 4 --block 256 --arg 'f32[1000]=random' --arg 'f32[4]' --arg i32=1000",
        """\
shared        op     width  requests  wavefronts  ideal  worst  factor
sum.cu:5      store      4        32          32     32      1    1.00
...
hazard: RAW race, shared part[1]: ...""",
    ),
)
NEXT = (
    "--annotate: the source with counts in the margin; --html: a page with the worst request of "
    "each line as a map of banks; banks --tile: a layout without conflicts."
)
FOUND = "hazards were found, or a factor is over --max-factor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    calls.add_call(parser)
    results.add_limit(parser)
    parser.add_argument("--blocks", type=int, metavar="N", help="run only the first N blocks")
    parser.add_argument("--annotate", action="store_true", help="print the source with its counts")
    parser.add_argument(
        "--machine-code",
        action="store_true",
        help="registers, and joined accesses, from the machine code of ptxas",
    )
    parser.add_argument("--html", metavar="FILE", help="write an HTML page")
    formats.add_arguments(parser)


def run(chosen: argparse.Namespace) -> Answer:
    from .._trace import listing
    from .._trace.observe import trace

    started = time.perf_counter()
    what, args, keywords = calls.call_of(chosen)
    found = trace(
        what,
        *args,
        blocks=chosen.blocks,
        progress=True,
        machine_code=chosen.machine_code,
        **keywords,
    )
    if chosen.html:
        found.to_html(chosen.html)
    launch = found.launch
    data = {
        "kernel": launch.kernel,
        "op": launch.op,
        "variant": launch.variant,
        "grids": launch.grids,
        "block": launch.block,
        "shared_bytes": launch.shared_bytes,
        "blocks": found.blocks,
        "grid_blocks": found.grid_blocks,
        "conflict_factor": found.conflict_factor,
        "machine_conflict_factor": found.machine_conflict_factor,
        "machine_code": _machine_data(found),
        "shared_requests": found.shared_requests,
        "shared_wavefronts": found.shared_wavefronts,
        "bytes_moved": found.bytes_moved,
        "flops": found.flops,
        "warp_instructions": found.warp_instructions,
        "barriers": found.barriers,
        "instructions": found.instructions,
        "shared": [results.row_data(row) for row in found.shared],
        "global": [results.row_data(row) for row in found.global_],
        "incomplete": found.incomplete,
        "hazards": [results.hazard_data(hazard) for hazard in found.hazards],
        **results.limit_data(found, chosen.max_factor),
    }
    nodes = listing.nodes(found, width=width_of(sys.stdout)) if chosen.annotate else found._nodes()
    nodes = [*nodes, *results.limit_nodes(found, chosen.max_factor)]
    if chosen.html:
        nodes.append(Paragraph(f"wrote {chosen.html}"))
    is_file = chosen.what not in calls.OPERATIONS
    file = Path(chosen.what) if is_file else _variant_file(found)
    case = results.case_of(found, "trace", file, chosen, time.perf_counter() - started)
    return Answer(data, nodes, common.FOUND if case.errors else common.FINE, [case])


def _variant_file(found: Trace) -> Path:
    """The source of a variant, in the installed package."""
    name = f"{found.launch.op}_{found.launch.variant}.cu"
    folder = Path(_core.config()["kernels"])
    return next((path for path in folder.glob(f"**/{name}")), folder / name)


def _machine_data(found: Trace) -> dict[str, Any] | None:
    """What the machine code says, for --json."""
    if found.machine_code is None:
        return None
    resources, _, note = found.machine_code
    names = ("arch", "ptxas", "registers", "stack", "spill_stores", "spill_loads")
    occupancy = found.occupancy
    return {
        "note": note,
        **{name: getattr(resources, name, None) for name in (*names, "static_shared", "barriers")},
        "blocks_per_sm": occupancy and occupancy.blocks,
        "occupancy": occupancy and occupancy.fraction,
    }
