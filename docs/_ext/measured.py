"""Markdown tables of the results of one technique, from benchmarks/results/.

A technique without results has no table.
"""

from __future__ import annotations

from typing import Any

import ladder
import tables
from ladder import LARGE, LARGEST, ODD, SQUARE
from smemkern import Variant

TRANSPOSED = ([4096, 4096], [8192, 8192], [4097, 8191])


def _sets(lines: list[dict[str, Any]], name: str) -> list[tuple[str, dict[str, int]]]:
    """(dtype, parameters) of each measurement of a variant."""
    found = []
    for line in lines:
        if line["variant"] == name and (line["dtype"], line["params"]) not in found:
            found.append((line["dtype"], line["params"]))
    return found


def _gemm(results: dict[str, Any], row: Variant, below: str | None) -> str:
    lines = results["gemm"]["lines"]
    wanted = [(row.name, *each) for each in _sets(lines, row.name)]
    if not wanted:
        return ""
    beside = {dtype for _, dtype, _ in wanted}
    if below:
        wanted[:0] = [(below, d, p) for d, p in _sets(lines, below) if not p and d in beside]
    shapes = (SQUARE, LARGE, LARGEST, ODD)
    rows = []
    for name, dtype, params in wanted:
        at = [
            ladder.find(results, "gemm", name, dtype=dtype, shape=shape, params=params)
            for shape in shapes
        ]
        speeds = (tables.number(ladder.value(line, "tflops")) for line in at)
        beside_peer = tables.times(ladder.ratio(results, at[1]))
        rows.append((tables.label(name, params), dtype, *speeds, beside_peer))
    header = ("technique", "type", *map(tables.size, shapes), f"x cuBLAS, {tables.size(LARGE)}")
    return (
        f"TFLOP/s; beside it the cuBLAS of the same accuracy. {tables.where(results['gemm'])}.\n\n"
        + tables.markdown(header, rows, 2)
    )


def _transpose(results: dict[str, Any], row: Variant, below: str | None) -> str:
    lines = results["transpose"]["lines"]
    wanted = [(row.name, *each) for each in _sets(lines, row.name)]
    if not wanted:
        return ""
    if below:
        beside = {dtype for _, dtype, _ in wanted}
        wanted[:0] = [(below, d, p) for d, p in _sets(lines, below) if not p and d in beside]
    rows = []
    for name, dtype, params in wanted:
        cells = []
        for shape in TRANSPOSED:
            what = dict(dtype=dtype, shape=shape)
            line = ladder.find(results, "transpose", name, params=params, **what)
            copy = ladder.find(results, "transpose", "device copy", **what)
            speed = ladder.value(line, "gbps")
            share = tables.percent(speed / ladder.value(copy, "gbps"))
            cells.append(tables.number(speed / 1000) + (f" ({share})" if share != "–" else ""))
        rows.append((tables.label(name, params), dtype, *cells))
    return (
        "TB/s, read and written, and the share of a device copy of the same bytes. "
        f"{tables.where(results['transpose'])}.\n\n"
        + tables.markdown(("technique", "elements", *map(tables.size, TRANSPOSED)), rows, 2)
    )


def measured(row: Variant, below: str | None) -> str:
    """The tables of a variant, one per GPU with results."""
    by_op = {"gemm": _gemm, "transpose": _transpose}
    if row.op not in by_op:
        return ""
    parts = [by_op[row.op](results, row, below) for results in tables.gpus() if row.op in results]
    return "\n\n".join(part for part in parts if part)
