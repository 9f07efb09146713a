"""Parser of the integer C expressions in variants.toml, so that errors name the expression.

The build pastes them into C, but parses them first: every name must be known, and the conditions
must hold for the parameter sets that are compiled ahead. Grammar: integers, names, ( ), + - * / %,
<< >>, comparisons, & ^ |, && ||, ! ~ and ?:, with C's precedence, truncating division and
short-circuit evaluation.
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


# Binary operators from lowest to highest precedence, all left-associative. The right operand is
# passed as a function, so that && and || can skip it.
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
    """Parses an expression into a function of a mapping that holds all of the names."""
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
                raise self.error(f"unknown token {self.text[position:].split()[0]!r}")
            self.tokens.append(match[0].strip())
            position = match.end()

    def error(self, what: str) -> ExpressionError:
        return ExpressionError(f"expression {self.text!r}: {what}")

    def read(self) -> Expression:
        value = self.conditional()
        if self.at < len(self.tokens):
            raise self.expected("an operator or the end")
        return value

    def expected(self, what: str) -> ExpressionError:
        found = repr(self.tokens[self.at]) if self.at < len(self.tokens) else "the end"
        return self.error(f"expected {what}, found {found}")

    def take(self, tokens: Collection[str]) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at] in tokens:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def need(self, token: str) -> None:
        if self.take((token,)) is None:
            raise self.expected(repr(token))

    def conditional(self) -> Expression:
        test = self.binary(0)
        if self.take("?") is None:
            return test
        yes = self.conditional()
        self.need(":")
        no = self.conditional()
        return lambda env: yes(env) if test(env) else no(env)

    def binary(self, level: int) -> Expression:
        if level == len(_BINARY):
            return self.unary()
        value = self.binary(level + 1)
        while (token := self.take(_BINARY[level])) is not None:
            value = self.combine(_BINARY[level][token], value, self.binary(level + 1))
        return value

    @staticmethod
    def combine(
        operator: Callable[[int, Callable[[], int]], int], left: Expression, right: Expression
    ) -> Expression:
        return lambda env: operator(left(env), lambda: right(env))

    def unary(self) -> Expression:
        if (token := self.take(_UNARY)) is not None:
            operator, value = _UNARY[token], self.unary()
            return lambda env: operator(value(env))
        if self.take("("):
            value = self.conditional()
            self.need(")")
            return value
        word = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if word.isdigit():
            self.at += 1
            number = int(word)
            return lambda env: number
        if word.isidentifier():
            if word not in self.names:
                known = ", ".join(sorted(self.names))
                raise self.error(f"unknown name {word!r}; known here: {known}")
            self.at += 1
            return lambda env: env[word]
        raise self.expected("a number, a name or '('")
