"""Suppressions: findings that a file declares as known, as Valgrind has them.

    {
       what it is
       kind: RAW
       kernel: sum*
       line: sum.cu:10
    }

A rule needs at least one of kind, kernel and line; a finding has to match all that it has. `*`
stands for any text, `?` for one character. Lines that begin with # are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from .._trace.program import Known

KEYS = ("kind", "kernel", "line")


class Rule:
    """One rule, and how often it matched."""

    def __init__(self, name: str, file: Path, patterns: dict[str, str]) -> None:
        self.name = name
        self.file = file
        self.count = 0
        self._patterns = {key: _pattern(text) for key, text in patterns.items()}

    def matches(self, found: Known) -> bool:
        texts = {"kind": (found.kind,), "kernel": found.kernels, "line": found.lines}
        return all(
            any(pattern.fullmatch(text) for text in texts[key])
            for key, pattern in self._patterns.items()
        )


def _pattern(text: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(one, re.escape(one)) for one in text), re.DOTALL)


class Suppressions:
    """The rules of some files."""

    def __init__(self, files: Iterable[Path] = ()) -> None:
        self.rules = [rule for file in files for rule in read(file)]

    def __call__(self, found: Known) -> bool:
        """Whether a rule matches; counts it for the first one that does."""
        for rule in self.rules:
            if rule.matches(found):
                rule.count += 1
                return True
        return False


def read(file: Path) -> list[Rule]:
    """The rules of a file.

    Raises
    ------
    ValueError
        With file and line, if the file is none of suppressions.
    """
    rules: list[Rule] = []
    name: str | None = None
    patterns: dict[str, str] | None = None
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        wrong = None
        if patterns is None:
            wrong = None if text == "{" else f"expected '{{', found {text!r}"
            name, patterns = None, {}
        elif text == "}":
            wrong = None if patterns else "a rule needs at least one of kind, kernel and line"
            rules.append(Rule(name or "", file, patterns))
            patterns = None
        elif name is None:
            name = text
        else:
            key, _, value = (part.strip() for part in text.partition(":"))
            if key not in KEYS or not value:
                wrong = f"expected 'kind: ', 'kernel: ' or 'line: ' with a pattern, found {text!r}"
            elif key in patterns:
                wrong = f"a second {key!r} in one rule"
            patterns[key] = value
        if wrong:
            raise ValueError(f"{file}:{number}: {wrong}")
    if patterns is not None:
        raise ValueError(f"{file}: expected '}}' at the end of the file")
    return rules


def text_of(found: Sequence[Known]) -> str:
    """A file with a rule for each of these findings."""
    rules = []
    for one in dict.fromkeys(found):
        lines = [f"kind: {one.kind}"]
        lines += [f"kernel: {one.kernels[-1]}"] if one.kernels else []
        lines += [f"line: {one.lines[0]}"] if one.lines else []
        name = " at ".join((one.kind, *one.lines[:1]))
        rules.append("{\n" + "".join(f"   {line}\n" for line in (name, *lines)) + "}\n")
    return "".join(rules)
