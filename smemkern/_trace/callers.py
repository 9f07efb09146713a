"""Lines of the program's host code, for the return addresses that csrc/driver/report.c writes."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._compiler.demangle import demangled


class Caller(NamedTuple):
    """A line of the program, as far as its debug information tells."""

    file: str | None  # the path; None: not known
    line: int
    text: str  # "saxpy.cu:12", "main in saxpy", "saxpy"


def load_address(path: str) -> int | None:
    """The address that a program's file is linked for: 0 if it can be anywhere. None: no ELF."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if head[:5] != b"\x7fELF\x02":
                return None
            [kind], [at] = struct.unpack_from("<H", head, 16), struct.unpack_from("<Q", head, 32)
            size, n = struct.unpack_from("<HH", head, 54)
            file.seek(at)
            segments = file.read(min(size * n, 1 << 22))
        if kind != 2:  # ET_EXEC
            return 0
        loads = [
            struct.unpack_from("<Q", segments, k * size + 16)[0]
            for k in range(n)
            if struct.unpack_from("<I", segments, k * size)[0] == 1
        ]
    except (OSError, ValueError, struct.error):
        return None
    return min(loads, default=0)


# Those of C++ have no suffix.
_HEADER = re.compile(r"\.(h|hh|hpp|cuh|inl)$|\.stub\.c$|(^|/)[^/.]+$")
_STUB = "__device_stub_"  # in the names of the functions that nvcc makes for each kernel
# Objects of the system, and Python's.
_SYSTEM = re.compile(r"/(lib(c|dl|m|pthread|stdc\+\+|python[\d.]*)|ld)[.-][^/]*$|/python[\d.]*$")


class _Frame(NamedTuple):
    """A function in which a return address is, maybe inlined into the next one."""

    name: str
    file: str  # "": not known
    line: int

    @classmethod
    def of(cls, name: str, where: str) -> _Frame:
        found = re.match(r"(?P<file>.+):(?P<line>\d+)", where)
        if not found or found["file"] == "??":
            return cls(name, "", 0)
        return cls(name, found["file"], int(found["line"]))


class Lines:
    """The lines of return addresses, by addr2line where that exists."""

    def __init__(self, records: Iterable[Mapping[str, Any]]) -> None:
        wanted: dict[str, set[int]] = {}
        for record in records:
            memory = record.get("allocation") or {}
            lists = [record.get("callers"), memory.get("callers"), memory.get("freed")]
            for one in (record.get("allocations") or {}).values():
                lists += [one["callers"], one["freed"]]
            for frames in lists:
                for path, offset, _ in frames or ():
                    if not _SYSTEM.search(path):
                        wanted.setdefault(path, set()).add(offset)
        self._known: dict[tuple[str, int], list[_Frame]] = {}
        if shutil.which("addr2line"):
            for path, offsets in wanted.items():
                self._ask(path, sorted(offsets))

    def _ask(self, path: str, offsets: Sequence[int]) -> None:
        base = load_address(path)
        if base is None:
            return
        # A return address is behind its call, so the byte before it is asked for.
        asked = "".join(f"{base + offset - 1:#x}\n" for offset in offsets)
        try:
            told = subprocess.run(
                ["addr2line", "-a", "-i", "-f", "-e", path],
                input=asked,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=120,
                check=True,
            ).stdout
        except (OSError, subprocess.SubprocessError):
            return
        # The address, and then two lines for its function and for each that this one is inlined in.
        answers = re.split(r"^0x[0-9a-f]+\n", told, flags=re.MULTILINE)[1:]
        for offset, answer in zip(offsets, answers, strict=False):
            rows = answer.splitlines()
            self._known[path, offset] = [
                _Frame.of(name, where) for name, where in zip(rows[::2], rows[1::2], strict=False)
            ]

    def caller(self, frames: Sequence[Sequence[Any]], kernel: str = "") -> Caller:
        """The innermost frame with a line in a source, else in a header: CUDA's have wrappers."""
        known = [
            self._known.get((path, offset), [])
            for path, offset, _ in frames
            if not _SYSTEM.search(path)
        ]
        if kernel:
            known = _behind_stub(known, demangled(kernel).plain)
        lines = [one for inlined in known for one in inlined if one.file and one.line]
        for _, file, line in sorted(lines, key=lambda one: bool(_HEADER.search(one.file))):
            return Caller(file, line, f"{Path(file).name}:{line}")
        own = [path for path, *_ in frames if not _SYSTEM.search(path)]
        main = Path(own[-1]).name if own else "the program"
        return Caller(None, 0, f"a line of {main} (compile with -g to see which)")


def _behind_stub(known: Sequence[list[_Frame]], kernel: str) -> list[list[_Frame]]:
    """The frames that are callers of a launch.

    nvcc makes a stub for a kernel, two for a template, and a function with the kernel's name and
    line, which calls the stub. That function can be inlined. addr2line then shows it by its own
    name, or by that of the function around it if it is static.
    """
    stubs = [
        (n, k)
        for n, inlined in enumerate(known)
        for k, one in enumerate(inlined)
        if _STUB in one.name
    ]
    if not stubs:
        return list(known)
    n, k = stubs[-1]
    rest = [one for one in (known[n][k + 1 :], *known[n + 1 :]) if one]
    if rest and _is_launcher(rest[0], kernel):
        rest[0] = rest[0][1:]
    return rest


def _is_launcher(inlined: Sequence[_Frame], kernel: str) -> bool:
    name = inlined[0].name
    return demangled(name).plain == kernel or name in [one.name for one in inlined[1:2]]
