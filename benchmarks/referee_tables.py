"""Tables of validation/referee.py's records: labels of others against the detector's verdicts."""

from __future__ import annotations

import re
from collections import Counter

import records
from cells import Record, markdown

SUITES = {
    "indigo": "[Indigo](https://github.com/JohnJacobsonIII/HiRace-Artifact-SC24)",
    "faial": "[Faial](https://github.com/elliotsayes/faial)",
    "consan": "[ConSan](https://github.com/triton-lang/triton)",
    "cutracer": "[CUTracer](https://github.com/facebookexperimental/CUTracer)",
}
LABELS = {
    "race": "racy",
    "bounds": "out of bounds only",
    "deadlock": "deadlock",
    "barrier": "misused mbarrier",
    "clean": "correct",
}
SAID = {
    "race": "race",
    "bounds": "out of bounds, no race",
    "deadlock": "deadlock",
    "barrier": "misused barrier",
    "hazard": "another hazard",
    "error": "could not run",
    "clean": "nothing",
}


def main_form(record: Record) -> str:
    """Unoptimised code, or the only form that there is."""
    return next(iter(record["matrix"]))


def counts(record: Record, form: str) -> Counter[tuple[str, str]]:
    """Cases by label and verdict."""
    return Counter(
        {
            (label, said): n
            for label, row in record["matrix"][form].items()
            for said, n in row.items()
        }
    )


def summary() -> str:
    """For README: one line per suite."""
    lines = []
    for name, title in SUITES.items():
        if (record := records.read(f"referee-{name}")) is None:
            continue
        found = counts(record, main_form(record))
        racy = sum(n for (label, _), n in found.items() if label == "race")
        others = sum(n for (label, _), n in found.items() if label != "race")
        wrong = sum(n for (label, said), n in found.items() if label != "race" == said)
        lines.append((title, f"{found['race', 'race']} of {racy}", f"{wrong} of {others}"))
    return markdown(("suite", "races reported", "reported without a race"), lines, 1)


def confusion(name: str) -> str:
    record = records.read(f"referee-{name}")
    if record is None:
        return "Not yet run."
    racecheck = records.read("referee-racecheck") if name == "indigo" else None
    found = {form: counts(record, form) for form in record["matrix"]}
    main = found[main_form(record)]
    shown = [said for said in SAID if any(main[label, said] for label in LABELS)]
    lines = []
    for label, title in LABELS.items():
        total = sum(main[label, said] for said in SAID)
        cells = [title, total, *(main[label, said] for said in shown)]
        if "optimised" in found:
            cells.append(found["optimised"][label, "race"])
        if racecheck:
            cells.append(sum(record["cases"][n]["label"] == label for n in racecheck["reported"]))
        if total:
            lines.append(tuple(map(str, cells)))
    header = ["label", "kernels", *(SAID[said] for said in shown)]
    header += ["race, optimised code"] if "optimised" in found else []
    parts = [markdown((*header, *(["racecheck"] if racecheck else [])), lines, 1)]
    if racecheck:
        parts.append(
            f"racecheck: compute-sanitizer {racecheck['version']} on an {racecheck['device']} "
            "ran the same optimised kernels on the same graphs."
        )
    return "\n\n".join(parts)


def reasons(name: str) -> str:
    record = records.read(f"referee-{name}")
    cases = record["cases"].items() if record else ()
    # One line for all cluster sizes.
    lines = dict.fromkeys(
        (f"`{re.sub(r'-?num_ctas=[0-9]', '', case)}`", one["reason"])
        for case, one in cases
        if one.get("reason")
    )
    return markdown(("kernel", "why the verdict differs from the label"), list(lines), 2)


def costs() -> str:
    record = records.read("referee-faial")
    rows = record["costs"] if record else []
    equal = sum(row["counted"] == row["expected"] for row in rows)
    why = Counter(row["reason"] for row in rows if row.get("reason"))
    said = "; ".join(f"{n}: {reason}" for reason, n in why.most_common())
    return (
        f"{equal} of {len(rows)} costs of `examples/bc` (bank conflicts per warp, sectors) are "
        f"equal to the traces' counts. The others, {said}."
    )


def parts() -> dict[str, str]:
    """Of docs/hazards.md."""
    return {
        "indigo": confusion("indigo"),
        "faial": confusion("faial"),
        "consan": confusion("consan"),
        "consan reasons": reasons("consan"),
        "cutracer": confusion("cutracer"),
        "faial reasons": reasons("faial"),
        "faial costs": costs(),
    }
