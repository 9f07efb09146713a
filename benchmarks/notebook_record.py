"""The measured results that the notebooks show: an extract of the records of the H200.

It is part of the package (smemkern/measured.json), so that a notebook runs from any folder.
"""

from __future__ import annotations

import json
from typing import Any

import claims
import ladder
import records

FILE = records.ROOT / "smemkern" / "measured.json"
LINE = ("variant", "dtype", "shape", "params", "tflops", "error", "gbps")
OPERATION = ("modelled", "predicted", "sass", "hardware")


def _picked(row: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: row[key] for key in keys if key in row}


def text() -> str:
    """The file's text."""
    times = records.load(records.RESULTS / "nvidia-h200.json")
    counts = records.load(records.RESULTS / "exactness-h200.json")
    extract = {
        part: {**times[part], "lines": [_picked(line, LINE) for line in times[part]["lines"]]}
        for part in ("gemm", "transpose")
    } | {
        "claims": claims.compared(times, ladder.find),
        "operations": {n: _picked(row, OPERATION) for n, row in counts["operations"].items()},
        "calls": [_picked(call, ("call", "measured")) for call in counts["variants"]["calls"]],
    }
    parts = ",\n".join(f'"{name}": {json.dumps(part)}' for name, part in extract.items())
    return f"{{\n{parts}\n}}\n"
