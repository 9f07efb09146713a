"""PTX as text: whether a text is PTX, the names of its kernels, and the linking of several."""

from __future__ import annotations

import re
from collections.abc import Sequence

_HEADER = re.compile(r"^[ \t]*\.(version|target|address_size)\b.*$", re.M)
_VERSION = re.compile(r"^[ \t]*\.version[ \t]+(\d+)\.(\d+)", re.M)
_FILE = re.compile(r"^([ \t]*\.file[ \t]+)(\d+)\b", re.M)
_LINE = re.compile(r"^([ \t]*\.loc[ \t]+)(\d+)\b(.*)$", re.M)
_INLINED = re.compile(r"(inlined_at[ \t]+)(\d+)")
_ENTRY = re.compile(r"(?:^|\s)\.entry\s+([\w$.]+)\s*(?:\([^)]*\))?[^;{]*\{", re.ASCII)


def is_ptx(text: str) -> bool:
    """PTX begins with .version, possibly after comments; C++ cannot.

    A byte order mark, which ptxas refuses, is for the parser to name.
    """
    return re.match(r"\ufeff?(?:\s|//[^\n]*\n|/\*.*?\*/)*\.version", text, re.DOTALL) is not None


def entry_names(ptx: str) -> list[str]:
    """The kernels that a PTX text defines, by their mangled names."""
    return _ENTRY.findall(ptx)


def link(texts: Sequence[str]) -> str:
    """One PTX text with everything that the texts define, as libraries pass external functions.

    The target is the first text's, the version the newest. The texts define different names, as
    they must for any linker.
    """
    versions = [found.groups() for text in texts if (found := _VERSION.search(text))]
    newest = max((int(major), int(minor)) for major, minor in versions)
    linked = [_VERSION.sub(".version {}.{}".format(*newest), texts[0], count=1)]
    files = _last_file(texts[0])
    for text in dict.fromkeys(texts[1:]):
        body = _HEADER.sub("", text)
        linked.append(_renumbered(body, files))
        files += _last_file(text)
    return "\n".join(linked)


def _last_file(text: str) -> int:
    return max((int(found[2]) for found in _FILE.finditer(text)), default=0)


def _renumbered(text: str, by: int) -> str:
    """The text with the files of its line information numbered from `by` + 1 on."""

    def line(found: re.Match[str]) -> str:
        rest = _INLINED.sub(lambda at: f"{at[1]}{int(at[2]) + by}", found[3])
        return f"{found[1]}{int(found[2]) + by}{rest}"

    text = _FILE.sub(lambda found: f"{found[1]}{int(found[2]) + by}", text)
    return _LINE.sub(line, text)
