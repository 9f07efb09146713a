"""The report of `smemkern run`: text, data for --json, findings, an HTML page."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._compiler.wording import shortened
from .._device.emulated import EmulatedDevice
from .._render.document import Listing, Node, Paragraph
from .._render.table import Cell
from .._reports import findings
from .._reports.findings import Case, Finding, Place, Sources
from .._reports.suppressions import Suppressions
from .._trace import program
from .._trace.hazards import Hazard, place
from .._trace.observe import Trace
from .._trace.program import KernelRuns, Misuse, ProgramRun
from . import results

# ---- text ----


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def nodes(
    found: ProgramRun, suppressions: Suppressions, chosen: argparse.Namespace, status: int
) -> Iterator[Node]:
    if not found.started:
        yield Paragraph("the program did not call CUDA: there is nothing to report", "dim")
        return
    if chosen.shuffle is not None:
        yield Paragraph(f"work of streams in the order of --shuffle {chosen.shuffle}", "dim")
    for kernel in found.kernels:
        yield from _kernel_nodes(kernel, chosen)
    for number, misuse in enumerate((*found.misuses, *found.leaks), 1):
        style = "" if misuse.kind == "leak" else "bad"
        yield Listing([Cell(f"{number}. {_told(misuse)}", style), *_history(misuse)], indent=3)
    for call, caller in found.unsupported:
        yield Paragraph(f"{call}, called at {caller.text}, is not supported", "bad")
    if not found.ended:
        yield Paragraph(
            f"the program did not come to its end{_signal(status)}; this is what it did until then"
        )
    yield Paragraph(_summary(found), "bad" if _is_wrong(found) else "good")
    yield from _suppressed(suppressions)


def _suppressed(suppressions: Suppressions) -> Iterator[Node]:
    count = sum(rule.count for rule in suppressions.rules)
    if suppressions.rules:
        yield Paragraph(f"{_many(count, 'finding')} suppressed", "dim")
    for rule in suppressions.rules:
        if not rule.count:
            yield Paragraph(f"no finding matches the rule {rule.name!r} of {rule.file}", "dim")


def _signal(status: int) -> str:
    """Of a shell's exit status: " (SIGSEGV)"; "" if the program exited by itself."""
    try:
        return f" ({signal.Signals(status - 128).name})"
    except ValueError:
        return ""


def _notes(kernel: KernelRuns) -> Iterator[str]:
    if kernel.full:
        which = "1 launch" if kernel.full == 1 else f"{kernel.full} launches"
        yield (
            f"the record of accesses became full in {which}: hazards are those until then; "
            "--sample examines fewer blocks"
        )
    if kernel.newer_ptx:
        yield (
            f"its PTX is for compute_{kernel.newer_ptx}, newer than this GPU, which would run "
            "other machine code"
        )


def _kernel_nodes(kernel: KernelRuns, chosen: argparse.Namespace) -> Iterator[Node]:
    yield Paragraph(_launched(kernel))
    for error in kernel.errors:
        yield Paragraph(f"the launch failed: {error}", "bad")
    for where in kernel.interrupted:
        yield Paragraph(f"interrupted; the counts are those until then: {where}", "bad")
    for text in _notes(kernel):
        yield Paragraph(text, "dim")
    trace = kernel.trace
    if trace is None:
        return
    for number, hazard in enumerate(trace.hazards, 1):
        lines = [Cell(f"{number}. {hazard.message}", "bad"), *_quoted(kernel, hazard)]
        yield Listing(lines, indent=3)
    for row in trace.benign:
        yield Paragraph(f"note: {row.message}")
    yield from results.limit_nodes(trace, chosen.max_factor)
    if trace.shared:
        yield trace.shared._table()
    if trace.global_:
        yield trace.global_._table()
    moved = trace.bytes_moved
    whose = "" if _is_whole(trace) else " by the blocks of the sample"
    yield Paragraph(
        f"moved per launch{whose}: {_each(moved['global_read'], kernel)} read from and "
        f"{_each(moved['global_written'], kernel)} written to global memory, "
        f"{_each(moved['shared_read'] + moved['shared_written'], kernel)} through shared memory"
    )


def _is_whole(trace: Trace) -> bool:
    """Whether all blocks were examined."""
    return trace.blocks == trace.grid_blocks or trace.incomplete


def _each(total: int, kernel: KernelRuns) -> str:
    return f"{round(total / max(kernel.examined, 1))} bytes"


def _launched(kernel: KernelRuns) -> str:
    trace = kernel.trace
    text = f"{shortened(kernel.written)}: {_many(kernel.launches, 'launch')}".replace(
        "launchs", "launches"
    )
    if kernel.examined < kernel.launches:
        text += f", {kernel.examined} of them examined"
    places = [caller.text for caller in kernel.callers if caller.file]
    if places:
        text += f" at {', '.join(places[:3])}{', ...' * (len(places) > 3)}"
    if trace is None:
        return text
    grids = list(dict.fromkeys(trace.launch.grids))
    grid = str(grids[0]) if len(grids) == 1 else f"{len(grids)} sizes"
    text += f", grid {grid}, block {trace.launch.block}"
    if not _is_whole(trace):
        text += f"; a sample: {trace.blocks} of {trace.grid_blocks} blocks examined"
    return text


def _quoted(kernel: KernelRuns, hazard: Hazard) -> list[str]:
    """The source lines of a hazard."""
    assert kernel.trace is not None
    known = kernel.trace.launch.sources
    places = {(hazard.file, hazard.line), (hazard.other_file, hazard.other_line or 0)}
    quoted = []
    for name, line in sorted(places, key=str):
        lines = known.get(name or "", "").splitlines()
        if 1 <= line <= len(lines):
            quoted.append(f"     {place(name, line):>20} | {lines[line - 1]}")
    return quoted


def _told(misuse: Misuse) -> str:
    again = f"; {misuse.count} times in total" if misuse.count > 1 else ""
    if misuse.kind == "module":
        return f"{misuse.message}{again}"
    at = "allocated at" if misuse.kind == "leak" else "at"
    return f"{misuse.kind}: {misuse.message}, {at} {misuse.caller.text}{again}"


def _history(misuse: Misuse) -> list[str]:
    told = []
    if misuse.allocated and misuse.kind != "leak" and misuse.allocated.file:
        told.append(f"   allocated at {misuse.allocated.text}")
    if misuse.freed and misuse.freed.file:
        told.append(f"   freed at {misuse.freed.text}")
    return told


def _hazards_of(found: ProgramRun) -> list[Hazard]:
    return [row for kernel in found.kernels if kernel.trace for row in kernel.trace.hazards]


def _is_wrong(found: ProgramRun) -> bool:
    failed = any(kernel.errors for kernel in found.kernels)
    return bool(_hazards_of(found) or found.misuses or found.unsupported or failed)


def _summary(found: ProgramRun) -> str:
    launches = sum(kernel.launches for kernel in found.kernels)
    parts = [
        _many(len(_hazards_of(found)), "hazard"),
        _many(sum(one.count for one in found.misuses), "wrong call"),
        _many(len(found.unsupported), "unsupported call"),
        _many(sum(one.count for one in found.leaks), "leak") if found.ended else "leaks not known",
    ]
    failed = sum(bool(kernel.errors) for kernel in found.kernels)
    if failed:
        parts.insert(0, _many(failed, "failed kernel"))
    many = f"{launches} launch" + "es" * (launches != 1)
    return f"{_many(len(found.kernels), 'kernel')}, {many}: {', '.join(parts)}"


# ---- for machines ----


def data(
    found: ProgramRun,
    suppressions: Suppressions,
    gpu: EmulatedDevice,
    words: list[str],
    status: int,
    chosen: argparse.Namespace,
) -> dict[str, Any]:
    return {
        "program": words[0],
        "arguments": words[1:],
        "gpu": gpu.name,
        "status": status,
        "shuffle": chosen.shuffle,
        "started": found.started,
        "ended": found.ended,
        "kernels": [_kernel_data(kernel, chosen) for kernel in found.kernels],
        "misuses": [_misuse_data(one) for one in found.misuses],
        "leaks": [_misuse_data(one) for one in found.leaks],
        "unsupported": [
            {"call": call, "file": caller.file, "line": caller.line}
            for call, caller in found.unsupported
        ],
        "suppressed": [
            {"rule": rule.name, "file": str(rule.file), "count": rule.count}
            for rule in suppressions.rules
        ],
    }


def _kernel_data(kernel: KernelRuns, chosen: argparse.Namespace) -> dict[str, Any]:
    trace = kernel.trace
    return {
        "kernel": kernel.name,
        "launches": kernel.launches,
        "examined": kernel.examined,
        "seconds": kernel.seconds,
        "errors": kernel.errors,
        "interrupted": kernel.interrupted,
        "full": kernel.full,
        "newer_ptx": kernel.newer_ptx,
        "callers": [{"file": one.file, "line": one.line} for one in kernel.callers],
        "blocks": trace.blocks if trace else 0,
        "grid_blocks": trace.grid_blocks if trace else 0,
        "grids": trace.launch.grids if trace else (),
        "block": trace.launch.block if trace else (),
        "shared_bytes": trace.launch.shared_bytes if trace else None,
        "conflict_factor": trace.conflict_factor if trace else None,
        "bytes_moved": trace.bytes_moved if trace else {},
        "flops": trace.flops if trace else None,
        "warp_instructions": trace.warp_instructions if trace else None,
        "incomplete": trace.incomplete if trace else False,
        "shared": [results.row_data(row) for row in trace.shared] if trace else [],
        "global": [results.row_data(row) for row in trace.global_] if trace else [],
        "hazards": [results.hazard_data(row) for row in trace.hazards] if trace else [],
        "benign": [results.hazard_data(row) for row in trace.benign] if trace else [],
        "max_factor": chosen.max_factor,
        "over_limit": results.limit_data(trace, chosen.max_factor)["over_limit"] if trace else [],
    }


def _misuse_data(misuse: Misuse) -> dict[str, Any]:
    return {
        "kind": misuse.kind,
        "message": misuse.message,
        "file": misuse.caller.file,
        "line": misuse.caller.line,
        "count": misuse.count,
    }


def cases(found: ProgramRun, chosen: argparse.Namespace, seconds: float) -> list[Case]:
    path = Path(chosen.program)
    shown = findings.shown(path)
    cases = []
    for kernel in found.kernels:
        cases.append(Case(f"run {kernel.written}", *_kernel_findings(found, kernel, chosen, shown)))
    wrong = [_misuse_finding(one, shown) for one in (*found.misuses, *found.leaks)]
    wrong += [
        Finding(
            "unsupported-call",
            f"{call} is not supported",
            Place(caller.file or shown, max(caller.line, 1)),
        )
        for call, caller in found.unsupported
    ]
    cases.append(Case(f"run {path.name}", shown, 1, wrong, seconds))
    return cases


def _kernel_findings(
    found: ProgramRun, kernel: KernelRuns, chosen: argparse.Namespace, shown: str
) -> tuple[str, int, list[Finding]]:
    """The file of a kernel, its line, and what was found in it."""
    trace = kernel.trace
    failed = [Finding("error", error, Place(shown, 1)) for error in kernel.errors]
    if trace is None:
        return shown, 1, failed
    rows = [*trace.shared, *trace.global_]
    name = next((row.file for row in rows if row.file), None)
    file = program.path_of(found, name) or Path(chosen.program)
    sources = Sources(file)
    listed = [
        *failed,
        *(findings.of_hazard(row, sources) for row in trace.hazards),
        *(
            findings.of_row(row, chosen.max_factor, sources)
            for row in findings.over_limit(trace.shared, chosen.max_factor)
        ),
        *(findings.of_hazard(row, sources, "note") for row in trace.benign),
    ]
    return findings.shown(file), 1, listed


def _misuse_finding(misuse: Misuse, shown: str) -> Finding:
    where = Place(misuse.caller.file or shown, max(misuse.caller.line, 1))
    level = "note" if misuse.kind == "leak" else "error"
    return Finding(misuse.kind, misuse.message, where, (), level)


def page(found: ProgramRun) -> str:
    """One HTML document: each kernel's page, below each other."""
    from html import escape

    from .._trace.page import markup

    parts = []
    for kernel in found.kernels:
        told = [f"the launch failed: {error}" for error in kernel.errors]
        told += [f"interrupted: {where}" for where in kernel.interrupted]
        told += _notes(kernel)
        parts += [f"<p>{escape(text)}</p>" for text in (_launched(kernel), *told)]
        parts.append(markup(kernel.trace) if kernel.trace else "")
    texts = [_told(misuse) for misuse in (*found.misuses, *found.leaks)]
    texts += [f"{call}, called at {at.text}, is not supported" for call, at in found.unsupported]
    texts += [] if found.ended else ["the program did not come to its end"]
    wrong = [f"<p>{escape(text)}</p>" for text in texts]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="color-scheme" content="light dark"><title>smemkern run</title></head>'
        f"<body>{''.join(parts)}{''.join(wrong)}<p>{escape(_summary(found))}</p></body></html>\n"
    )
