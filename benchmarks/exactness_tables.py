"""Tables that compare the emulator's counts with a GPU's, from records of validation/exact.py."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cells import Record, markdown, where

sys.path.append(str(Path(__file__).resolve().parent.parent / "validation"))
from exactness.reasons import BY_SCHEDULE, EXPLAINED, why

KINDS = {
    ("shared", "load"): "shared loads",
    ("shared", "store"): "shared stores",
    ("shared", "ldmatrix"): "`ldmatrix`",
    ("shared", "stmatrix"): "`stmatrix`",
    ("shared", "atomic"): "shared atomics",
    ("shared", "copy_async"): "`cp.async`",
    ("global", "load"): "global loads, sectors",
    ("global", "store"): "global stores, sectors",
    ("global", "atomic"): "global atomics, sectors",
}


def patterns(results: Record) -> str:
    """One row per kind of operation and rule (exact or modelled), with the kind of test."""
    lines, forms = [], []
    for modelled in (False, True):
        for (space, kind), what in KINDS.items():
            rows = {
                name: row
                for name, row in results["operations"].items()
                if (row["space"], row["kind"], row["modelled"]) == (space, kind, modelled)
            }
            if not rows:
                continue
            drawn = sum(row["patterns"] for row in rows.values())
            equal = [
                str(sum(row[key] for row in rows.values()))
                if all(key in row for row in rows.values())
                else "–"
                for key in ("hardware_equal", "sass_equal")
            ]
            rule, test = ("modelled", "regression test") if modelled else ("exact", "exactness")
            lines.append((what, rule, test, str(len(rows)), str(drawn), *equal))
            if modelled:
                all_of_kind = not any(line[:2] == (what, "exact") for line in lines)
                named = ", ".join(f"`{name}`" for name in rows)
                forms.append(f"{what}: {f'all {len(rows)}' if all_of_kind else named}")
    header = (
        "operations",
        "rule",
        "test",
        "forms",
        "requests",
        "equal to hardware",
        "equal to SASS",
    )
    return (
        f"{where(results)}, seed {results['seed']}.\n\n{markdown(header, lines, 3)}\n\n"
        f"Forms that have a regression test: {'; '.join(forms)}."
    )


def _differences(calls: Sequence[Record]) -> list[tuple[str, str, str, str]]:
    return [
        (f"`{line['call']}`", what, str(said), str(measured))
        for line in calls
        for what, (said, measured) in line["differs"].items()
    ]


def _regressions(calls: Sequence[Record]) -> str:
    """The sentence above the table of counts that differ."""
    count = sum(len(line["differs"]) for line in calls)
    return f"Equal counts have an exactness test; the {count} that differ have a regression test"


def _not_measured(name: str, calls: Sequence[Record]) -> str:
    """A paragraph that lists rows or kernels without a record; "" if there are none."""
    from exactness.parts import groups
    from exactness.play import PARTS

    part, measured = PARTS[name], {line["call"] for line in calls}
    lacks = {
        group: missing
        for group, of_group in groups(part).items()
        if (missing := sum(part.name(call) not in measured for call in of_group))
    }
    listed = ", ".join(f"`{group}` ({count} calls)" for group, count in lacks.items())
    return f"\n\nNot measured yet: {listed}." if listed else ""


def _equal(calls: Sequence[Record]) -> str:
    return f"{sum(not line['differs'] for line in calls)} of {len(calls)}"


def variant_counts(results: Record) -> str:
    part = results["variants"]
    calls = part["calls"]
    text = f"{where(part)}.\n\n{_equal(calls)} calls: all counts equal."
    if earlier := part.get("earlier"):
        text += (
            f" {earlier['calls']} of them were measured at commit {earlier['commit']}, whose "
            "record has no counts of matrix instructions and bulk copies; those calls use neither."
        )
    rows = Counter(" ".join(line["call"].split()[:2]) for line in calls)
    groups: dict[str, dict[tuple[str, str], list[tuple[int, int]]]] = {}
    for line in calls:
        row = " ".join(line["call"].split()[:2])
        for count, pair in line["differs"].items():
            of_reason = groups.setdefault(why(line["call"], count), {})
            of_reason.setdefault((row, count), []).append(pair)
    header = ("row", "count", "calls that differ", "worst case: predicted", "measured")
    parts = [f"{text} {_regressions(calls)}:"]
    for reason, found in groups.items():
        lines = []
        for (row, count), pairs in found.items():
            said, measured = max(pairs, key=lambda pair: abs(pair[0] - pair[1]) / abs(pair[1]))
            calls_of = f"{len(pairs)} of {rows[row]}"
            lines.append((f"`{row}`", count, calls_of, str(said), str(measured)))
        parts.append(f"*{reason[:1].upper()}{reason[1:]}.*\n\n{markdown(header, lines, 2)}")
    return "\n\n".join(parts) + _not_measured("variants", calls)


def corpus_counts(results: Record) -> str:
    part = results["corpus"]
    lines = []
    last = ""
    for name, *rest in sorted(_differences(part["calls"]), key=lambda line: line[0]):
        lines.append(("", "", *rest) if name == last else (name, EXPLAINED[name.strip("`")], *rest))
        last = name
    left_out = "; ".join(f"`{name}`: {why}" for name, why in BY_SCHEDULE.items())
    header = ("kernel", "why", "count", "predicted", "measured")
    return (
        f"{where(part)}.\n\n{_equal(part['calls'])} kernels: all twenty counts equal. "
        f"{_regressions(part['calls'])}:\n\n{markdown(header, lines, 3)}\n\n"
        f"Not compared, because the count depends on the order in which threads run: {left_out}."
        + _not_measured("corpus", part["calls"])
    )


def engine_counts(results: Record) -> str:
    part = results["engine"]
    kinds = {
        "bulk copies (`cp.async.bulk`)": "bulk",
        "tensor boxes (TMA)": "box",
        "`wgmma` operands": "wgmma",
    }
    lines = []
    for what, begins in kinds.items():
        calls = [line for line in part["calls"] if line["call"].startswith(begins)]
        lines.append((what, "wavefronts" if begins == "wgmma" else "sectors", _equal(calls)))
    more = results["products"]
    for what, is_sparse in (("8-bit elements", False), ("sparse products", True)):
        calls = [line for line in more["calls"] if (".sp" in line["call"]) == is_sparse]
        lines.append((f"`wgmma` operands, {what}", "wavefronts", _equal(calls)))
    late = results["multicasts"]
    lines.append(("multicasts, of bytes and boxes", "sectors", _equal(late["calls"])))
    return (
        f"{where(part)}. 8-bit and sparse products: {more['date']}, commit {more['commit']}. "
        f"Multicasts: {late['date']}, commit {late['commit']}.\n\n"
        + markdown(("what", "counted", "equal"), lines, 2)
    )
