"""python -m smemkern run: a CUDA program, with the emulator in place of driver and GPU."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import _core
from .._device.emulated import EmulatedDevice, emulated_device, names
from .._render.document import Listing, Node, Paragraph
from .._render.table import Cell
from .._reports import findings, formats
from .._reports.findings import Case, Finding, Place, Sources
from .._trace import program
from .._trace.hazards import Hazard, place
from .._trace.program import KernelRuns, Misuse, ProgramRun
from . import common, results
from .common import Answer

SUMMARY = "run a CUDA program on a machine with no GPU, and look for races"
ABOUT = """\
Runs a program as it is, with an emulator in place of the CUDA driver. Then reports for each
kernel its races and other hazards, its bank conflicts line by line, and what it moved; and for
the host uses of freed memory, copies out of bounds and memory that is never freed. The program
needs PTX, which nvcc keeps by default. The exit status is the program's own, or that of
--error-exitcode."""
EXAMPLES = (
    (
        "run --error-exitcode 1 ./sum",
        """\
sum: 1 launch at sum.cu:20, grid (4, 1, 1), block (256, 1, 1)

1. RAW race, shared part[1]: sum.cu:10 reads it in block (0, 0, 0) thread (0, 0, 0), ...
...
1 kernel, 1 launch: 1 hazard, 0 wrong calls, 0 unsupported calls, 1 leak""",
    ),
)
NEXT = (
    "docs/run.md: from a source to a found race in three commands; check and trace: one kernel "
    "with arguments from the command line."
)
FOUND = ""

_DRIVER = Path(_core.__file__).parent / "driver" / "libcuda.so.1"
STDERR = 2  # the descriptor
_CHECKS = {"counts": 1, "hazards": 2}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", help="the program; one in this folder is ./NAME")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    gpu = parser.add_argument(
        "--gpu", default="h100", metavar="NAME", help="the GPU that it sees (default: h100)"
    )
    common.completed(gpu, lambda **_: names())
    parser.add_argument(
        "--kernel",
        metavar="REGEX",
        default="",
        help="examine only these kernels: POSIX extended, searched in the mangled name",
    )
    parser.add_argument(
        "--launches",
        type=_positive,
        default=0,
        metavar="N",
        help="examine only the first N launches of each kernel; the others run faster",
    )
    parser.add_argument("--counts-only", action="store_true", help="do not look for hazards")
    parser.add_argument(
        "--error-exitcode",
        type=_positive,
        default=0,
        metavar="N",
        help="the exit status if something wrong was found",
    )
    parser.add_argument("--html", metavar="FILE", type=Path, help="write an HTML page")
    results.add_limit(parser)
    formats.add_arguments(parser)


def _positive(text: str) -> int:
    value = int(text) if text.isdigit() else 0
    if not 1 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, found {text!r}")
    return value


def run(chosen: argparse.Namespace) -> Answer:
    started = time.perf_counter()
    gpu = emulated_device(chosen.gpu)
    words = _words(chosen)
    with tempfile.TemporaryDirectory(prefix="smemkern-run-") as folder:
        records = Path(folder, "records")
        records.touch()
        for name in ("libcuda.so.1", "libcuda.so"):  # some programs open the second
            Path(folder, name).symlink_to(_DRIVER)
        status = _start(words, _environment(chosen, gpu, records), chosen)
        found = program.read(records)
    if chosen.html:
        chosen.html.write_text(_page(found), encoding="utf-8")
    cases = _cases(found, chosen, time.perf_counter() - started)
    wrong = any(case.errors for case in cases)
    if wrong and chosen.error_exitcode:
        status = chosen.error_exitcode
    nodes = list(_nodes(found, chosen))
    if chosen.html:
        nodes.append(Paragraph(f"wrote {chosen.html}"))
    return Answer(_data(found, gpu, words, status, chosen), nodes, status, cases)


# ---- the program ----


def _words(chosen: argparse.Namespace) -> list[str]:
    """The program's path and its arguments."""
    words = [chosen.program, *chosen.arguments]
    if words[0] == "--":
        words = words[1:]
    path = shutil.which(words[0]) if words else None
    if path is None:
        raise ValueError(
            f"{words[0] if words else ''!r} is no program; write ./NAME for one in this folder"
        )
    return [path, *words[1:]]


def _environment(chosen: argparse.Namespace, gpu: EmulatedDevice, records: Path) -> dict[str, str]:
    if not _DRIVER.is_file():
        raise FileNotFoundError(2, "the emulator's driver was not built", str(_DRIVER))
    folders = [str(records.parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(folders),
        "SMEMKERN_RUN_FILE": str(records),
        "SMEMKERN_RUN_DEVICE": gpu.described(),
        "SMEMKERN_RUN_CHECK": str(_CHECKS["counts" if chosen.counts_only else "hazards"]),
        "SMEMKERN_RUN_KERNEL": chosen.kernel,
        "SMEMKERN_RUN_LAUNCHES": str(chosen.launches),
    }


def _start(words: list[str], environment: dict[str, str], chosen: argparse.Namespace) -> int:
    """Runs the program to its end. Ctrl-C ends it alone, so that the report follows.

    What it prints is kept out of a report on standard output.
    """
    out = STDERR if formats.printed_as(chosen) != "text" else None
    sys.stdout.flush()
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        status = subprocess.Popen(words, env=environment, stdout=out).wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return status if status >= 0 else 128 - status


# ---- the report ----


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _nodes(found: ProgramRun, chosen: argparse.Namespace) -> Iterator[Node]:
    if not found.started:
        yield Paragraph("the program did not call CUDA: there is nothing to report", "dim")
        return
    for kernel in found.kernels:
        yield from _kernel_nodes(kernel, chosen)
    for number, misuse in enumerate((*found.misuses, *found.leaks), 1):
        style = "" if misuse.kind == "leak" else "bad"
        yield Listing([Cell(f"{number}. {_told(misuse)}", style), *_history(misuse)], indent=3)
    for call, caller in found.unsupported:
        yield Paragraph(f"{call}, called at {caller.text}, is not supported", "bad")
    if not found.ended:
        yield Paragraph("the program did not come to its end; this is what it did until then")
    yield Paragraph(_summary(found), "bad" if _is_wrong(found) else "good")


def _kernel_nodes(kernel: KernelRuns, chosen: argparse.Namespace) -> Iterator[Node]:
    yield Paragraph(_launched(kernel))
    for error in kernel.errors:
        yield Paragraph(f"the launch failed: {error}", "bad")
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
    yield Paragraph(
        f"moved per launch: {_each(moved['global_read'], kernel)} read from and "
        f"{_each(moved['global_written'], kernel)} written to global memory, "
        f"{_each(moved['shared_read'] + moved['shared_written'], kernel)} through shared memory"
    )


def _each(total: int, kernel: KernelRuns) -> str:
    return f"{round(total / max(kernel.examined, 1))} bytes"


def _launched(kernel: KernelRuns) -> str:
    trace = kernel.trace
    text = f"{kernel.written}: {_many(kernel.launches, 'launch')}".replace("launchs", "launches")
    if kernel.examined < kernel.launches:
        text += f", {kernel.examined} of them examined"
    places = [caller.text for caller in kernel.callers if caller.file]
    if places:
        text += f" at {', '.join(places[:3])}{', ...' * (len(places) > 3)}"
    if trace is None:
        return text
    grids = list(dict.fromkeys(trace.launch.grids))
    grid = str(grids[0]) if len(grids) == 1 else f"{len(grids)} sizes"
    return f"{text}, grid {grid}, block {trace.launch.block}"


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
    many = f"{launches} launch" + "es" * (launches != 1)
    return f"{_many(len(found.kernels), 'kernel')}, {many}: {', '.join(parts)}"


# ---- for machines ----


def _data(
    found: ProgramRun,
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
        "started": found.started,
        "ended": found.ended,
        "kernels": [_kernel_data(kernel, chosen) for kernel in found.kernels],
        "misuses": [_misuse_data(one) for one in found.misuses],
        "leaks": [_misuse_data(one) for one in found.leaks],
        "unsupported": [
            {"call": call, "file": caller.file, "line": caller.line}
            for call, caller in found.unsupported
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
    }


def _misuse_data(misuse: Misuse) -> dict[str, Any]:
    return {
        "kind": misuse.kind,
        "message": misuse.message,
        "file": misuse.caller.file,
        "line": misuse.caller.line,
        "count": misuse.count,
    }


def _cases(found: ProgramRun, chosen: argparse.Namespace, seconds: float) -> list[Case]:
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


def _page(found: ProgramRun) -> str:
    """One HTML document: each kernel's page, below each other."""
    from html import escape

    from .._trace.page import markup

    parts = [markup(kernel.trace) for kernel in found.kernels if kernel.trace]
    wrong = [f"<p>{escape(_told(misuse))}</p>" for misuse in (*found.misuses, *found.leaks)]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="color-scheme" content="light dark"><title>smemkern run</title></head>'
        f"<body>{''.join(parts)}{''.join(wrong)}<p>{escape(_summary(found))}</p></body></html>\n"
    )
