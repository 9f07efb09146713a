"""Writes the tables of docs/hazards.md: findings of smemkern and of other tools.

python validation/hazard_docs.py
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import smemkern
import smemkern.mistakes
from records import RESULTS, ROOT, load

PAGE = ROOT / "docs" / "hazards.md"
WHAT = {
    "barrier": "barrier",
    "wait": "cp.async wait",
    "commit": "cp.async commit",
    "arrival": "mbarrier arrival",
    "expect": "mbarrier arrive.expect_tx",
    "phase": "mbarrier wait",
    "init": "mbarrier init",
    "proxy": "fence, commit or wait for TMA or wgmma",
    "bounds": "bounds check",
    "value": "choice of a value",
    "term": "term of a compound check",
    "choice": "check without a branch",
}
VERDICTS = ("reported", "noted", "endless", "harmless", "unseen", "unreported")
# Verdicts of the record whose column has another title.
TITLES = {"unseen": "out of scope"}
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def read(name: str) -> dict[str, Any]:
    return load(RESULTS / f"{name}.json")


def table(head: Iterable[str], rows: Iterable[Iterable[object]], align: str) -> str:
    marks = {"l": "---", "r": "---:"}
    lines = [head, [marks[a] for a in align], *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def mistakes() -> str:
    """Each example mistake with the message that it raises."""
    parts = []
    for mistake in smemkern.mistakes.rows():
        try:
            mistake.run()
        except smemkern.HazardError as error:
            message = with_registers_counted(str(error))
            parts.append(f"**{mistake.name}**: {mistake.summary}\n\n```\n{message}\n```")
    return "\n\n".join(parts)


def with_registers_counted(message: str) -> str:
    """With %r1, %r2, ... in their order; nvcc and NVRTC give other numbers."""
    names: dict[str, str] = {}
    return re.sub(r"%r\d+", lambda m: names.setdefault(m[0], f"%r{len(names) + 1}"), message)


def mutation() -> str:
    record = read("mutation")
    clean = record["unmutated"].values()
    rows = [
        (WHAT[kind], *(counts.get(v, 0) for v in VERDICTS))
        for kind, counts in record["figures"].items()
    ]
    head = ("removed", *(TITLES.get(v, v) for v in VERDICTS))
    return (
        f"{table(head, rows, 'l' + 'r' * len(VERDICTS))}\n\n"
        f"{record['images']} images. Unmutated kernels: "
        f"{sum(one['runs'] for one in clean)} runs, {sum(one['findings'] for one in clean)} "
        f"findings, {sum(one['wrong'] for one in clean)} wrong results."
    )


def reasons() -> str:
    """The removals that need no report: their source lines, and the reasons."""
    lines: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in read("mutation")["mutants"]:
        if mutant["verdict"] in ("harmless", "unseen"):
            lines[mutant["reason"]][mutant["source"]] += 1
    rows = [
        (", ".join(f"{s.removesuffix('.cu')} ({n})" for s, n in sorted(at.items())), why)
        for why, at in sorted(lines.items(), key=lambda item: min(item[1]))
    ]
    shown = [(at.replace(".cu:", ":"), why) for at, why in rows]
    return table(
        ("source line in csrc/kernels (number of removals)", "why the removal is not reported"),
        shown,
        "ll",
    )


def of(found: list[bool]) -> str:
    """A cell such as "3 of 4"."""
    return f"{sum(found)} of {len(found)}" if found else "not run"


def sanitizer() -> str:
    """The same mutants under smemkern, under compute-sanitizer, and in a plain run on the GPU."""
    record = read("mutation-sanitizer")
    ours = {f"{m['image']}:{m['ptx_line']}": m for m in read("mutation")["mutants"]}
    # smemkern reports these only over shapes that the GPU has not run: not comparable.
    later = record["reported_over_more_shapes_only"]
    rows = []
    for kind, what in WHAT.items():
        runs = [r for r in record["runs"] if r["name"] in ours]
        runs = [r for r in runs if ours[r["name"]]["kind"] == kind]
        names = {r["name"] for r in runs}
        if not names:
            continue  # not run on a GPU yet
        cells = [of([ours[n]["verdict"] == "reported" and n not in later for n in sorted(names)])]
        for tool in TOOLS:
            cells.append(of([bool(r["reported"]) for r in runs if r["tool"] == tool]))
        plain = [r for r in runs if r["tool"] == ""]
        cells.append(of([bool(r.get("wrong")) or bool(r.get("failed")) for r in plain]))
        rows.append((what, *cells))
    head = ("removed", "smemkern", *TOOLS, "result wrong on the GPU")
    tool = f"compute-sanitizer {record['version']}"
    return f"{table(head, rows, 'lrrrrrr')}\n\n{record['device']}; {tool}."


def others() -> str:
    """The example mistakes under each tool; Oclgrind runs equivalent OpenCL kernels."""
    sanitized = {(r["name"], r["tool"]): r for r in read("mutation-sanitizer")["runs"]}
    opencl = read("mutation-oclgrind")
    ports = {r["kernel"]: r for r in opencl["runs"] if r["removed"] == "none"}
    rows = []
    for mistake in smemkern.mistakes.rows():
        runs = [sanitized[key] for tool in TOOLS if (key := (mistake.name, tool)) in sanitized]
        by = ", ".join(run["tool"] for run in runs if run["reported"])
        by = by or ("nothing" if runs else "not run")
        port = ports.get(mistake.name)
        said = ", ".join(port["kinds"]) or "nothing" if port else "no OpenCL version"
        kinds = ", ".join(sorted({hazard.kind for hazard in mistake.trace().hazards}))
        rows.append((mistake.name, kinds, by, said))
    names = {m.name for m in smemkern.mistakes.rows()}
    found: dict[str, list[bool]] = defaultdict(list)
    for run in opencl["runs"]:
        if run["kernel"] not in names:
            found[run["removed"]].append(run["reported"])
    kernels = len({r["kernel"] for r in opencl["runs"]} - names)
    return (
        table(("mistake", "smemkern", "compute-sanitizer", "Oclgrind"), rows, "llll")
        + f"\n\nOclgrind {opencl['version']} on the OpenCL versions of {kernels} kernels reports: "
        f"barriers {of(found['barrier'])}, bounds checks {of(found['bounds'])}, "
        f"unmutated {of(found['none'])}."
    )


def litmus() -> str:
    """The published litmus tests, by verdict and by the model."""
    record = read("litmus")
    by_verdict, suites = record["by_verdict"], record["by_model"]
    names = {
        "race, right": "race by the verdict: reported",
        "race, wrong": "race by the verdict: not reported",
        "ordered, right": "no race by the verdict: no report",
        "ordered, wrong": "no race by the verdict: reported",
    }
    counts = by_verdict["counts"]
    rows = [(title, counts.get(name, 0)) for name, title in names.items()]
    rest = sorted((n, c) for n, c in counts.items() if n not in names)
    rows += [(name.replace("judged: ", "judged by a verdict: "), count) for name, count in rest]
    cells = ("race, report", "none, none", "race, none", "none, report")
    titles = ("races reported", "no race, no report", "races missed", "false reports")
    models = [
        (name, suite["tests"], suite["executions"], *(suite["cells"].get(c, 0) for c in cells))
        for name, suite in suites.items()
    ]
    outcomes = sorted(by_verdict["outcomes"].items())
    same, computed = by_verdict["model"].get("same", 0), by_verdict["model"].get("different", 0)
    return (
        f"{table(('test', 'tests'), rows, 'lr')}\n\n"
        f"{table(('outcome that the verdict is about', 'tests'), outcomes, 'lr')}\n\n"
        f"The model has the published verdict in {same} of {same + computed} tests that it can "
        "compute. Places by execution, against the model:\n\n"
        f"{table(('suite', 'tests', 'executions', *titles), models, 'lrrrrrr')}\n\n"
        f"{record['source']}, seed {record['seed']}."
    )


def mixed() -> str:
    """The litmus tests on proxies, and why some differ."""
    record = read("litmus-mixed")
    names = {
        "race, right": "race by the verdict: reported",
        "race, wrong": "race by the verdict: not reported",
        "ordered, right": "no race by the verdict: no report",
        "ordered, wrong": "no race by the verdict: reported",
    }
    rows = [(title, record["counts"].get(name, 0)) for name, title in names.items()]
    rows += [(n, c) for n, c in record["counts"].items() if n not in names]
    cells = record["by_model"]["cells"]
    differ = "\n".join(f"- `{file}`: {reason}." for file, reason in record["reasons"].items())
    return (
        f"{table(('test', 'tests'), rows, 'lr')}\n\n"
        f"Of {len(record['model'])} generic tests {record['by_model']['executions']} executions "
        f"ran: {cells.get('race, report', 0)} races of the model reported, "
        f"{cells.get('race, none', 0)} missed, {cells.get('none, report', 0)} false reports.\n\n"
        f"{differ}\n\n{record['source']}, seed {record['seed']}."
    )


def page(text: str) -> str:
    for part in (mistakes, litmus, mixed, mutation, reasons, sanitizer, others):
        pattern = rf"(<!-- {part.__name__} -->\n).*?(<!-- end -->)"
        made = part()
        text = re.sub(pattern, lambda m, p=made: f"{m[1]}{p}\n{m[2]}", text, count=1, flags=re.S)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
