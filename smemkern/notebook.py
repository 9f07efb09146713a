"""Shared code of the notebooks: tables, and results measured on a GPU.

The results are in measured.json, an extract of the records in benchmarks/results, with GPU, driver,
date and commit. Needs IPython and matplotlib.
"""

from __future__ import annotations

import difflib
import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import matplotlib
from IPython.display import Markdown

TIMES = Path(__file__).with_name("measured.json")

matplotlib.rcParams["figure.dpi"] = 80

COUNTERS = (  # in the order of validation/exactness/variants.py
    *("shared load wavefronts", "shared store wavefronts", "cp.async wavefronts"),
    *("shared load requests", "shared store requests", "cp.async requests"),
    *("global load sectors", "global store sectors"),
    *("global load requests", "global store requests"),
)


def table(header: str, rows: Iterable[Sequence[Any]]) -> Markdown:
    """A table; `header` has the column names, separated by |. Numbers, and "-" in place of one, are
    right-aligned."""
    rows = [list(row) for row in rows]
    names = [name.strip() for name in header.split("|")]
    numbers = [
        bool(rows) and all(isinstance(row[i], Real) or row[i] == "-" for row in rows)
        for i in range(len(names))
    ]
    lines = [names, ["--:" if right else "---" for right in numbers]]
    lines += [[_cell(value) for value in row] for row in rows]
    return Markdown("\n".join(f"| {' | '.join(line)} |" for line in lines))


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real) and not isinstance(value, Integral):
        return f"{value:.3g}" if abs(float(value)) < 1000 else f"{value:.0f}"
    return str(value).replace("|", "\\|")


@cache
def _read() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(TIMES.read_text(encoding="utf-8"))
    return read


def results() -> dict[str, Any]:
    """What was measured: "gemm" and "transpose", "claims" of the literature beside them, the
    counts of random requests ("operations") and of the variants' "calls"."""
    return _read()


def source(part: str = "gemm") -> str:
    """GPU, driver, date and commit of a part of the results."""
    facts = results()[part]
    return (
        f"{facts['gpu']}, driver {facts['driver']}, CUDA {facts['toolkit']}, {facts['date']}, "
        f"commit {facts['commit']}"
    )


def _line(part: str, variant: str, shape: Sequence[int], dtype: str, params: Any) -> Any:
    wanted = {"variant": variant, "shape": list(shape), "dtype": dtype, "params": params}
    for line in results()[part]["lines"]:
        if all(line[key] == value for key, value in wanted.items()):
            return line
    raise LookupError(f"not measured: {part} {wanted}")


def tflops(variant: str, n: int = 4096, dtype: str = "float32", **params: int) -> float:
    """Measured TFLOP/s of a GEMM of n x n matrices; "cuBLAS" is a variant here."""
    return _line("gemm", variant, [n] * 3, dtype, params)["tflops"]


def error(variant: str, n: int = 4096, dtype: str = "float32", **params: int) -> str:
    """Measured error of a GEMM: relative Frobenius norm against float64."""
    return f"{_line('gemm', variant, [n] * 3, dtype, params)['error']:.0e}"


def of_copy(variant: str, shape: Sequence[int] = (4096, 4096), **params: int) -> float:
    """Measured speed of a transpose of 4-byte elements, relative to a device copy."""
    own = _line("transpose", variant, shape, "b32", params)
    return own["gbps"] / _line("transpose", "device copy", shape, "b32", {})["gbps"]


def counters(call: str) -> dict[str, int]:
    """Nsight Compute's counts of a call, such as "gemm padded float32 128x128x64"."""
    for line in results()["calls"]:
        if line["call"] == call:
            return dict(zip(COUNTERS, line["measured"], strict=False))
    raise LookupError(f"not counted: {call}")


# ---- traces


def listing(trace: Any, file: str | None = None) -> None:
    """Prints the source lines of a trace that have counts, with their hazards."""
    lines = trace.annotate(file).splitlines()
    if "as joined" in lines[1]:  # four more columns, left out here
        first = lines[1].index("as joined") - 1
        lines = [line[:first] + line[first + 38 :] for line in lines[:-2]]
    code = lines[2].index("line") + len("line ")
    half = lines[2].rindex("requests") - 2  # start of the columns of global memory
    counted = [line for line in lines[3:] if line[: code - 8].strip()]
    first = 0 if any(line[:half].strip() for line in counted) else half
    lines[2] = " " * first + lines[2][first:]
    for line in lines:
        if line[:code].strip() == "!" or line.lstrip().startswith("! "):
            say("! " + line.lstrip(" !"), indent=4)
        elif line[: code - 8].strip():
            shown = (line[first:code] + line[code:].lstrip()).rstrip()
            print(shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 1]}…")


WIDTH = 104  # characters per printed line; fits on web pages without wrapping


def say(*texts: str, indent: int = 0) -> None:
    """Prints texts, wrapped to WIDTH."""
    for text in texts:
        for line in text.splitlines():
            own = " " * (indent + len(line) - len(line.lstrip()))
            print(
                textwrap.fill(line.strip(), WIDTH, initial_indent=own, subsequent_indent=own + "  ")
            )


def predicted(trace: Any) -> dict[str, int]:
    """The counts that a trace predicts for Nsight Compute, by the names of `counters`."""
    return {
        f"shared {op} wavefronts": sum(r.machine_wavefronts for r in trace.shared if r.op == op)
        for op in ("load", "store")
    } | {
        f"global {op} sectors": sum(
            r.sectors
            for r in trace.global_
            if r.op in (op, "copy_async") and r.direction == {"load": "read", "store": "write"}[op]
        )
        for op in ("load", "store")
    }


def changed(below: Any, variant: Any) -> None:
    """Prints the lines in which a variant's code differs from the variant below it."""
    old, new = (
        re.sub(r"/\*.*?\*/", "", row.source.replace(f"_{row.name}(", "("), flags=re.S).splitlines()
        for row in (below, variant)
    )
    for line in list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]:
        if line[0] in "+-" and line[1:].strip():
            print(line[0], line[1:].strip())


def heading(variant: Any) -> str:
    """The opening comment of a kernel's file."""
    return variant.source.split("*/")[0].removeprefix("/* ").replace("\n *", "\n")


# ---- claims


class Claims:
    """Claims of texts next to what was found; the caller of add() computes whether each holds."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, str, str]] = []
        self._shown = 0

    def add(self, who: str, what: str, claimed: str, found: object, holds: bool | str) -> None:
        """`holds`: whether the claim holds, or a text that says in which part."""
        verdict = holds if isinstance(holds, str) else "holds" if holds else "**does not hold**"
        self.rows.append((who, what, claimed, str(found), verdict))

    def table(self) -> Markdown:
        """The claims that were added since the last table."""
        fresh, self._shown = self.rows[self._shown :], len(self.rows)
        return table("source | claim | claimed | found | verdict", fresh)

    def summary(self) -> str:
        verdicts = [row[-1] for row in self.rows]
        hold, not_ = verdicts.count("holds"), verdicts.count("**does not hold**")
        rest = len(verdicts) - hold - not_
        return f"{len(verdicts)} claims: {hold} hold, {not_} do not, {rest} in part"
