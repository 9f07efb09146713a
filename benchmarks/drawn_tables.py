"""The table of `auto` on shapes drawn at random (drawn.py)."""

from __future__ import annotations

from typing import Any

from cells import markdown, size, times, where

Record = dict[str, Any]
PEERS = {"transposes": "a copy"}


def call_of(worst: Record) -> str:
    batch = f"{worst['batch']} × " if worst.get("batch", 1) > 1 else ""
    kind = worst.get("layout") or worst["dtype"]
    return f"{batch}{size(worst['shape'])} {kind}"


def drawn_calls(results: Record | None) -> str:
    record = (results or {}).get("sweep", {}).get("drawn")
    if not record:
        return "Not yet measured."
    kinds = {name: part for name, part in record.items() if isinstance(part, dict)}
    lines = [
        (
            *(name, PEERS.get(name, "cuBLAS"), str(len(part["lines"]))),
            *(times(part["geometric_mean"]), times(part["tiny"]) if part["tiny"] else "–"),
            *(f"{100 * part[share]:.1f} %" for share in ("below_0.9", "below_0.8")),
            f"{times(part['least'])}: {call_of(part['worst'])}",
        )
        for name, part in kinds.items()
    ]
    header = ("kind", "compared with", "draws", "geometric mean", "tiny ones")
    header = (*header, "below 0.9", "below 0.8", "slowest")
    return (
        f"Seed {record['seed']}, drawn for this run. {where(results['sweep'])}.\n\n"  # type: ignore[index]
        + markdown(header, lines, 2)
    )
