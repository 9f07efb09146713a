"""The outline of a C++ text: its declarations and statements, and what each is.

This is no parser of C++. It knows brackets, comments, texts, directives and a few keywords, which
is enough to tell functions from types, and one statement from the next.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<space>\s+ | //(?:[^\\\n]|\\.)* | /\*.*?(?:\*/|\Z))
    | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z))
    | (?P<text>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"? | (?:u8|[uUL])?'(?:[^'\\\n]|\\.)*'?)
    | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<mark2><<<|>>>|::|->|\S)""",
    re.DOTALL | re.VERBOSE,
)
_DIRECTIVE = re.compile(
    r"[ \t]*#(?:[^\\\n/]|\\.|/(?![*/])|/\*.*?\*/|//(?:[^\\\n]|\\.)*)*", re.DOTALL
)
_TYPES = ("class", "struct", "union")
_CONTROL = ("if", "for", "while", "switch", "else", "do", "try", "catch")
_AFTER_HEAD = ("const", "noexcept", "override", "final", "try", "mutable", "volatile", "requires")
_DEEPEST = 150  # braces within braces; what is deeper has no outline
_OPEN, _CLOSE = "([{", ")]}"


@dataclass
class Token:
    text: str
    start: int
    new_line: bool  # the first of its line


@dataclass
class Item:
    """A declaration or a statement.

    kind: "namespace", "class", "function", "block" (statements within braces, with what is before
    them), "simple" (ends with a semicolon), "macro" (a macro's name and arguments).
    """

    kind: str
    start: int
    end: int
    head: list[Token] = field(default_factory=list)
    inner: list[Item] = field(default_factory=list)
    body: tuple[int, int] = (0, 0)  # of a function: within its braces

    def words(self) -> set[str]:
        return {token.text for token in self.head}

    def is_within(self, at: int) -> bool:
        return self.start <= at < self.end


BRANCHES = ("first", "last", "all")


def tokens(text: str, branch: str = "first") -> list[Token]:
    """The tokens of a text, without comments and directives.

    `branch`: which branch of #if, #elif and #else is kept; of "#if 0" never the first.
    """
    found: list[Token] = []
    at, new_line = 0, True
    kept: list[str] = []  # per open #if: "kept", "skipped until #else", "skipped until #endif"
    while at < len(text):
        directive = _DIRECTIVE.match(text, at) if new_line else None
        if directive:
            _condition(directive[0], kept, branch)
            at = directive.end()
            continue
        token = _TOKEN.match(text, at)
        if token is None:
            at += 1
            continue
        at = token.end()
        if token["space"] is not None:
            new_line = new_line or "\n" in token[0]
            if token[0].startswith("/"):
                new_line = new_line and "\n" not in token[0]
            continue
        if all(state == "kept" for state in kept):
            found.append(Token(token[0], token.start(), new_line))
        new_line = False
    return found


def _condition(directive: str, kept: list[str], branch: str) -> None:
    """Follows #if, #else and #endif. The last branch is #else, or what #ifndef begins."""
    found = re.match(r"[ \t]*#[ \t]*(\w+)[ \t]*(.*)", directive, re.DOTALL)
    if found is None:
        return
    word, rest = found[1], found[2].strip()
    if word in ("if", "ifdef", "ifndef"):
        kept.append("skipped until #else" if word == "if" and rest == "0" else "kept")
        if branch == "last" and word != "ifndef" and kept[-1] == "kept":
            kept[-1] = "skipped until #else"
    elif word.startswith("el") and kept and branch != "all":
        kept[-1] = "kept" if kept[-1] == "skipped until #else" else "skipped until #endif"
    elif word.startswith("el") and kept:
        kept[-1] = "kept"
    elif word == "endif" and kept:
        kept.pop()


class Outline:
    """The items of a text."""

    def __init__(self, text: str, branch: str = "first") -> None:
        self.tokens = tokens(text, branch)
        self._depth = 0
        self.items = self._declarations(0, len(self.tokens), in_class=False)

    def at(self, place: int) -> list[Item]:
        """The items around a place, outermost first."""
        return _around(self.items, place)

    def covers(self, place: int, end: int) -> bool:
        """Whether a token begins in this part of the text: it is in no branch left out."""
        first = bisect.bisect_left(self.tokens, place, key=lambda token: token.start)
        return first < len(self.tokens) and self.tokens[first].start < end

    def _closing(self, at: int, end: int) -> int:
        """The index of the bracket that closes the one at `at`; the last index if none does."""
        depth = 0
        for index in range(at, end):
            text = self.tokens[index].text
            depth += (text in _OPEN) - (text in _CLOSE)
            if depth == 0:
                return index
        return end - 1

    def _stop(self, index: int) -> int:
        """Where the text of a token ends."""
        token = self.tokens[index]
        return token.start + len(token.text)

    def _declarations(self, at: int, end: int, in_class: bool) -> list[Item]:
        items = []
        self._depth += 1
        while at < end and self._depth < _DEEPEST:
            item, at = self._declaration(at, end, in_class)
            items.append(item)
        self._depth -= 1
        return items

    def _declaration(self, at: int, end: int, in_class: bool) -> tuple[Item, int]:
        """The declaration that begins at token `at`, and the index of the next one."""
        tokens, first = self.tokens, at
        head: list[Token] = []
        begin = tokens[first].start
        while at < end:
            token = tokens[at]
            if token.text == ";":
                return Item("simple", begin, self._stop(at), head), at + 1
            if token.text == "{":
                closed = self._braces(at, end, head, begin)
                if closed:
                    return closed
                head.append(token)
                at = self._closing(at, end) + 1
                continue
            if token.text in "([":
                close = self._closing(at, end)
                head += tokens[at : close + 1]
                at = close + 1
                if self._ends_macro(head, at, end):
                    return Item("macro", begin, self._stop(close), head), at
                continue
            if token.text == ":" and in_class and head and head[-1].text in _LABELS:
                return Item("macro", begin, self._stop(at), head), at + 1
            if token.text == "<" and head and head[-1].text == "template":
                close = self._closing_angle(at, end)
                at = close + 1
                continue
            head.append(token)
            at += 1
        return Item("simple", begin, self._stop(end - 1), head), end

    def _closing_angle(self, at: int, end: int) -> int:
        """The index of the > that closes a template's parameters."""
        depth = 0
        while at < end:
            text = self.tokens[at].text
            if text in _OPEN:
                at = self._closing(at, end)
            depth += (text == "<") - (text == ">") - 3 * (text == ">>>")
            if depth <= 0 or text in (";", "{"):
                return at
            at += 1
        return end - 1

    def _ends_macro(self, head: Sequence[Token], at: int, end: int) -> bool:
        """Whether the head is NAME(...) alone, and another declaration follows on a new line."""
        name = head[0].text
        if at >= end or len(head) < 2 or head[1].text != "(" or name.startswith("__"):
            return False
        depth = 0
        for token in head[1:]:
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0 and token is not head[-1]:
                return False
        following = self.tokens[at]
        return (
            following.new_line
            and following.text not in _AFTER_HEAD
            and re.match(r"\w", following.text) is not None
            and name not in ("alignas", "static_assert", "decltype", "asm", "operator")
        )

    def _braces(self, at: int, end: int, head: list[Token], begin: int) -> tuple[Item, int] | None:
        """The item whose braces open at `at`; None if they are part of a longer declaration."""
        close = self._closing(at, end)
        words = [token.text for token in head]
        flat = _flat(words)
        if "namespace" in flat[:2] or (len(flat) == 2 and flat[0] == "extern"):
            item = Item("namespace", begin, self._stop(close), head)
            item.inner = self._declarations(at + 1, close, in_class=False)
            return item, close + 1
        if "enum" in flat or ("=" in flat and "operator" not in flat):
            return None
        if any(word in flat for word in _TYPES) and not _is_function(flat):
            return self._class(at, close, end, head, begin)
        if "(" not in words or _in_initialisers(flat):
            return None
        item = Item("function", begin, self._stop(close), head)
        item.body = (self.tokens[at].start + 1, self.tokens[close].start)
        item.inner = self._statements(at + 1, close)
        return item, close + 1

    def _class(
        self, at: int, close: int, end: int, head: list[Token], begin: int
    ) -> tuple[Item, int]:
        item = Item("class", begin, 0, head)
        item.inner = self._declarations(at + 1, close, in_class=True)
        last = close
        while last + 1 < end and self.tokens[last].text != ";":
            last += 1
        item.end = self._stop(last)
        return item, last + 1

    def _statements(self, at: int, end: int) -> list[Item]:
        items = []
        self._depth += 1
        while at < end and self._depth < _DEEPEST:
            item, at = self._statement(at, end)
            items.append(item)
        self._depth -= 1
        return items

    def _statement(self, at: int, end: int) -> tuple[Item, int]:
        tokens, first = self.tokens, at
        begin = tokens[first].start
        control = tokens[first].text in _CONTROL
        while at < end:
            text = tokens[at].text
            if text == ";":
                return Item("simple", begin, self._stop(at), tokens[first:at]), at + 1
            if text == "{":
                close = self._closing(at, end)
                if control or at == first or tokens[at - 1].text == ":":
                    item = Item("block", begin, self._stop(close), tokens[first:at])
                    item.body = (tokens[at].start + 1, tokens[close].start)
                    item.inner = self._statements(at + 1, close)
                    return item, close + 1
                at = close + 1
                continue
            if text in "([":
                at = self._closing(at, end) + 1
                if control and at < end and tokens[at].text not in "{;":
                    return self._controlled(first, at, end)
                continue
            if text in ("else", "do") and at + 1 < end and tokens[at + 1].text not in "{;":
                return self._controlled(first, at + 1, end)
            at += 1
        return Item("simple", begin, self._stop(end - 1), tokens[first:end]), end

    def _controlled(self, first: int, at: int, end: int) -> tuple[Item, int]:
        """A statement without braces after if (...), else and so on."""
        self._depth += 1
        if self._depth < _DEEPEST:
            inner, after = self._statement(at, end)
        else:
            inner, after = Item("simple", self.tokens[at].start, self._stop(end - 1)), end
        self._depth -= 1
        item = Item("block", self.tokens[first].start, inner.end, self.tokens[first:at], [inner])
        return item, after


_LABELS = ("public", "private", "protected")


def _flat(words: Sequence[str]) -> list[str]:
    """The words outside of brackets; of each pair of brackets "(" and ")" remain."""
    flat, depth = [], 0
    for word in words:
        depth -= word in _CLOSE
        if depth == 0:
            flat.append(word)
        depth += word in _OPEN
    return flat


_OF_TYPES = ("alignas", "__align__", "__attribute__", "__declspec", "__builtin_align__")


def _is_function(flat: Sequence[str]) -> bool:
    """Whether a head with "struct" is that of a function that returns one."""
    return any(
        word == "("
        and flat[max(at - 1, 0)] not in _OF_TYPES
        and not _is_macro(flat[max(at - 1, 0)])
        for at, word in enumerate(flat)
    )


def _is_macro(word: str) -> bool:
    return word.isupper() and len(word) > 3


def _in_initialisers(flat: Sequence[str]) -> bool:
    """Whether a brace after this head initialises a member: S(int n) : n{n} {}."""
    if not flat or flat[-1] == ")" or not (flat[-1] == ">" or re.match(r"\w", flat[-1])):
        return False
    at = next((i for i, word in enumerate(flat) if word == ")"), len(flat))
    return ":" in flat[at + 1 :] and "->" not in flat[at + 1 :] and flat[-1] not in _AFTER_HEAD


def _around(items: Sequence[Item], place: int) -> list[Item]:
    for item in items:
        if item.is_within(place):
            return [item, *_around(item.inner, place)]
    return []


def every(items: Sequence[Item]) -> Iterator[Item]:
    """All items, those within others too."""
    for item in items:
        yield item
        yield from every(item.inner)
