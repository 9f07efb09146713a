"""The entries of a PTX module, and whether the emulator decodes them."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any

import smemkern

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\(([^)]*)\))?([^{;]*)\{")
PARAMETER = re.compile(
    r"\.param\s+(?P<words>(?:\.[\w]+\s+(?:\d+\s+)?)+)(?P<name>[\w$%]+)(?:\[(?P<n>\d+)\])?"
)
EXTENT = r"\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?"
REQUIRED = re.compile(r"\.reqntid" + EXTENT)
CLUSTER = re.compile(r"\.reqnctapercluster" + EXTENT)
INSTRUCTION = re.compile(r"does not support the instruction `(?:@!?\S+ )?([\w.:]+)([^`]*)")
SPECIAL = re.compile(r", (%[a-z]\w*)$")  # what a mov that is refused reads
# What an error says about one kernel, which does not matter to a list of reasons.
DETAILS = (
    (re.compile(r"\([^()]*:\d+, PTX line \d+\)|PTX line \d+|\(?line \d+\)?"), ""),
    (re.compile(r"in `[^`]*`"), ""),
    (re.compile(r"\b_Z\w+|\bkernel \S+"), "kernel"),
)
BRACES = re.compile(r"[{}]")
EXTERNAL = re.compile(r"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?([\w$%]+)")
KNOWN_EXTERNAL = {"vprintf", "__assertfail", "malloc", "free"}
REFUSALS = (
    smemkern.UnsupportedInstructionError,
    smemkern.CompileError,
    smemkern.KernelImageError,
    ValueError,
)


class MissingFunctionError(Exception):
    """An entry calls a function that is in no file that was compiled with it."""


@dataclasses.dataclass(frozen=True)
class Entry:
    name: str
    zeros: tuple[Any, ...]  # an argument of zeros for each parameter
    block: tuple[int, ...]  # that it requires, or one thread
    grid: tuple[int, ...]  # one cluster, or one block
    external: str  # a function that it calls, and that the emulator would have to supply


def _zero(words: str, n: str | None) -> Any:
    if n is None:
        return 0.0 if re.search(r"\.f(32|64)\b", words) else 0
    kind = re.search(r"\.[bsuf](\d+)\s", words)
    return bytes(int(n) * int(kind[1]) // 8 if kind else int(n))


def _body(text: str, begin: int) -> str:
    """From the opening brace before `begin` to the one that closes it."""
    depth = 1
    for brace in BRACES.finditer(text, begin):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[begin : brace.start()]
    return text[begin:]


def _extent(found: re.Match[str] | None) -> tuple[int, ...]:
    return tuple(int(n or 1) for n in found.groups()) if found else (1, 1, 1)


def entries(ptx: str) -> list[Entry]:
    text, found = COMMENT.sub("", ptx), []
    missing = set(EXTERNAL.findall(text)) - KNOWN_EXTERNAL
    for match in ENTRY.finditer(text):
        name, parameters, rest = match.groups()
        zeros = tuple(_zero(p["words"], p["n"]) for p in PARAMETER.finditer(parameters or ""))
        block, grid = (_extent(pattern.search(rest)) for pattern in (REQUIRED, CLUSTER))
        words = set(re.findall(r"[\w$%]+", _body(text, match.end()))) if missing else set()
        found.append(Entry(name, zeros, block, grid, min(missing & words, default="")))
    return found


def reason(error: Exception) -> str:
    """What is missing, without the kernel's names and lines."""
    text = " ".join(str(error).split())
    if found := INSTRUCTION.search(text):
        special = SPECIAL.search(found[2]) if found[1].startswith("mov.") else None
        return f"{found[1]} {special[1]}" if special else found[1]
    for pattern, instead in DETAILS:
        text = pattern.sub(instead, text)
    return text.strip(" ,:;")[:160]


@functools.lru_cache(maxsize=2)
def _spans(ptx: str) -> dict[str, tuple[int, int]]:
    """Where each entry begins and ends."""
    found = {}
    for match in re.finditer(r"^[ \t]*(?:\.\w+[ \t]+)*\.entry[ \t]+([\w$%]+)", ptx, re.M):
        opened = ptx.find("{", match.end()) + 1
        end = opened + len(_body(ptx, opened)) + 1
        found[match[1]] = (match.start(), end)
    return found


def alone(ptx: str, name: str) -> str:
    """The module without its other entries: a module may have hundreds, and each takes time."""
    kept, at = [], 0
    for other, (begin, end) in _spans(ptx).items():
        if other != name and begin >= at:
            kept.append(ptx[at:begin])
            at = end
    return "".join([*kept, ptx[at:]])


def refusal(ptx: str, entry: Entry) -> Exception | None:
    """Why the entry does not decode; None if it does."""
    short = alone(ptx, entry.name)
    error = _refusal(short, entry)
    return _refusal(ptx, entry) if error and short != ptx else error


def _refusal(ptx: str, entry: Entry) -> Exception | None:
    """A launch decodes the entry and all that it calls before it runs; then the limit ends it."""
    try:
        kernel = smemkern.Kernel(ptx, entry.name)
        kernel(entry.grid, entry.block, *entry.zeros, device="emu", max_instructions=1, timeout=60)
    except REFUSALS as error:
        return error
    except smemkern.Error:
        pass  # it ran, and has no memory to work on
    if entry.external:
        return MissingFunctionError(f"calls {entry.external}, a function of another module")
    return None
