"""Findings: what a command found, in one form for every report (formats.py).

A hazard, a line whose conflict factor is over a limit, a wrong result and an error all become a
Finding with a rule, a message and a place in a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from .._trace.hazards import Hazard
from .._trace.rows import SharedRow, place

# The rules and what they mean. Hazards have the kinds of docs/hazards.md.
RULES = {
    "RAW": "A read and an earlier write of another thread are not ordered.",
    "WAR": "A write and an earlier read of another thread are not ordered.",
    "WAW": "Two writes of different threads are not ordered.",
    "uninitialised": "A read of memory that was never written.",
    "unwritten": "Words of the result that no thread writes.",
    "async-read": "A read of an asynchronous copy's destination before the wait for the copy.",
    "async-write": "A write to memory that an asynchronous operation still uses.",
    "overlap": "An access that does not wait for an earlier launch of the same call.",
    "proxy": "The async proxy reads a write without a fence.proxy.async after it.",
    "barrier": "A barrier that some threads never reach.",
    "deadlock": "No thread can continue.",
    "out-of-bounds": "An access outside of all memory of the kernel.",
    "misaligned": "An access whose address is not a multiple of its width.",
    "exited": "An access to the shared memory of a block that may have exited.",
    "shuffle": "A shuffle that reads a lane which does not take part.",
    "shared-limit": "More shared memory than a block can have.",
    "cas-read": "A racing read whose value a compare-and-swap checks.",
    "proxy-init": "An mbarrier without a fence after its initialisation.",
    "shuffle-outside": "A shuffle that reads a lane outside of its mask.",
    "bank-conflict": "The conflict factor of a line is over the limit.",
    "wrong-result": "The kernel's result differs from the reference's.",
    "no-end": "The kernel did not end within its limit of instructions or time.",
    "does-not-run": "The kernel does not compile, or cannot be launched.",
    "use-after-free": "A call of the host uses memory that is free.",
    "double-free": "Memory is freed twice.",
    "invalid-free": "An address is freed that is no allocation's.",
    "invalid-address": "A call of the host uses an address that no call has allocated.",
    "copy-out-of-bounds": "A copy accesses memory outside of an allocation.",
    "unwritten-copy": "A copy to the host reads memory that was never written.",
    "not-awaited": "The program ends before work on a stream has run.",
    "leak": "Memory is not freed when the program ends.",
    "module": "Device code cannot be loaded.",
    "unsupported-call": "A call that the emulator's driver does not have.",
    "error": "The command could not be run.",
}


class Place(NamedTuple):
    """A line of a file. The path is relative to the working directory if it is below that."""

    file: str
    line: int
    label: str = ""


class Finding(NamedTuple):
    """One finding."""

    rule: str  # a key of RULES
    message: str
    place: Place
    related: tuple[Place, ...] = ()
    level: str = "error"  # "error", "note"


class Case(NamedTuple):
    """One checked kernel: a test case of JUnit."""

    name: str  # "check sum --grid 4"
    file: str
    line: int
    findings: Sequence[Finding]
    seconds: float = 0.0

    @property
    def errors(self) -> list[Finding]:
        """The findings that make the case fail."""
        return [finding for finding in self.findings if finding.level == "error"]


_LONGEST_FILE = 16 << 20  # bytes of a source that is searched for #include


class Sources:
    """The files that line information can name for a kernel of `file`.

    Line information has names without folders, so the included files are searched as the compiler
    searches them: beside the file that includes them, then in the folders of -I.
    """

    def __init__(self, file: Path, options: Iterable[str] = ()) -> None:
        self.file = file
        self._folders = [Path(folder) for folder in _include_folders(list(options))]
        self._known: dict[str, Path] | None = None

    def find(self, name: str | None, line: int | None) -> Place:
        """The place of a line. NVRTC's name for the text of the file itself is kernel.cu."""
        own = name is None or Path(name).name in ("kernel.cu", self.file.name)
        path = None if own else self._included().get(Path(str(name)).name)
        if own or path is None:
            known = own and line
            return Place(shown(self.file), line if known and line else 1)
        return Place(shown(path), line or 1)

    def named(self, message: str) -> str:
        """A message with the file's own name in place of NVRTC's."""
        own = self.file.name
        return re.sub(r"\bkernel\.cu(?=:\d)", lambda _: own, message)

    def _included(self) -> dict[str, Path]:
        if self._known is None:
            self._known = {}
            self._follow(self.file)
        return self._known

    def _follow(self, file: Path) -> None:
        """Adds the files that a file includes, and those that they include."""
        assert self._known is not None
        try:
            if file.stat().st_size > _LONGEST_FILE:
                return
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', text, re.M):
            for folder in (file.parent, *self._folders):
                path = folder / name
                if path.is_file() and path.name not in self._known and len(self._known) < 1000:
                    self._known[path.name] = path
                    self._follow(path)
                    break


def _include_folders(options: Sequence[str]) -> list[str]:
    """The folders of -I options: -Ifolder, -I folder, --include-path=folder."""
    found = []
    for at, option in enumerate(options):
        for start in ("--include-path=", "-I"):
            if option.startswith(start) and len(option) > len(start):
                found.append(option[len(start) :])
                break
        if option in ("-I", "--include-path") and at + 1 < len(options):
            found.append(options[at + 1])
    return found


def shown(path: Path) -> str:
    """A path as reports name it: relative to the working directory if it is below that."""
    whole = os.path.abspath(path)
    inside = os.path.relpath(whole)
    return (whole if inside.startswith(os.pardir) else inside).replace(os.sep, "/")


def of_hazard(hazard: Hazard, sources: Sources, level: str = "error") -> Finding:
    """The finding for a hazard."""
    related: tuple[Place, ...] = ()
    where = sources.find(hazard.file, hazard.line)
    if hazard.other_line:
        other = sources.find(hazard.other_file, hazard.other_line)
        related = (other._replace(label="the other access"),) if other != where else ()
    message = sources.named(hazard.message.strip() or RULES.get(hazard.kind, hazard.kind))
    return Finding(hazard.kind, message, where, related, level)


def over_limit(rows: Iterable[SharedRow], limit: float | None) -> list[SharedRow]:
    """The rows of shared memory whose factor is over the limit; with machine code read, its."""
    if limit is None:
        return []
    return [row for row in rows if factor_of(row) > limit * (1 + 1e-9)]


def factor_of(row: SharedRow) -> float:
    """A row's factor: of the machine code if that was read, else of the PTX."""
    return row.machine_factor if row.machine_source == "machine code" else row.factor


def conflict_message(row: SharedRow, limit: float) -> str:
    """What is over the limit, in one line."""
    return (
        f"bank conflicts: {place(row)} {row.op}: factor {factor_of(row):.2f} is over the limit of "
        f"{limit:g} (requests: {row.requests}, wavefronts: {row.wavefronts}, worst: {row.worst})"
    )


def of_row(row: SharedRow, limit: float, sources: Sources) -> Finding:
    """The finding for a row that is over the limit."""
    callers = tuple(
        sources.find(file, line)._replace(label="inlined here") for file, line in row.callers
    )
    where = sources.find(row.file, row.line)
    message = sources.named(conflict_message(row, limit))
    return Finding("bank-conflict", message, where, callers)


_COMPILER = re.compile(r"^(?P<file>[^\s(:]+)\((?P<line>\d+)\): (?:catastrophic )?error\b.*$", re.M)


def of_error(message: str, sources: Sources) -> list[Finding]:
    """The findings for an error that ended a command: a compiler's errors, each at its line."""
    found = [
        Finding("error", match[0], sources.find(match["file"], int(match["line"])))
        for match in _COMPILER.finditer(message)
    ]
    return found or [Finding("error", message, sources.find(None, None))]
