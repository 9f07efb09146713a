"""The cost model of variant "auto": a packaged table, and optional tables of the user per GPU.

A timing has the microseconds per unit of each term of a variant's predicted time
(docs/choosing.md). The packaged table, timings.json, was fitted to an H200. `smemkern.bench` can
fit it to another GPU and store the result as $XDG_CONFIG_HOME/smemkern/timings-<gpu>.json, where
`load` finds it.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

PACKAGED = Path(__file__).resolve().parent.parent / "timings.json"
TERMS = (
    *("call", "parts", "depth", "tile", "step", "bytes", "lines", "result", "far"),
    *("turned", "step_nn", "step_nt", "step_tn", "step_tt", "sectors", "result_sectors"),
)


class Timing(NamedTuple):
    """A row of "auto"'s table, in the format of _core.set_timings."""

    op: str
    variant: str
    params: dict[str, int]
    dtype: str
    alignment: int  # bytes that rows of the operands begin at multiples of: 16, 4 or 1
    side: int  # for results with at most this many rows, or columns; 0: for all
    microseconds: tuple[float, ...]  # per unit of each of TERMS; of the first ones in older tables
    along: int = -1  # 1: if the larger operand lies along K; 0: if across; -1: always

    @property
    def name(self) -> str:
        params = ", ".join(f"{key}={value}" for key, value in self.params.items())
        return f"{self.variant}({params})" if params else self.variant


def stored(gpu: str) -> Path:
    """The path of the user's table for a GPU of that name."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    slug = re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")
    return Path(config, "smemkern", f"timings-{slug}.json")


def read(path: Path) -> list[Timing]:
    record = json.loads(path.read_text(encoding="utf-8"))
    timings = []
    for entry in record["timings"]:
        values = {**entry, "microseconds": tuple(entry["microseconds"])}
        values.pop("accuracy", None)  # older tables repeat the variant's
        timings.append(Timing(**values))
    return timings


def write(path: Path, timings: list[Timing], facts: Mapping[str, Any]) -> None:
    """Writes a table atomically: concurrent readers get either the old or the new one."""
    entries = [json.dumps(timing._asdict()) for timing in timings]
    head = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in facts.items())
    text = "{\n" + head + '"timings": [\n' + ",\n".join(entries) + "\n]\n}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def load(gpu: str) -> list[Timing]:
    """The table that "auto" uses on a GPU. _core calls this once per GPU."""
    own = stored(gpu)
    try:
        if own.exists():
            timings = read(own)
            _check(timings)
            return timings
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        warnings.warn(
            f"{own} is ignored: {wrong}. Delete it, or create it again with "
            "python -m smemkern bench --retune",
            stacklevel=2,
        )
    return read(PACKAGED)


def _check(timings: list[Timing]) -> None:
    """Raises if the table names a variant or parameter that no longer exists."""
    from .. import _core

    _core.predict(timings, "gemm", "float32", "float32", (1, 1, 1, 1), 80, 1, "NN", 1)
