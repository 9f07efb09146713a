"""What commands say of a trace: data for --json, text, and a case for reports."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .._render.document import Node, Paragraph
from .._reports import findings
from .._trace.hazards import Hazard
from .._trace.observe import Trace
from .._trace.rows import GlobalRow, SharedRow
from . import compiling


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


def limit_data(found: Trace, limit: float | None) -> dict[str, Any]:
    """The rows over the limit, for --json."""
    keys = "file", "line", "op", "width", "requests", "wavefronts", "ideal", "worst"
    over = findings.over_limit(found.shared, limit)
    return {
        "max_factor": limit,
        "over_limit": [
            {key: getattr(row, key) for key in keys} | {"factor": findings.factor_of(row)}
            for row in over
        ],
    }


def limit_nodes(found: Trace, limit: float | None) -> list[Node]:
    """The rows over the limit, as text."""
    return [
        Paragraph(findings.conflict_message(row, limit or 1), "bad")
        for row in findings.over_limit(found.shared, limit)
    ]


def case_of(
    found: Trace, command: str, file: Path, chosen: argparse.Namespace, seconds: float
) -> findings.Case:
    """What reports say of a trace."""
    sources = findings.Sources(file, compiling.options(chosen))
    limit = getattr(chosen, "max_factor", None)
    launch = found.launch
    grid = ",".join(map(str, launch.grids[0])) if launch.grids else "0"
    name = f"{command} {launch.title} grid {grid} block {','.join(map(str, launch.block))}"
    found_here = [
        *(findings.of_hazard(hazard, sources) for hazard in found.hazards),
        *(
            findings.of_row(r, limit or 1, sources)
            for r in findings.over_limit(found.shared, limit)
        ),
        *(findings.of_hazard(row, sources, "note") for row in found.benign),
    ]
    return findings.Case(name, findings.shown(file), 1, found_here, seconds)


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
