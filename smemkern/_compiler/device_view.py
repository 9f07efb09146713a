"""Compiles a whole .cu file by NVRTC, which knows no host code: without the host code that fails.

NVRTC compiles each function that has no annotation as a device function (-default-device). Host
functions that nothing calls leave no trace in the PTX, but the templates that they launch are
instantiated. What of them does not compile is blanked, statement by statement; what device code
needs is never touched. Lines keep their numbers.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from .. import _core
from . import shims
from .includes import File, Includes
from .outline import BRANCHES, Item, Outline, every

ROUNDS = 40
SECONDS = 60  # of this process on a core
_STATEMENT_ROUNDS = 2  # rounds in which statements of one function are blanked; then all of it
_LAUNCH_ROUNDS = 8  # the same for a function that launches kernels

Compile = Callable[[str, dict[str, str], Sequence[str]], bytes]


class Place(NamedTuple):
    file: str
    line: int
    column: int | None  # from 0


class Diagnostic(NamedTuple):
    """An error in the log of NVRTC, and the places that led to it, such as instantiations."""

    places: tuple[Place, ...]
    message: str
    text: str  # with the quoted line


_START = re.compile(
    r"^(?P<file>\S.*?)\((?P<line>\d+)\): (?P<kind>(?:catastrophic )?error|warning|remark|note)"
    r"(?: #\S+)?: (?P<message>.*)$",
    re.MULTILINE,
)
# The head of a function is none, so that the parser takes its body for declarations.
_LOST = re.compile(
    r'incomplete type "void" is not allowed|expected a declaration'
    "|this declaration has no storage class"
)
_FROM = re.compile(r"at line (\d+)(?: of (\S.*?))?$", re.MULTILINE)
_SUMMARY = re.compile(
    r"^(?:Error limit reached\.|\d+ errors? detected in|.*\d+ catastrophic error|Remark: )"
    r"|^\S.* note #",
    re.MULTILINE,
)


def diagnostics(log: str) -> list[Diagnostic]:
    """The errors of a log."""
    starts = [*_START.finditer(log)]
    if not starts:
        return []
    ends = [start.start() for start in starts[1:]] + [len(log)]
    found = []
    for start, end in zip(starts, ends, strict=True):
        if "error" not in start["kind"]:
            continue
        text = _SUMMARY.split(log[start.start() : end])[0].rstrip()
        column = None
        caret = re.search(r"^(\s*)\^", text, re.MULTILINE)
        if caret:
            column = max(len(caret[1].lstrip("\n")) - 2, 0)
        places = [Place(start["file"], int(start["line"]), column)]
        for line, file in _FROM.findall(text):
            places.append(Place(file or start["file"], int(line), None))
        found.append(Diagnostic(tuple(places), start["message"], text))
    return found


class _Text:
    """A file's text, of which parts are blanked."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.text = file.text
        self._outlines: dict[str, Outline] = {}
        self._lines: list[int] = []

    def outline(self, place: int) -> Outline:
        """The outline that has this place: other branches of #if have others."""
        end = self.file.text.find("\n", place)
        end = len(self.file.text) if end < 0 else end
        for branch in BRANCHES:
            if branch not in self._outlines:
                self._outlines[branch] = Outline(self.file.text, branch)
            if self._outlines[branch].covers(place, end):
                return self._outlines[branch]
        return self._outlines[BRANCHES[0]]

    def offset(self, place: Place) -> int | None:
        """Where a place is in the text; the line's first character that is no blank."""
        if not self._lines:
            self._lines = [0, *(m.end() for m in re.finditer("\n", self.file.text))]
        if not 1 <= place.line <= len(self._lines):
            return None
        start = self._lines[place.line - 1]
        line = self.file.text[start:].split("\n", 1)[0]
        if place.column is not None and place.column < len(line):
            return start + place.column
        return start + len(line) - len(line.lstrip())

    def launches(self, function: Item) -> bool:
        return any(
            t.text == "<<<" and function.is_within(t.start)
            for t in self.outline(function.start).tokens
        )

    def users(self, name: str, after: Item, function: Item) -> list[Item]:
        """The statements of a function, after one, that use a name."""
        found = {}
        outline = self.outline(function.start)
        for token in outline.tokens:
            if token.text == name and after.end <= token.start < function.body[1]:
                item = outline.at(token.start)[-1]
                if item.kind != "function":
                    found[item.start] = item
        return list(found.values())

    def blank(self, start: int, end: int, instead: str = "") -> bool:
        """Replaces a part by `instead` and blanks; keeps the lines, and directives.

        False: nothing has changed.
        """
        before = self.text
        lines = []
        directive = False
        for line in before[start:end].split("\n"):
            directive = directive or line.lstrip().startswith("#")
            lines.append(line if directive else " " * len(line))
            directive = directive and line.endswith("\\")
        if len(lines[0]) >= len(instead):
            lines[0] = instead + lines[0][len(instead) :]
        elif len(lines[-1]) >= len(instead) and not directive:
            lines[-1] = lines[-1][: -len(instead)] + instead
        self.text = before[:start] + "\n".join(lines) + before[end:]
        return self.text != before


class DeviceView:
    """The texts of a source and its headers, without the host code that NVRTC cannot compile."""

    def __init__(self, includes: Includes, roots: Sequence[Path], more: Sequence[Path]) -> None:
        """`roots`: the folders of CUDA's headers; `more`: those, and folders of cuRAND's."""
        self.includes = includes
        self.texts = {str(path): _Text(file) for path, file in includes.files.items()}
        texts = [file.text for file in includes.files.values()]
        self.headers = shims.headers(texts, roots)
        self.names: dict[Path | str, str] = {}
        for path, name in includes.names().items():
            self.names[path] = name
        for name in includes.missing:
            own = shims.FOLDER + name
            # Of a toolkit beside NVRTC's own headers, only cuRAND is used: it is device code.
            folders = more if name.startswith("curand") else roots
            found = any((root / name).is_file() for root in folders)
            if own in self.headers or not found or shims.for_the_host(name):
                self.names[name] = own
                self.headers.setdefault(own, shims.MISSING)
        if "cuda.h" in includes.missing:  # it includes these
            self.headers |= {"stdlib.h": shims.MISSING, "stdint.h": shims.MISSING}
        self._rounds: Counter[tuple[str, int]] = Counter()  # with errors, by function
        self._instantiated: set[tuple[str, int]] = set()  # launches that are names now
        self._macros, self._device_macros = _macros(texts)

    def compile(self, compile: Compile) -> bytes:
        """Compiles, blanks what fails, and compiles again.

        Raises
        ------
        CompileError
            With the errors that are not of host code.
        """
        end = time.process_time() + SECONDS
        log = ""
        for _ in range(ROUNDS):
            text = shims.PRELUDE + self._named(self.includes.main.path)
            headers = {**self.headers}
            for path in self.includes.files:
                if path in self.names:
                    headers[self.names[path]] = self._named(path)
            try:
                return compile(text, headers, shims.OPTIONS)
            except _core.CompileError as error:
                log = str(error)
            if time.process_time() > end or not self._improve(diagnostics(log)):
                break
        raise _core.CompileError(log)

    def _named(self, path: Path) -> str:
        text = self.texts[str(path)]
        return self.includes.named(text.file, text.text, self.names)

    def _improve(self, found: Sequence[Diagnostic]) -> bool:
        """Blanks what the errors are about. False: nothing of that is host code."""
        functions: set[tuple[str, int]] = set()
        done, lost = False, None
        for one in found:
            if lost and one.places[0][:2] != lost and done:
                break  # errors of a parser that has lost its way may be about anything
            done = self._treat(one, functions) or done
            lost = lost or (_LOST.match(one.message) and one.places[0][:2])
        self._rounds.update(functions)
        return done

    def _treat(self, found: Diagnostic, functions: set[tuple[str, int]]) -> bool:
        missing = re.match(r'cannot open source file "([^"]+)"', found.message)
        if missing and missing[1] not in self.headers:
            self.headers[missing[1]] = shims.MISSING
            return True
        if found.places[0].file in self.texts:
            return self._remove(found.places[0], functions)
        # Within a header of CUDA's: what of the user's led there, unless that is device code.
        own = [place for place in found.places if place.file in self.texts]
        if own:
            return self._remove(own[0], functions)
        return self._leave_out(Path(found.places[0].file).name)

    def _leave_out(self, header: str) -> bool:
        """Leaves out a header of CUDA's that needs the host, such as <cuda_gl_interop.h>."""
        if header not in self.includes.missing or header in self.names:
            return False
        self.names[header] = shims.FOLDER + header
        self.headers.setdefault(shims.FOLDER + header, shims.MISSING)
        return True

    def _remove(self, place: Place, functions: set[tuple[str, int]]) -> bool:
        text = self.texts.get(place.file)
        offset = None if text is None else text.offset(place)
        if text is None or offset is None:
            return False
        around = text.outline(offset).at(offset)
        kept = (
            item
            for item in around
            if item.kind != "class" and (place.file, item.start) not in self._instantiated
        )
        if not around or any(map(self._is_device, kept)):
            return False
        function = next((item for item in reversed(around) if item.kind == "function"), None)
        if function is None:
            item = self._declaration(around)
            if item is None:
                return False
            if item.kind == "macro":  # another use of the macro would fail as well
                for other in text.outline(offset).items:
                    if other.kind == "macro" and other.head[0].text == item.head[0].text:
                        text.blank(other.start, other.end)
            return text.blank(item.start, item.end) or item.kind == "macro"
        functions.add((place.file, function.start))
        limit = _LAUNCH_ROUNDS if text.launches(function) else _STATEMENT_ROUNDS
        if self._rounds[place.file, function.start] >= limit or around[-1] is function:
            return text.blank(function.start, function.end)
        return self._blank_statement(text, around[-1], function)

    def _declaration(self, around: Sequence[Item]) -> Item | None:
        """What to blank of the items around an error outside of functions, outermost first."""
        classes = [item for item in around if item.kind == "class"]
        if classes:  # not a member: with another layout it would be another type
            if not any(map(self._is_device, every(classes[0].inner))):
                return classes[0]
            return around[-1] if _needs_no_space(around[-1]) else None
        return None if around[-1].kind == "namespace" else around[-1]

    def _blank_statement(self, text: _Text, item: Item, function: Item) -> bool:
        """Blanks a statement, and those of the function that use what it declares."""
        pending, done = [item], False
        while pending:
            item = pending.pop()
            if not text.blank(item.start, item.end, self._instead(text, item)):
                continue
            done = True
            for name in _declared(item):
                pending += text.users(name, item, function)
        return done

    def _instead(self, text: _Text, item: Item) -> str:
        """What a blanked statement becomes: of a launch the kernel's name, to instantiate it."""
        key = (str(text.file.path), item.start)
        words = [token.text for token in item.head]
        if item.kind == "simple" and "<<<" in words and key not in self._instantiated:
            self._instantiated.add(key)
            name = text.file.text[item.head[0].start : item.head[words.index("<<<")].start]
            if re.fullmatch(r"[\w:]+(?:\s*<[^;(){}]*>)?\s*", name):
                return f"(void)({' '.join(name.split())});"
        return ";"

    def _is_device(self, item: Item) -> bool:
        words = item.words()
        if words & {"__global__", "__device__"} or words & self._device_macros:
            return True
        return any(_DEVICE_MACRO.search(word) for word in words - self._macros)


def _needs_no_space(member: Item) -> bool:
    """Whether a class without this member has the same layout: of functions, those not virtual."""
    words = [token.text for token in member.head]
    if member.kind != "simple" or "virtual" in words:
        return False
    if {"friend", "static", "using", "typedef"} & set(words):
        return True
    angles = 0
    for before, word, after in zip(["", *words], words, [*words[1:], ""]):  # noqa: B905
        angles += (word == "<") - (word == ">")
        if angles == 0 and word in ("=", "{", ":"):
            return False
        if angles == 0 and word == "(":
            return before.isidentifier() and "align" not in before and after != "*"
    return False


def _declared(item: Item) -> list[str]:
    """The names that a statement declares: words that follow a type's end, before = or ( or ;."""
    if item.kind != "simple":
        return []
    words = [token.text for token in item.head]
    found, depth = [], 0
    for before, word, after in zip(words, words[1:], [*words[2:], ";"]):  # noqa: B905
        depth += (before in "([{") - (before in ")]}")
        typed = re.match(r"\w|[>*&,]", before) and before not in ("return", "case", "goto", "new")
        if depth == 0 and typed and word.isidentifier() and after in ("=", "(", ";", "[", "{", ","):
            found.append(word)
    return found


# Macros of other libraries: CUTLASS_DEVICE, C10_HOST_DEVICE, ...
_DEVICE_MACRO = re.compile(r"^[A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*(?:DEVICE|GLOBAL|KERNEL)(?:_INLINE)?$")


def _macros(texts: Iterable[str]) -> tuple[set[str], set[str]]:
    """All macros, and those that expand to __device__ or __global__, also through others."""
    bodies: dict[str, str] = {}
    for text in texts:
        for name, body in re.findall(
            r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\\\n]|\\.)*)", text, re.MULTILINE | re.DOTALL
        ):
            bodies[name] = bodies.get(name, "") + body
    found = {"__device__", "__global__"}
    while True:
        more = {name for name, body in bodies.items() if found & set(re.findall(r"\w+", body))}
        if more <= found:
            return set(bodies), found - {"__device__", "__global__"}
        found |= more
