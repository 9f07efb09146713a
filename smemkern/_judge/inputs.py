"""The cases of a judge: sizes, contents of arrays, arrays that are one.

Arguments are described as on the command line (argspec.py), with expressions of sizes:
`f32[n,2*n]=random`, `i32[n]=random(0,2*n)`, `i32=n`. An array without a
content is an output. Arrays with =random get the contents of PATTERNS; others stay as they are.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._trace import argspec

Array = np.ndarray[Any, Any]
Sizes = Mapping[str, int]

# ---- expressions

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,  # as in C, for numbers that are not negative
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "cdiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
}
_LONGEST = 200  # characters of an expression
_LARGEST = 2**40


def evaluate(text: str, sizes: Sizes) -> int:
    """An integer expression of sizes: + - * / %, cdiv(a, b), min and max.

    Raises
    ------
    ValueError
        If it is not one.
    """
    try:
        if len(text) > _LONGEST:
            raise ValueError(f"it is longer than {_LONGEST} characters")
        value = _value(ast.parse(text.strip(), mode="eval").body, sizes)
    except (SyntaxError, RecursionError, TypeError):
        raise ValueError(f"expected an expression such as cdiv(n, 256), found {text!r}") from None
    except ZeroDivisionError:
        raise ValueError(f"{text!r} divides by zero") from None
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None
    return value


def _value(node: ast.expr, sizes: Sizes) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        value = node.value
    elif isinstance(node, ast.Name):
        if node.id not in sizes:
            known = ", ".join(sizes) or "none"
            raise ValueError(
                f"there is no size {node.id!r}; there are: {known}; a size is given as "
                f"--size {node.id}=1000, in Python sizes="
            )
        value = sizes[node.id]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = -_value(node.operand, sizes)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        value = _OPERATORS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _FUNCTIONS.get(node.func.id)
        if function is None:
            raise ValueError(f"there is no function {node.func.id!r}; there are: cdiv, min, max")
        value = function(*(_value(argument, sizes) for argument in node.args))
    else:
        raise TypeError
    if abs(value) > _LARGEST:
        raise ValueError("the value is too large")
    return value


def _parts(text: str) -> list[str]:
    """Splits at commas that are in no parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


Extent = int | str | Sequence[int | str]


def extent(given: Extent, sizes: Sizes) -> tuple[int, ...]:
    """A grid or block: an int, a tuple, or text such as "cdiv(n, 256), 2"."""
    if isinstance(given, str) and re.fullmatch(r"\d+(x\d+)+", given.strip()):
        given = given.strip().replace("x", ",")
    parts = (
        _parts(given) if isinstance(given, str) else [given] if isinstance(given, int) else given
    )
    lengths = tuple(p if isinstance(p, int) else evaluate(str(p), sizes) for p in parts)
    if not 1 <= len(lengths) <= 3 or min(lengths) < 1:
        raise ValueError(f"expected one to three positive integers; {given!r} is {lengths}")
    return lengths


# ---- arguments


class Template(NamedTuple):
    """An argument of the kernels, for any sizes."""

    given: Any  # text, or a value that stays as it is
    is_output: bool = False
    is_random: bool = False
    bounds: tuple[str, str] | None = None  # expressions: random numbers from one below the other

    def make(self, sizes: Sizes, rng: np.random.Generator) -> Any:
        """The argument for these sizes: random contents, or zeros for an output."""
        if not isinstance(self.given, str):
            return self.given.copy() if isinstance(self.given, np.ndarray) else self.given
        made = argspec.argument(_substituted(self.given, sizes), rng)
        if self.bounds and isinstance(made, np.ndarray):
            low, high = (evaluate(text, sizes) for text in self.bounds)
            _fill_between(made, low, high, rng)
        return made


_ARRAY = re.compile(r"(?P<type>\w+)\[(?P<shape>[^\]]*)\](?P<fill>=.+)?", re.ASCII)
_SCALAR = re.compile(r"(?P<type>[iu](?:8|16|32|64)|u?int\d+)=(?P<value>.+)", re.ASCII)


def template(given: Any) -> Template:
    """The template of an argument: text as on the command line, an array or a number."""
    if isinstance(given, tuple) or (isinstance(given, str) and "{" in given):
        raise TypeError(
            f"judge takes arrays and numbers, and no structs or tensor maps: {given!r:.80}"
        )
    if not isinstance(given, str):
        return Template(given)
    array = _ARRAY.fullmatch(given)
    fill = array["fill"] if array else ""
    if array and fill and (inside := re.fullmatch(r"=random\((.*)\)", fill)):
        bounds = _parts(inside[1])
        if len(bounds) != 2:
            raise ValueError(f"argument {given!r}: expected two bounds, as in random(0, n)")
        plain = f"{array['type']}[{array['shape']}]"
        return Template(plain, bounds=(bounds[0], bounds[1]))
    return Template(given, bool(array) and fill is None, fill == "=random")


def _fill_between(array: Array, low: int, high: int, rng: np.random.Generator) -> None:
    """Random numbers from low below high; of integers, both ends are among them."""
    if array.dtype.kind == "f":
        array[...] = rng.uniform(low, high, array.shape)
        return
    info = np.iinfo(array.dtype)
    if not info.min <= low < high <= info.max + 1:
        raise ValueError(f"random({low}, {high}) is no range of {array.dtype}")
    array[...] = rng.integers(low, high, array.shape)
    flat = array.reshape(-1)
    places = rng.permutation(flat.size)[:2]
    flat[places] = [low, high - 1][: places.size]


def _substituted(text: str, sizes: Sizes) -> str:
    """The text with the values of its expressions."""
    if array := _ARRAY.fullmatch(text):
        lengths = [str(evaluate(part, sizes)) for part in _parts(array["shape"])]
        return f"{array['type']}[{','.join(lengths)}]{array['fill'] or ''}"
    scalar = _SCALAR.fullmatch(text)
    if scalar and re.search(r"[a-z]\w*", re.sub(r"0[xob]\w+", "", scalar["value"])):
        return f"{scalar['type']}={evaluate(scalar['value'], sizes)}"
    names = re.findall(r"[A-Za-z_]\w*", text)
    if names and all(name in sizes or name in _FUNCTIONS for name in names):  # n, 2*n
        return str(evaluate(text, sizes))
    return text


# ---- contents


def _normal(like: Array, rng: np.random.Generator) -> Array:
    return np.asarray(rng.standard_normal(like.shape)).astype(like.dtype)


def _sprinkled(like: Array, rng: np.random.Generator, values: Sequence[float]) -> Array:
    """Normal numbers, and a few of each of these values at random places."""
    made = _normal(like, rng)
    flat = made.reshape(-1)
    if flat.size:
        count = min(max(len(values), flat.size // 64), flat.size)
        places = rng.choice(flat.size, count, replace=False)
        flat[places] = np.resize(np.array(values, like.dtype), count)
    return made


def _nan(like: Array, rng: np.random.Generator) -> Array:
    return _sprinkled(like, rng, [np.nan])


def _inf(like: Array, rng: np.random.Generator) -> Array:
    return _sprinkled(like, rng, [np.inf, -np.inf])


def _subnormal(like: Array, rng: np.random.Generator) -> Array:
    tiny = np.finfo(like.dtype).tiny
    return np.asarray(rng.uniform(-1, 1, like.shape) * float(tiny)).astype(like.dtype)


def _large(like: Array, rng: np.random.Generator) -> Array:
    """Up to the root of the largest number over 16, so that sums of products do not overflow."""
    top = float(np.sqrt(np.float64(np.finfo(like.dtype).max))) / 16
    return np.asarray(rng.uniform(-1, 1, like.shape) * top).astype(like.dtype)


def _cancelling(like: Array, rng: np.random.Generator) -> Array:
    """Neighbours that nearly cancel."""
    made = _normal(like, rng)
    flat = made.reshape(-1)
    pairs = flat.size // 2
    noise = 1 + 0.01 * rng.standard_normal(pairs)
    flat[1 : 2 * pairs : 2] = (-flat[: 2 * pairs : 2].astype(np.float64) * noise).astype(made.dtype)
    return made


def _extremes(like: Array, rng: np.random.Generator) -> Array:
    """Integers of the whole range, the smallest and the largest among them."""
    info = np.iinfo(like.dtype)
    made = np.asarray(rng.integers(info.min, info.max, like.shape, like.dtype, endpoint=True))
    flat = made.reshape(-1)
    flat[:2:1] = np.array([info.min, info.max], like.dtype)[: flat.size]
    return made


def _zeros(like: Array, rng: np.random.Generator) -> Array:
    return np.zeros_like(like)


def _ones(like: Array, rng: np.random.Generator) -> Array:
    return np.ones_like(like)


class Pattern(NamedTuple):
    """A content of arrays."""

    fill: Callable[[Array, np.random.Generator], Array]
    kinds: str  # NumPy's kinds of types
    alone: bool = False  # in one array at a time, so that results say more than NaN


PATTERNS = {
    "zeros": Pattern(_zeros, "fiu"),
    "ones": Pattern(_ones, "fiu"),
    "nan": Pattern(_nan, "f", alone=True),
    "inf": Pattern(_inf, "f", alone=True),
    "subnormal": Pattern(_subnormal, "f"),
    "large": Pattern(_large, "f"),
    "cancelling": Pattern(_cancelling, "f"),
    "extremes": Pattern(_extremes, "iu"),
}
VALUES = ("random", *PATTERNS)


def poison(like: Array, rng: np.random.Generator, nans: bool) -> Array:
    """Random contents that no kernel writes by chance: NaNs of random bits, or large numbers."""
    if like.dtype.kind != "f":
        return rng.integers(0, 256, like.nbytes, np.uint8).view(like.dtype).reshape(like.shape)
    word = np.dtype(f"u{like.itemsize}")
    info = np.finfo(like.dtype)
    if not nans:
        large = rng.uniform(0.1, 0.9, like.shape) * float(info.max)
        return (large * rng.choice([-1, 1], like.shape)).astype(like.dtype)
    quiet = np.array(np.nan, like.dtype).view(word)
    payload = rng.integers(1, 2 ** (info.nmant - 1), like.shape, np.uint64)
    return (quiet | payload.astype(word)).view(like.dtype)


# ---- cases


class Case(NamedTuple):
    """One call of both kernels."""

    sizes: Sizes
    values: str = "random"  # or a key of PATTERNS
    target: int | None = None  # the only argument that has these values
    aliased: tuple[int, int] | None = None  # two arguments that are one array

    @property
    def name(self) -> str:
        """For example "n=1000, nan in argument 0"."""
        parts = [f"{name}={value}" for name, value in self.sizes.items()]
        where = "" if self.target is None else f" in argument {self.target}"
        parts.append(f"{self.values}{where}")
        if self.aliased:
            parts.append(f"arguments {self.aliased[0]} and {self.aliased[1]} the same array")
        return ", ".join(parts)


def arguments(
    templates: Sequence[Template], case: Case, rng: np.random.Generator
) -> tuple[list[Any], list[bool]]:
    """The arguments of a case, and which of them are outputs."""
    made = [one.make(case.sizes, rng) for one in templates]
    pattern = PATTERNS.get(case.values)
    for at, one in enumerate(templates):
        wanted = one.is_random and case.target in (None, at)
        if pattern and wanted and made[at].dtype.kind in pattern.kinds:
            made[at] = pattern.fill(made[at], rng)
    outputs = [one.is_output for one in templates]
    if case.aliased:
        first, second = case.aliased
        made[second] = made[first]
        outputs[second] = False
    return made, outputs


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % d for d in range(2, int(number**0.5) + 1))


def odd_sizes(sizes: Sizes) -> list[dict[str, int]]:
    """The given sizes, then sizes around them: 1, one less, one more, a prime about half."""
    found = [dict(sizes)]
    for name, size in sizes.items():
        prime = next((p for p in range(max(size // 2, 2), 1, -1) if _is_prime(p)), 1)
        found += [dict(sizes) | {name: other} for other in (1, size - 1, size + 1, prime)]
    found.append(dict.fromkeys(sizes, 1))
    found = [one for one in found if all(value >= 1 for value in one.values())]
    return [one for at, one in enumerate(found) if one not in found[:at]]


def cases(
    templates: Sequence[Template],
    sizes: Sequence[Sizes],
    values: Sequence[str],
    aliasing: str,
) -> Iterator[Case]:
    """All cases, the plainest first.

    aliasing: "all", "inputs" (never an output and an input), or "none".
    """
    base = sizes[0]
    shapes = [one.make(base, np.random.default_rng(0)) for one in templates]
    yield from (Case(one) for one in sizes)
    for name in values:
        pattern = PATTERNS.get(name)
        fitting = [
            at
            for at, one in enumerate(templates)
            if pattern and one.is_random and shapes[at].dtype.kind in pattern.kinds
        ]
        if pattern and fitting:
            targets: list[int | None] = [*fitting] if pattern.alone else [None]
            yield from (Case(base, name, target) for target in targets)
    if aliasing != "none":
        yield from (Case(base, aliased=pair) for pair in _pairs(templates, shapes, aliasing))


def _pairs(
    templates: Sequence[Template], shapes: Sequence[Any], aliasing: str
) -> Iterator[tuple[int, int]]:
    """Pairs of arguments that could be one array: an input, and an input or output."""
    for first, one in enumerate(templates):
        for second, other in enumerate(templates):
            two_inputs = first < second and other.is_random
            alike = (
                isinstance(shapes[first], np.ndarray)
                and isinstance(shapes[second], np.ndarray)
                and shapes[first].dtype == shapes[second].dtype
                and shapes[first].shape == shapes[second].shape
            )
            outputs = other.is_output and aliasing == "all"
            if one.is_random and alike and (two_inputs or outputs):
                yield first, second
