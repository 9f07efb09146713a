"""What a program did under `smemkern run`: the records of csrc/driver/report.c, by kernel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._compiler import shared_arrays
from .._compiler.demangle import demangled
from .._compiler.wording import readable
from . import hazards
from .callers import Caller, Lines
from .hazards import Hazard, place
from .launch import Launch
from .observe import Trace


class Misuse(NamedTuple):
    """A wrong call of the host."""

    kind: str  # "use-after-free", "double-free", "copy-out-of-bounds", "leak", ...
    message: str
    caller: Caller
    allocated: Caller | None  # of the memory that the call is about
    freed: Caller | None
    count: int  # type: ignore[assignment]   # of the same message at the same line


class Known(NamedTuple):
    """What a rule of suppressions can match of a finding."""

    kind: str
    kernels: tuple[str, ...]  # its names: mangled, and as C++ writes it; empty: the host's
    lines: tuple[str, ...]  # "sum.cu:10": of its places


class KernelRuns(NamedTuple):
    """All launches of one kernel."""

    name: str
    launches: int
    examined: int  # with counts
    seconds: float
    callers: tuple[Caller, ...]  # where it is launched
    errors: tuple[str, ...]  # launches that failed
    interrupted: tuple[str, ...]  # launches that Ctrl-C ended: where they were
    full: int  # launches whose record of accesses became full: hazards are those until then
    newer_ptx: int | None  # 120: its PTX is for sm_120, which is newer than the GPU
    trace: Trace | None  # the sums of the launches that were examined

    @property
    def written(self) -> str:
        return demangled(self.name).written


class ProgramRun(NamedTuple):
    """A run of a program."""

    started: bool  # it called cuInit
    ended: bool  # it came to its end: leaks are known
    kernels: tuple[KernelRuns, ...]
    misuses: tuple[Misuse, ...]
    leaks: tuple[Misuse, ...]
    unsupported: tuple[tuple[str, Caller], ...]

    def known(self) -> list[Known]:
        """All findings, as rules of suppressions see them."""
        return [
            *(known(row, one) for one in self.kernels if one.trace for row in one.trace.hazards),
            *(_known_misuse(one) for one in (*self.misuses, *self.leaks)),
            *(_known_call(caller) for _, caller in self.unsupported),
        ]


def known(hazard: Hazard, kernel: KernelRuns | str) -> Known:
    """A kernel's hazard."""
    name = kernel if isinstance(kernel, str) else kernel.name
    places = ((hazard.file, hazard.line), (hazard.other_file, hazard.other_line))
    lines = dict.fromkeys(place(file, line) for file, line in places if line)
    return Known(hazard.kind, tuple(dict.fromkeys((name, demangled(name).written))), tuple(lines))


def _known_misuse(misuse: Misuse) -> Known:
    return Known(misuse.kind, (), (misuse.caller.text,) if misuse.caller.file else ())


def _known_call(caller: Caller) -> Known:
    return Known("unsupported-call", (), (caller.text,) if caller.file else ())


def read(file: Path, is_suppressed: Callable[[Known], bool] = lambda _: False) -> ProgramRun:
    """Reads the records of a run, without findings that are suppressed.

    A last line that is cut off is left out.
    """
    records = []
    for line in file.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    lines = Lines(records)
    launches: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        if record["record"] == "launch":
            launches.setdefault(record["kernel"], []).append(record)
    wrong = [record for record in records if record["record"] == "misuse"]
    kinds = {record["record"] for record in records}
    misuses = [one for one in _misuses(wrong, lines) if not is_suppressed(_known_misuse(one))]
    unsupported = [
        (record["call"], lines.caller(record["callers"]))
        for record in records
        if record["record"] == "unsupported"
    ]
    return ProgramRun(
        started="start" in kinds,
        ended="end" in kinds,
        kernels=tuple(_kernel(name, of, lines, is_suppressed) for name, of in launches.items()),
        misuses=tuple(one for one in misuses if one.kind != "leak"),
        leaks=tuple(one for one in misuses if one.kind == "leak"),
        unsupported=tuple(one for one in unsupported if not is_suppressed(_known_call(one[1]))),
    )


# ---- misuse ----


def _misuses(records: Iterable[Mapping[str, Any]], lines: Lines) -> tuple[Misuse, ...]:
    found: dict[tuple[str, str, str], Misuse] = {}
    for record in records:
        memory = record["allocation"]
        allocated = lines.caller(memory["callers"]) if memory else None
        freed = lines.caller(memory["freed"]) if memory and not memory["live"] else None
        message = record["message"]
        if record["kind"] == "leak":
            message = f"{_described(memory)} is not freed when the program ends"
        caller = lines.caller(record["callers"])
        key = (record["kind"], message, caller.text)
        before = found.get(key)
        count = before.count + 1 if before else 1
        found[key] = Misuse(record["kind"], message, caller, allocated, freed, count)
    return tuple(found.values())


def _described(memory: Mapping[str, Any]) -> str:
    return f"{memory['kind']} of {memory['bytes']} bytes"


# ---- kernels ----


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def _kernel(
    name: str,
    records: Sequence[Mapping[str, Any]],
    lines: Lines,
    is_suppressed: Callable[[Known], bool],
) -> KernelRuns:
    traced = [record for record in records if record["trace"] is not None]
    callers = dict.fromkeys(lines.caller(record["callers"], name) for record in records)
    failed = dict.fromkeys(
        (readable(record["error"]), record["interrupted"]) for record in records if record["error"]
    )
    return KernelRuns(
        name,
        len(records),
        len(traced),
        sum(record["seconds"] for record in records),
        tuple(callers),
        tuple(error for error, interrupted in failed if not interrupted),
        tuple(error for error, interrupted in failed if interrupted),
        sum(record["full"] for record in records),
        max(record["newer_ptx"] for record in records) or None,
        _trace(name, traced, lines, is_suppressed) if traced else None,
    )


def _trace(
    name: str,
    records: Sequence[Mapping[str, Any]],
    lines: Lines,
    is_suppressed: Callable[[Known], bool],
) -> Trace:
    raws = [_tuples(record["trace"]) for record in records]
    sites = _merged_sites([raw[0] for raw in raws])
    names: list[str] = []
    found: dict[tuple[Any, ...], list[Any]] = {}
    for record, raw in zip(records, raws, strict=True):
        for one in raw[3]:
            kind, party, other, space, *_ = one
            key = (kind, party[:2], other[:2], space)
            if key in found:
                found[key][10] += one[10]
                continue
            found[key] = list(one)
            memory = record["allocations"].get(str(one[6]))
            found[key][6] = len(names) if memory else -1
            if memory:
                names.append(_name_of(memory, lines))
    opcodes: dict[str, tuple[int, ...]] = {}
    for raw in raws:
        for opcode, counts in raw[1].items():
            before = opcodes.get(opcode, (0, 0, 0))
            opcodes[opcode] = tuple(a + b for a, b in zip(before, counts, strict=True))
    totals = {key: sum(raw[2][key] for raw in raws) for key in raws[0][2]}
    totals["shared_bytes"] = max(raw[2]["shared_bytes"] for raw in raws)
    args = [None] * len(names)
    sources = _sources(sites, found.values())

    def arrays(variables: Iterable[str]) -> shared_arrays.Known:
        return shared_arrays.named_arrays(variables, sources.values())

    hazard_rows = [
        raw
        for raw in map(tuple, found.values())
        for row in (one for some in hazards.rows([raw], names, args, arrays) for one in some)
        if not is_suppressed(known(row, name))
    ]
    raw = (
        sites,
        opcodes,
        totals,
        hazard_rows,
        any(one[4] for one in raws),
        any(one[5] for one in raws),
        (),
    )
    grids = tuple(_tuples(record["grid"]) for record in records)
    launch = Launch(
        name,
        "Kernel",
        None,
        None,
        grids,
        _tuples(records[0]["block"]),
        sources,
    )
    return Trace(None, raw, hazards.rows(hazard_rows, names, args, arrays), launch)


def _name_of(memory: Mapping[str, Any], lines: Lines) -> str:
    where = lines.caller(memory["callers"])
    freed = "" if memory["live"] else f", freed at {lines.caller(memory['freed']).text}"
    at = f" at {where.text}" if where.file else ""
    return f"{_described(memory)} ({memory['call']}{at}{freed})"


def _merged_sites(lists: Sequence[Sequence[tuple[Any, ...]]]) -> tuple[tuple[Any, ...], ...]:
    """The sums over launches. The k-th instruction of a line is the same one in each launch."""
    merged: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for sites in lists:
        seen: dict[tuple[Any, ...], int] = {}
        for site in sites:
            shared, file, line, op, width, requests, cost, ideal, worst, size = site[:10]
            way, callers, request, *machine = site[10:]
            same = (shared, file, line, op, width, way, callers)
            seen[same] = seen.get(same, 0) + 1
            key = (*same, seen[same])
            before = merged.get(key)
            if before is not None:
                sums = (requests, cost, ideal, size, *machine)
                old = (*before[5:8], before[9], *before[13:])
                requests, cost, ideal, size, *machine = (
                    a + b for a, b in zip(sums, old, strict=True)
                )
                if before[8] >= worst:
                    worst, request = before[8], before[12]
            merged[key] = (
                *(shared, file, line, op, width, requests, cost, ideal, worst, size),
                *(way, callers, request, *machine),
            )
    return tuple(merged.values())


_LARGEST = 16 << 20  # bytes of a source


def _sources(sites: Iterable[tuple[Any, ...]], found: Iterable[Sequence[Any]]) -> dict[str, str]:
    """The texts of the files that line information names, by their names without folders."""
    paths = {site[1] for site in sites}
    paths |= {path for site in sites for path, _ in site[11]}
    for one in found:
        paths |= {one[1][0], one[2][0]}
    texts = {}
    for path in filter(None, paths):
        file = Path(path)
        try:
            if file.stat().st_size <= _LARGEST:
                texts[file.name] = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return texts


def path_of(run: ProgramRun, name: str | None) -> Path | None:
    """A file in the folder of a launching source, where line information has no folder."""
    if name is None:
        return None
    for kernel in run.kernels:
        for caller in kernel.callers:
            if caller.file and (Path(caller.file).parent / name).is_file():
                return Path(caller.file).parent / name
    return Path(name) if Path(name).is_file() else None


__all__ = [
    "Caller",
    "KernelRuns",
    "Known",
    "Misuse",
    "ProgramRun",
    "known",
    "path_of",
    "place",
    "read",
]
