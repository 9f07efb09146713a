"""Formatting of numbers and tables for the documents that benchmarks/tables.py generates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

Record = dict[str, Any]


def number(x: float, digits: int = 3) -> str:
    """`digits` significant digits, no exponent; a dash for a value that is not finite."""
    if not math.isfinite(x):
        return "–"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(x)))) if x else 0
    return f"{x:.{decimals}f}"


def percent(x: float) -> str:
    return f"{100 * x:.0f}\N{NO-BREAK SPACE}%" if math.isfinite(x) else "–"


def times(x: float) -> str:
    return f"{x:.2f}" if math.isfinite(x) else "–"


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]], text_columns: int) -> str:
    rule = ["---" if i < text_columns else "--:" for i in range(len(header))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *lines])


def size(shape: Sequence[int]) -> str:
    return f"{shape[0]}" if len(set(shape)) == 1 else "×".join(map(str, shape))


def label(name: str, params: Record) -> str:
    return " ".join([f"`{name}`", *(f"{key}={v}" for key, v in params.items())])


def where(part: Record) -> str:
    return (
        f"{part['gpu']}, driver {part['driver']}, CUDA {part['toolkit']}, {part['date']}, "
        f"commit {part['commit'] or 'unknown'}"
    )
