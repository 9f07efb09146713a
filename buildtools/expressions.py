"""The integer C expressions of variants.toml, read here so that a slip is an error with a name.

The build pastes them into C, but reads them first: every name must be known, and what they say of
the parameter sets that are compiled ahead must hold. Grammar: integers, names, ( ), + - * / %,
<< >>, comparisons, & ^ |, && ||, ! ~ and ?:, with C's precedence, truncating division and short
circuits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

Expression = Callable[[Mapping[str, int]], int]

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&^|!~?:()]))")


class ExpressionError(ValueError):
    """The text is not an expression, or names something unknown."""


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


# Binary operators from loosest to tightest, all associating to the left. The right side comes as a
# function, so that && and || can leave it alone.
_BINARY: list[dict[str, Callable[[int, Callable[[], int]], int]]] = [
    {"||": lambda a, b: int(a != 0 or b() != 0)},
    {"&&": lambda a, b: int(a != 0 and b() != 0)},
    {"|": lambda a, b: a | b()},
    {"^": lambda a, b: a ^ b()},
    {"&": lambda a, b: a & b()},
    {"==": lambda a, b: int(a == b()), "!=": lambda a, b: int(a != b())},
    {
        "<": lambda a, b: int(a < b()),
        ">": lambda a, b: int(a > b()),
        "<=": lambda a, b: int(a <= b()),
        ">=": lambda a, b: int(a >= b()),
    },
    {"<<": lambda a, b: a << b(), ">>": lambda a, b: a >> b()},
    {"+": lambda a, b: a + b(), "-": lambda a, b: a - b()},
    {
        "*": lambda a, b: a * b(),
        "/": lambda a, b: _divide(a, b()),
        "%": lambda a, b: a - (d := b()) * _divide(a, d),
    },
]

_UNARY: dict[str, Callable[[int], int]] = {
    "-": lambda a: -a,
    "+": lambda a: a,
    "!": lambda a: int(not a),
    "~": lambda a: ~a,
}


def read(text: str, names: Collection[str]) -> Expression:
    """The expression as a function of a mapping that holds all of the names."""
    return _Reader(text, names).read()


class _Reader:
    def __init__(self, text: str, names: Collection[str]) -> None:
        self.text = text.strip()
        self.names = names
        self.tokens: list[str] = []
        self.at = 0
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self.error(f"{self.text[position:].split()[0]!r} is not understood")
            self.tokens.append(match[0].strip())
            position = match.end()

    def error(self, what: str) -> ExpressionError:
        return ExpressionError(f"expression {self.text!r}: {what}")

    def read(self) -> Expression:
        value = self.choice()
        if self.at < len(self.tokens):
            raise self.error(f"{self.tokens[self.at]!r} is not expected there")
        return value

    def take(self, marks: Collection[str]) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at] in marks:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def need(self, mark: str) -> None:
        if self.take((mark,)) is None:
            raise self.error(f"{mark!r} is missing")

    def choice(self) -> Expression:
        test = self.binary(0)
        if self.take("?") is None:
            return test
        yes = self.choice()
        self.need(":")
        no = self.choice()
        return lambda env: yes(env) if test(env) else no(env)

    def binary(self, level: int) -> Expression:
        if level == len(_BINARY):
            return self.unary()
        value = self.binary(level + 1)
        while (mark := self.take(_BINARY[level])) is not None:
            value = self.joined(_BINARY[level][mark], value, self.binary(level + 1))
        return value

    @staticmethod
    def joined(
        operator: Callable[[int, Callable[[], int]], int], left: Expression, right: Expression
    ) -> Expression:
        return lambda env: operator(left(env), lambda: right(env))

    def unary(self) -> Expression:
        if (mark := self.take(_UNARY)) is not None:
            operator, value = _UNARY[mark], self.unary()
            return lambda env: operator(value(env))
        if self.take("("):
            value = self.choice()
            self.need(")")
            return value
        if self.at == len(self.tokens):
            raise self.error("it ends too early")
        word = self.tokens[self.at]
        self.at += 1
        if word.isdigit():
            number = int(word)
            return lambda env: number
        if word.isidentifier():
            if word not in self.names:
                known = ", ".join(sorted(self.names))
                raise self.error(f"unknown name {word!r}; known here: {known}")
            return lambda env: env[word]
        raise self.error(f"{word!r} is not expected there")
