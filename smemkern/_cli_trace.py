"""python -m smemkern trace: the counts of a variant, or of a kernel in a file."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from . import _argspec, _cli, _cli_compile, _core, _findings, _parameters, _reports
from ._cli import Answer
from ._document import Node, Paragraph
from ._hazards import Hazard
from ._observe import Trace
from ._terminal import width_of
from ._trace_rows import GlobalRow, SharedRow

OPERATIONS = ("gemm", "transpose", "probe")

SUMMARY = "count what the hardware would count, line by line"
ABOUT = """Runs a variant on random data, or your own kernel, on the emulator. Prints for each
source line its accesses to shared memory (requests, wavefronts, the fewest wavefronts
possible for their bytes, the worst request) and to global memory (requests, 32-byte
sectors). A factor of 1.00 is free of bank conflicts. Races and other hazards are
listed below the counts. No GPU is needed."""
EXAMPLES = (
    (
        "trace transpose --variant tiled --shape 64 64",
        """shared                 op     width  requests  wavefronts  ideal  worst  factor
transpose_tiled.cu:... store      4       128         128    128      1    1.00
transpose_tiled.cu:... load       4       128        4096    128     32   32.00

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
    add_call(parser)
    add_limit(parser)
    parser.add_argument("--blocks", type=int, metavar="N", help="run only the first N blocks")
    parser.add_argument("--annotate", action="store_true", help="print the source with its counts")
    parser.add_argument(
        "--machine-code",
        action="store_true",
        help="registers, and joined accesses, from the machine code of ptxas",
    )
    parser.add_argument("--html", metavar="FILE", help="write an HTML page")
    _reports.add_arguments(parser)


def add_limit(parser: argparse.ArgumentParser) -> None:
    """The limit of conflict factors, of trace and check."""
    parser.add_argument(
        "--max-factor",
        type=_factor,
        metavar="F",
        help="exit status 1 if the conflict factor of any line is over F; 1 allows no conflicts",
    )


def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, found {text!r}")
    return value


def add_call(parser: argparse.ArgumentParser) -> None:
    """The arguments of trace and profile that specify a call."""
    what = parser.add_argument(
        "what", help=f"{', '.join(OPERATIONS)}, or a file of CUDA C++ or PTX"
    )
    _cli.completed(what, _callable)
    parser.add_argument(
        "--shape", type=int, nargs="+", metavar="N", help="gemm: M N K; transpose: rows cols"
    )
    variant = parser.add_argument("--variant", metavar="NAME", help='variant ("auto")')
    _cli.completed(variant, _cli.variant_names)
    parser.add_argument(
        "--dtype", default="float32", metavar="NAME", help="type of the random data (float32)"
    )
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=INT",
        help="a parameter of the variant: tile=16",
    )
    add_kernel_arguments(parser.add_argument_group("for a kernel in a file"), required=False)


def _callable(prefix: str, **_: Any) -> list[str]:
    return [*OPERATIONS, *kernel_files(prefix)]


def kernel_files(prefix: str, **_: Any) -> list[str]:
    from argcomplete.completers import FilesCompleter

    return [*FilesCompleter(_cli_compile.SUFFIXES)(prefix)]


def add_kernel_arguments(parser: argparse._ActionsContainer, *, required: bool) -> None:
    """The arguments that specify a launch of a kernel in a file."""
    parser.add_argument(
        "--kernel", metavar="NAME", help="its name (default: the only kernel of the file)"
    )
    for name, what in (("--grid", "blocks: 4, or 4,2"), ("--block", "threads per block: 256")):
        parser.add_argument(name, type=_extent, required=required, metavar="X[,Y[,Z]]", help=what)
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="SPEC",
        help="an argument of the kernel: f32[1024], f32[64,64]=random, 5, i32=5, file.npy, "
        "{5,f32[64]} (a struct)",
    )
    parser.add_argument(
        "--shared-bytes", type=int, default=0, metavar="N", help="dynamic shared memory (0)"
    )
    parser.add_argument(
        "--cluster", type=_extent, metavar="X[,Y[,Z]]", help="blocks per cluster: 2, or 2,2"
    )
    parser.add_argument(
        "--cooperative", action="store_true", help="all blocks are resident at the same time"
    )
    _cli_compile.add_compile_options(parser)
    _cli_compile.add_limits(parser)


def _extent(text: str) -> tuple[int, ...]:
    try:
        return _argspec.extent(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


def call_of(chosen: argparse.Namespace) -> tuple[str | _core.Kernel, list[Any], dict[str, Any]]:
    """The operation or Kernel of the command line, its arguments and keywords.

    Raises
    ------
    ValueError, OSError, smemkern.Error
        If the command line, a file or a kernel is invalid.
    """
    if chosen.what in OPERATIONS:
        return _operation(chosen)
    path = Path(chosen.what)
    if not path.suffix:
        raise ValueError(
            f"expected {', '.join(OPERATIONS)}, or a .cu or .ptx file; found {chosen.what!r}"
        )
    if chosen.grid is None or chosen.block is None:
        raise ValueError("a kernel in a file needs --grid and --block")
    return kernel_call(path, chosen)


def kernel_call(
    path: Path, chosen: argparse.Namespace
) -> tuple[_core.Kernel, list[Any], dict[str, Any]]:
    """The Kernel of a file, with its arguments and keywords, from add_kernel_arguments()."""
    kernel = _cli_compile.kernel_in(path, chosen.kernel, _cli_compile.options(chosen))
    given = _argspec.arguments(chosen.arg)
    if wrong := _parameters.number_for_pointer(kernel, given):
        raise ValueError(wrong)
    args = [chosen.grid, chosen.block, *given]
    launch = {
        "shared_bytes": chosen.shared_bytes,
        "cluster": chosen.cluster,
        "cooperative": chosen.cooperative,
        **_cli_compile.limits(chosen),
    }
    return kernel, args, launch


def _operation(chosen: argparse.Namespace) -> tuple[str, list[Any], dict[str, Any]]:
    lengths = {"gemm": 3, "transpose": 2, "probe": 1}[chosen.what]
    shape = (
        chosen.shape or {"gemm": [64, 64, 64], "transpose": [64, 64], "probe": [4096]}[chosen.what]
    )
    if len(shape) != lengths or min(shape) < 0:
        raise ValueError(f"--shape of {chosen.what} should be {lengths} lengths, not {shape}")
    rng = np.random.default_rng(0)
    shapes = (
        [(shape[0], shape[2]), (shape[2], shape[1])] if chosen.what == "gemm" else [tuple(shape)]
    )
    dtype = np.dtype(chosen.dtype)
    args = [rng.standard_normal(one).astype(dtype) for one in shapes]
    keywords: dict[str, Any] = {"variant": chosen.variant} if chosen.variant else {}
    for param in chosen.param:
        name, _, value = param.partition("=")
        try:
            keywords[name] = int(value)
        except ValueError:
            raise ValueError(f"--param should be NAME=INT, such as tile=16, not {param}") from None
    return chosen.what, args, keywords


def run(chosen: argparse.Namespace) -> Answer:
    from . import _listing
    from ._observe import trace

    started = time.perf_counter()
    what, args, keywords = call_of(chosen)
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
        "shared": [row_data(row) for row in found.shared],
        "global": [row_data(row) for row in found.global_],
        "incomplete": found.incomplete,
        "hazards": [hazard_data(hazard) for hazard in found.hazards],
        **limit_data(found, chosen.max_factor),
    }
    nodes = _listing.nodes(found, width=width_of(sys.stdout)) if chosen.annotate else found._nodes()
    nodes = [*nodes, *limit_nodes(found, chosen.max_factor)]
    if chosen.html:
        nodes.append(Paragraph(f"wrote {chosen.html}"))
    is_file = chosen.what not in OPERATIONS
    file = Path(chosen.what) if is_file else _variant_file(found)
    case = case_of(found, "trace", file, chosen, time.perf_counter() - started)
    return Answer(data, nodes, _cli.FOUND if case.errors else _cli.FINE, [case])


def _variant_file(found: Trace) -> Path:
    """The source of a variant, in the installed package."""
    name = f"{found.launch.op}_{found.launch.variant}.cu"
    folder = Path(_core.config()["kernels"])
    return next((path for path in folder.glob(f"**/{name}")), folder / name)


def limit_data(found: Trace, limit: float | None) -> dict[str, Any]:
    """The rows over the limit, for --json."""
    keys = "file", "line", "op", "width", "requests", "wavefronts", "ideal", "worst"
    over = _findings.over_limit(found.shared, limit)
    return {
        "max_factor": limit,
        "over_limit": [
            {key: getattr(row, key) for key in keys} | {"factor": _findings.factor_of(row)}
            for row in over
        ],
    }


def limit_nodes(found: Trace, limit: float | None) -> list[Node]:
    """The rows over the limit, as text."""
    return [
        Paragraph(_findings.conflict_message(row, limit or 1), "bad")
        for row in _findings.over_limit(found.shared, limit)
    ]


def case_of(
    found: Trace, command: str, file: Path, chosen: argparse.Namespace, seconds: float
) -> _findings.Case:
    """What reports say of a trace."""
    sources = _findings.Sources(file, _cli_compile.options(chosen))
    limit = getattr(chosen, "max_factor", None)
    launch = found.launch
    grid = ",".join(map(str, launch.grids[0])) if launch.grids else "0"
    name = f"{command} {launch.title} grid {grid} block {','.join(map(str, launch.block))}"
    findings = [
        *(_findings.of_hazard(hazard, sources) for hazard in found.hazards),
        *(
            _findings.of_row(r, limit or 1, sources)
            for r in _findings.over_limit(found.shared, limit)
        ),
        *(_findings.of_hazard(row, sources, "note") for row in found.benign),
    ]
    return _findings.Case(name, _findings.shown(file), 1, findings, seconds)


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


def row_data(row: SharedRow | GlobalRow) -> dict[str, Any]:
    """A row as data for --json, without its worst request."""
    data = row._asdict()
    del data["worst_request"]
    data["callers"] = [{"file": file, "line": line} for file, line in row.callers]
    return data


def hazard_data(hazard: Hazard) -> dict[str, Any]:
    """A hazard as data for --json."""
    data = hazard._asdict()
    for name in ("callers", "other_callers"):
        data[name] = [{"file": file, "line": line} for file, line in data[name]]
    return data
