"""The last touches of messages: names as one writes them, and one byte that is no bytes."""

from __future__ import annotations

import re

from .demangle import demangled

_MANGLED = re.compile(r"_Z\w[\w$]*")
_ONE = re.compile(
    r"(?<![\d.,:-])1 (argument|block|byte|element|lane|line|thread|warp|word|time)s\b"
)
_ONE_WERE = re.compile(r"(?<!\d)1 were given")


def readable(message: str) -> str:
    """A message with its C++ names demangled: `tile<float, 16>`, not `_Z4tileIfLi16EEvPT_`."""
    if "_Z" in message:
        message = _MANGLED.sub(lambda found: demangled(found[0]).written, message)
    message = _ONE.sub(r"1 \1", message)
    return _ONE_WERE.sub("1 was given", message)


def shortened(written: str, longest: int = 120) -> str:
    """A long name without its inner template arguments: "sort<policy<...>, int>"."""
    depth, shown = 8, written
    while len(shown) > longest and depth:
        depth -= 1
        shown = _without_inner(written, depth)
    return shown


def _without_inner(written: str, depth: int) -> str:
    level, shown = 0, ""
    for letter in written:
        level -= letter == ">" and level > 0
        if level <= depth:
            shown += letter
        if letter == "<":
            shown += "..." if level == depth else ""
            level += 1
    return shown
