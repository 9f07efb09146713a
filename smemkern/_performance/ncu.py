"""Runs Nsight Compute's ncu and parses its output.

Two pages of its report are read, both as CSV. "raw" has a column per metric and a row per launch.
"source" lists below each line of CUDA C the machine instructions compiled from it, with their
counts. An instruction of an inlined function is listed below each line of its chain of calls.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .. import _core

_PLACES = (
    "/usr/local/cuda/bin",
    "/opt/nvidia/nsight-compute/*",
    "/usr/local/NVIDIA-Nsight-Compute*",
)

TICK = 0.2  # seconds

# ---- running it


def find_ncu() -> str:
    """The path of ncu: on PATH, or in a folder that NVIDIA's installers use."""
    __tracebackhide__ = True
    found = shutil.which("ncu")
    if found:
        return found
    folders = [folder for place in _PLACES for folder in sorted(Path("/").glob(place[1:]))]
    for folder in reversed(folders):
        if os.access(folder / "ncu", os.X_OK):
            return str(folder / "ncu")
    raise _core.Error(
        "Nsight Compute's ncu is neither on PATH nor in " + ", ".join(_PLACES) + "; it comes with "
        "the CUDA Toolkit. smemkern.trace does not need it, and predicts the same counters"
    )


def run(
    command: list[str], environment: dict[str, str], tick: Callable[[], object] | None = None
) -> str:
    """Runs a command and returns its output. Calls tick() every TICK seconds meanwhile."""
    __tracebackhide__ = True
    output, status = _output(command, environment, tick)
    if "ERR_NVGPUCTRPERM" in output:
        raise _core.Error(
            "the driver lets only administrators read the GPU's counters (ERR_NVGPUCTRPERM): run "
            "as root, or load the kernel module with NVreg_RestrictProfilingToAdminUsers=0; in a "
            "container, start it with --cap-add=SYS_ADMIN"
        )
    if status != 0:
        raise _core.Error(
            f"ncu failed with status {status}:\n{shlex.join(command)}\n{output[-4000:]}"
        )
    return output


def _output(
    command: list[str], environment: dict[str, str], tick: Callable[[], object] | None
) -> tuple[str, int]:
    pipe, merged = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(
        command, env=environment, stdout=pipe, stderr=merged, text=True, errors="replace"
    ) as process:
        while True:
            try:
                return process.communicate(timeout=TICK if tick else None)[0], process.returncode
            except subprocess.TimeoutExpired:
                if tick:
                    tick()
            except BaseException:  # such as Ctrl-C: do not leave ncu running
                process.kill()
                raise


# ---- the page "raw"


def _table_of(text: str) -> list[dict[str, str]]:
    """The CSV part of ncu's output."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"')), len(lines))
    kept = [line for line in lines[begin:] if not line.startswith("==")]
    return list(csv.DictReader(io.StringIO("\n".join(kept))))


def _count(cell: str | None) -> int | None:
    """Parses "1,024", "1024.00", instanced metrics such as "10 (1; 4; 5)", and "n/a" (None)."""
    try:
        return round(float((cell or "").split("(")[0].replace(",", "")))
    except ValueError:
        return None


def totals(text: str, metrics: Iterable[str]) -> dict[str, int | None]:
    """The sum of each metric over the launches; None if this ncu or GPU does not have it.

    The row below the header holds the units and is skipped.
    """
    launches = [row for row in _table_of(text) if (row.get("ID") or "").strip().isdigit()]
    if not launches:
        raise _core.Error(f"ncu saw no launch of the kernel; its output:\n{text[-4000:]}")
    found: dict[str, int | None] = {}
    for metric in metrics:
        counts = [_count(row.get(metric)) for row in launches]
        known = [count for count in counts if count is not None]
        found[metric] = sum(known) if known else None
    return found


# ---- the page "source"

# Machine opcodes, and the `op` of the trace rows that they correspond to.
OPS = {
    "LDS": "load",
    "STS": "store",
    "LDSM": "ldmatrix",
    "STSM": "stmatrix",
    "ATOMS": "atomic",
    "LDGSTS": "copy_async",
    "LDG": "load",
    "STG": "store",
    "ATOMG": "atomic",
    "ATOM": "atomic",
    "REDG": "atomic",
    "RED": "atomic",
    "UBLKCP": "bulk",
    "UTMALDG": "bulk",
    "HGMMA": "matrix",
}
_INTO_BOTH = ("LDGSTS",)  # from global memory into shared memory
_SHARED = ("LDS", "STS", "LDSM", "STSM", "ATOMS", "HGMMA", *_INTO_BOTH)
_OPCODE = re.compile(r"(?:@!?U?P\w+\s+)?(?P<name>[A-Z0-9]+)(?P<suffix>[.\w]*)")


@dataclass
class Instruction:
    """A memory instruction of the machine code, with its counts over all launches."""

    opcode: str  # up to the first dot
    requests: int = 0  # warps that executed it
    wavefronts: int = 0
    sectors: int = 0
    lines: list[tuple[str, int]] = field(default_factory=list)  # (file name, line)

    @property
    def op(self) -> str:
        return OPS[self.opcode]

    @property
    def spaces(self) -> tuple[str, ...]:
        if self.opcode in _INTO_BOTH:
            return ("shared", "global")
        return ("shared",) if self.opcode in _SHARED else ("global",)


def instructions(text: str) -> list[Instruction]:
    """The memory instructions that were executed; empty if the code has no line information."""
    found: dict[tuple[int, str], Instruction] = {}
    for launch, file, line, cells in _source_rows(text):
        opcode = _OPCODE.match(cells["Machine"].strip())
        if opcode is None or opcode["name"] not in OPS:
            continue
        requests = _count(cells.get("inst_executed")) or 0
        if not requests or not _count(cells.get("thread_inst_executed_true", "1")):
            continue  # never executed by a lane, like the "@!PT LDS RZ" next to cp.async
        one = found.setdefault((launch, cells["Address"]), Instruction(opcode["name"]))
        one.requests = requests
        one.wavefronts = _count(cells.get("memory_l1_wavefronts_shared")) or 0
        one.sectors = _count(cells.get("memory_l2_theoretical_sectors_global")) or 0
        one.lines.append((Path(file).name, line))
    return list(found.values())


def _source_rows(text: str) -> Iterator[tuple[int, str, int, dict[str, str]]]:
    """(launch, file, line, cells) of each instruction listed below a line.

    The header has two columns named Source. The second one, the instruction, is renamed "Machine".
    A file that appears again begins a new launch.
    """
    launch = 0
    seen: set[str] = set()
    file, line, head = "", 0, ["Line No"]
    for row in csv.reader(io.StringIO(text)):
        if len(row) >= 2 and row[0] == "File Path":
            file = row[1]
            if file in seen:
                launch, seen = launch + 1, set()
            seen.add(file)
        elif row and row[0] == "Line No":
            head = row[:3] + ["Machine"] + row[4:]
        elif len(row) == len(head) and len(head) > 1:
            if row[0].isdigit():
                line = int(row[0])
            cells = dict(zip(head, row, strict=True))
            if cells["Address"].startswith("0x"):
                yield launch, file, line, cells
