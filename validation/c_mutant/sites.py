"""Finds the sites where c_mutants.py can mutate a line of C, and the replacements.

Only function bodies have sites: no preprocessor line, no comment, no string, no table outside of a
function, and nothing within the arguments of a call that forms a message.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("csrc/emu", "csrc/core", "csrc/pipeline/plan", "csrc/module")
OPERATORS = (
    *("comparison", "bound", "mask", "rounding", "off by one"),
    *("dropped call", "dropped guard", "negated condition", "logic"),
)

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<directive>\#(?:\\\n|/\*.*?\*/|[^\n])*)
      | (?P<number>(?:0[xX][\da-fA-F.]+(?:[pP][+-]?\d+)?|\d[\d.]*(?:[eE][+-]?\d+)?)[uUlLfF]*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<sign>->|\+\+|--|<<=|>>=|<<|>>|[<>=!]=|&&|\|\||[-+*/%&|^]=|\.\.\.|.)""",
    re.VERBOSE | re.DOTALL,
)
# The arguments of these functions only form messages.
MESSAGES = re.compile(
    r"PyErr_(Format|SetString|WarnFormat)|PyUnicode_FromFormat|(PyOS_)?snprintf|text_add|"
    r"(parser|smk|launch|warp|decode|lexer|decoder)_(fail|fault|unexpected|error|unknown)\w*|"
    r"(request_|operand_)?refuse\w*|bad|_Static_assert|Py_BuildValue|PyArg_Parse\w*"
)
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "do", "else", "case", "goto"}
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGIC = {"&&": "||", "||": "&&"}
BITS = {"&": "|", "|": "&", "<<": ">>", ">>": "<<"}
ROUNDINGS = {
    "ROUND_NEAREST": "ROUND_ZERO",
    "ROUND_ZERO": "ROUND_NEAREST",
    "ROUND_UP": "ROUND_DOWN",
    "ROUND_DOWN": "ROUND_UP",
    "ROUND_NEAREST_AWAY": "ROUND_NEAREST",
    **{f"{a}{f}": f"{b}{f}" for a, b in (("floor", "ceil"), ("ceil", "floor")) for f in ("", "f")},
}
# The token before a binary operator is one of these.
ENDS_OPERAND = re.compile(r"[\w\])]$")


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class Site(NamedTuple):
    """A change: file[start:end], which holds `before`, becomes `after`."""

    file: str
    line: int
    operator: str
    start: int
    end: int
    before: str
    after: str


def tokens(text: str) -> list[Token]:
    found, line_begins = [], True
    for match in TOKEN.finditer(text):
        kind = match.lastgroup or "skip"
        if kind == "sign" and match[0] == "#" and line_begins:
            raise AssertionError("a directive is one token")
        if kind not in ("skip", "directive"):
            found.append(Token(kind, match[0], match.start(), match.end()))
    return found


def closing(every: list[Token]) -> dict[int, int]:
    """The index of the matching bracket for each bracket."""
    pairs, opened = {}, []
    for k, token in enumerate(every):
        if token.kind == "sign" and token.text in "([{":
            opened.append(k)
        elif token.kind == "sign" and token.text in ")]}" and opened:
            pairs[opened.pop()] = k
    return {**pairs, **{b: a for a, b in pairs.items()}}


def bodies(every: list[Token], pairs: dict[int, int]) -> list[range]:
    """Bodies of functions: outermost braces that follow a parenthesis."""
    found, k = [], 0
    while k < len(every):
        if every[k].text == "{" and k in pairs:
            if k and every[k - 1].text == ")":
                found.append(range(k, pairs[k] + 1))
            k = pairs[k]
        k += 1
    return found


class File:
    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.tokens = tokens(text)
        self.pairs = closing(self.tokens)
        self.found: list[Site] = []

    def sites(self) -> list[Site]:
        for body in bodies(self.tokens, self.pairs):
            silent = self.messages(body)
            for k in body:
                if k not in silent and self.tokens[k].kind != "string":
                    self.at(k)
        return self.found

    def messages(self, body: range) -> set[int]:
        """Tokens within the parentheses of calls that form messages."""
        found: set[int] = set()
        for k in body:
            if self.text_at(k + 1) == "(" and MESSAGES.fullmatch(self.text_at(k)):
                found.update(range(k + 1, self.pairs[k + 1] + 1))
        return found

    def text_at(self, k: int) -> str:
        return self.tokens[k].text if 0 <= k < len(self.tokens) else ""

    def add(self, operator: str, first: int, last: int, after: str) -> None:
        """Replaces tokens first to last with `after`; later lines keep their numbers."""
        start, end = self.tokens[first].start, self.tokens[last].end
        before = self.text[start:end]
        line = self.text.count("\n", 0, start) + 1
        after += "\n" * (before.count("\n") - after.count("\n"))
        self.found.append(Site(self.name, line, operator, start, end, before, after))

    def at(self, k: int) -> None:
        token = self.tokens[k]
        before, behind = self.text_at(k - 1), self.text_at(k + 1)
        binary = bool(ENDS_OPERAND.search(before)) and before not in KEYWORDS
        if token.kind == "sign" and binary:
            for operator, table in (("comparison", COMPARISONS), ("logic", LOGIC)):
                if token.text in table:
                    self.add(operator, k, k, table[token.text])
            if token.text in BITS and not self.is_type(k - 1):
                self.add("mask", k, k, BITS[token.text])
            if token.text in "+-":
                self.sum(k)
        elif token.kind == "number":
            self.number(k, before, behind)
        elif token.kind == "name":
            self.name_at(k, before, behind)

    def is_type(self, k: int) -> bool:
        """Whether the operator after it is unary because of a cast: (x *)&y."""
        return self.text_at(k) == ")" and self.text_at(k - 1) == "*"

    def sum(self, k: int) -> None:
        """Removes + 1 or - 1, or the n - 1 that makes a division round up."""
        operator = self.text_at(k)
        if self.text_at(k + 1).rstrip("uUlL") == "1" and not re.match(
            r"<<|[*/%.]", self.text_at(k + 2)
        ):
            self.add("off by one", k, k + 1, "")
        elif operator == "+":
            end = self.operand(k + 1)
            if self.text_at(end + 1) == "-" and self.text_at(end + 2).rstrip("uUlL") == "1":
                self.add("rounding", k, end + 2, "")

    def operand(self, k: int) -> int:
        """The last token of the operand that begins at k."""
        while True:
            if self.text_at(k) in "([" and k in self.pairs:
                k = self.pairs[k]
            if self.text_at(k + 1) in ("->", "."):
                k += 2
            elif self.text_at(k + 1) in ("(", "[") and k + 1 in self.pairs:
                k += 1
            else:
                return k

    def number(self, k: int, before: str, behind: str) -> None:
        token = self.tokens[k]
        match = re.fullmatch(r"(0[xX][\da-fA-F]+|\d+)([uUlL]*)", token.text)
        if not match or behind == "?" or before == "case":
            return
        value, suffix = int(match[1], 0), match[2]

        def spelt(x: int) -> str:
            return (hex(x) if match[1][:2] in ("0x", "0X") else str(x)) + suffix

        if before in ("<<", ">>"):
            self.add("mask", k, k, spelt(value + 1))
            if value:
                self.add("mask", k, k, spelt(value - 1))
        elif before in ("&", "|", "^", "~") or behind in ("&", "|", "^"):
            self.add("mask", k, k, spelt(value >> 1 if value > 1 else value ^ 1))
            if value > 1:
                self.add("mask", k, k, spelt(value << 1 | (value & 1)))
        elif before in COMPARISONS or behind in COMPARISONS or self.is_index(k):
            self.add("bound", k, k, spelt(value + 1))
            if value:
                self.add("bound", k, k, spelt(value - 1))

    def is_index(self, k: int) -> bool:
        """Whether it is an index, not the size in a declaration: type name[2][n]."""
        if self.text_at(k - 1) != "[" or self.text_at(k + 1) != "]":
            return False
        first = k - 1
        while self.text_at(first - 1) == "]":
            first = self.pairs[first - 1]
        declares = self.tokens[first - 2] if first >= 2 else None
        return not (declares and declares.kind == "name" and declares.text not in KEYWORDS)

    def name_at(self, k: int, before: str, behind: str) -> None:
        name = self.text_at(k)
        if name in ROUNDINGS:
            self.add("rounding", k, k, ROUNDINGS[name])
        elif re.fullmatch(r"[A-Z][A-Z_\d]+", name) and before in ("<", "<=", ">", ">="):
            self.add("bound", k, k, f"({name} + 1)")
            self.add("bound", k, k, f"({name} - 1)")
        elif name in ("if", "while") and behind == "(":
            end = self.pairs[k + 1]
            if self.text_at(end + 1) == ";" and name == "while":
                return self.negated(k + 1, end)  # do ... while
            self.negated(k + 1, end)
            if name == "if":
                self.guard(k, end)
        elif behind == "(" and name not in KEYWORDS:
            self.call(k, before)
        return None

    def negated(self, opens: int, closes: int) -> None:
        inside = self.text[self.tokens[opens].end : self.tokens[closes].start]
        self.add("negated condition", opens, closes, f"(!({inside}))")

    def guard(self, k: int, closes: int) -> None:
        """Removes if (x) return ...; and similar statements without an else."""
        first = closes + 2 if self.text_at(closes + 1) == "{" else closes + 1
        if self.text_at(first) not in ("return", "continue", "break", "goto"):
            return
        end = first
        while self.text_at(end) != ";":
            end = self.pairs[end] + 1 if self.text_at(end) in ("(", "[", "{") else end + 1
        if first == closes + 2:
            if self.text_at(end + 1) != "}":
                return
            end += 1
        if self.text_at(end + 1) != "else" and self.text_at(k - 1) != "else":
            self.add("dropped guard", k, end, ";")

    def call(self, k: int, before: str) -> None:
        """Removes a statement that is a call."""
        end = self.pairs[k + 1]
        if self.text_at(end + 1) != ";":
            return
        begins = before in (";", "{", "}", "else")
        if before == ")":
            begins = self.text_at(self.pairs[k - 1] - 1) in ("if", "while", "for")
        if begins and self.text_at(k) != "va_end":
            self.add("dropped call", k, end, "(void)0")


def every_site(root: Path) -> list[Site]:
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]")):
            found += File(str(path.relative_to(root)), path.read_text()).sites()
    return found


def mutate(text: str, site: Site) -> str:
    if text[site.start : site.end] != site.before:
        raise ValueError(f"{site.file}:{site.line} is not what it was")
    return text[: site.start] + site.after + text[site.end :]


def shown(text: str, site: Site) -> tuple[str, str]:
    """The changed lines, before and after."""
    first = text.rfind("\n", 0, site.start) + 1
    last = text.find("\n", site.end)
    old = text[first:last]
    new = text[first : site.start] + site.after + text[site.end : last]
    return (" ".join(old.split()), " ".join(new.split()))
