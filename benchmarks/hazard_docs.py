"""Writes into docs/hazards.md what smemkern says: the mistakes' messages, the mutation figures.

python benchmarks/hazard_docs.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import smemkern
import smemkern.mistakes

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "hazards.md"
FIGURES = ROOT / "benchmarks" / "results" / "mutation.json"


def mistakes() -> str:
    """Each mistake with its message."""
    parts = []
    for mistake in smemkern.mistakes.rows():
        try:
            mistake.run()
        except smemkern.HazardError as error:
            parts.append(f"**{mistake.name}**: {mistake.summary}\n\n```\n{error}\n```")
    return "\n\n".join(parts)


def mutation() -> str:
    record = json.loads(FIGURES.read_text())
    clean = record["unmutated"]
    lines = ["| removed | reported | harmless | unreported |", "|---|---:|---:|---:|"]
    for kind, counts in record["figures"].items():
        cells = (str(counts.get(v, 0)) for v in ("reported", "harmless", "unreported"))
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    lines.append("")
    lines.append(
        f"{record['images']} images; the unmutated kernels: {clean['runs']} runs, "
        f"{clean['with_findings']} images with findings, {clean['wrong']} wrong results."
    )
    return "\n".join(lines)


def page(text: str) -> str:
    for name, part in (("mistakes", mistakes()), ("mutation", mutation())):
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text = re.sub(pattern, lambda m, p=part: f"{m[1]}{p}\n{m[2]}", text, count=1, flags=re.S)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
