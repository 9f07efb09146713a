"""The entries of a PTX module, and whether the emulator decodes them."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import smemkern

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\(([^)]*)\))?([^{;]*)\{")
PARAMETER = re.compile(r"\.param\s+(?P<words>(?:\.[\w]+\s+(?:\d+\s+)?)+)(?P<name>[\w$%]+)(?:\[(?P<n>\d+)\])?")
REQUIRED = re.compile(r"\.reqntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")
INSTRUCTION = re.compile(r"does not support the instruction `(?:@!?\S+ )?([\w.:]+)")
# What an error says about one kernel, which does not matter to a list of reasons.
DETAILS = (
    (re.compile(r"\([^()]*:\d+, PTX line \d+\)|PTX line \d+|\(?line \d+\)?"), ""),
    (re.compile(r"in `[^`]*`"), ""),
    (re.compile(r"\b_Z\w+|\bkernel \S+"), "kernel"),
)
REFUSALS = (
    smemkern.UnsupportedInstructionError,
    smemkern.CompileError,
    smemkern.KernelImageError,
    ValueError,
)


@dataclasses.dataclass(frozen=True)
class Entry:
    name: str
    zeros: tuple[Any, ...]  # an argument of zeros for each parameter
    block: tuple[int, ...]  # that it requires, or one thread


def _zero(words: str, n: str | None) -> Any:
    if n is None:
        return 0.0 if re.search(r"\.f(32|64)\b", words) else 0
    kind = re.search(r"\.[bsuf](\d+)\s", words)
    return bytes(int(n) * int(kind[1]) // 8 if kind else int(n))


def entries(ptx: str) -> list[Entry]:
    found = []
    for name, parameters, rest in ENTRY.findall(COMMENT.sub("", ptx)):
        zeros = tuple(_zero(p["words"], p["n"]) for p in PARAMETER.finditer(parameters))
        required = REQUIRED.search(rest)
        block = tuple(int(n or 1) for n in required.groups()) if required else (1, 1, 1)
        found.append(Entry(name, zeros, block))
    return found


def reason(error: Exception) -> str:
    """What is missing, without the kernel's names and lines."""
    text = " ".join(str(error).split())
    if found := INSTRUCTION.search(text):
        return found[1]
    for pattern, instead in DETAILS:
        text = pattern.sub(instead, text)
    return text.strip(" ,:;")[:160]


def refusal(ptx: str, entry: Entry) -> Exception | None:
    """Why the entry does not decode; None if it does.

    A launch decodes the entry and all that it calls before it runs; then the limit ends it."""
    try:
        kernel = smemkern.Kernel(ptx, entry.name)
        kernel(1, entry.block, *entry.zeros, device="emu", max_instructions=1, timeout=60)
    except REFUSALS as error:
        return error
    except smemkern.Error:
        pass  # it ran, and has no memory to work on
    return None
