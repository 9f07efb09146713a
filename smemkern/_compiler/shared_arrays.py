"""The shared arrays that a CUDA source declares: bytes per element, and elements per row.

Compilers declare them in PTX as bytes without rows. Their size is known there, which also gives
one dimension, or the element, that the text does not: a template parameter.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

from .. import _core
from .demangle import demangled


class Declared(NamedTuple):
    element: int  # bytes; 0: not known
    columns: int  # elements from one row to the next; 0: one dimension, or not known
    rows: int = 0  # of a plane; 0: at most two dimensions, or not known


# By name in the PTX: an array as _core.explain_element takes it.
Known = Mapping[str, tuple[Any, ...]]

_PTX = re.compile(r"\.shared\b[^;=(){}\[\]]*?\s([\w$.]+)\s*\[(\d*)\]\s*;")
_DECLARATION = re.compile(r"__shared__\b([^;{}()]*(?:\([^;{}()]*\)[^;{}()]*)*);")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*((?:\[[^\[\]]*\]\s*)+)\s*(?:,|$)")
_CONSTANT = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n\\]+?)[ \t]*$"
    r"|\b(?:constexpr|const)\s+(?:static\s+)?(?:unsigned\s+)?\w+\s+(\w+)\s*=\s*([^;,{}]+)[;,]",
    re.MULTILINE,
)
_QUALIFIERS = re.compile(r"(?:__align__|alignas)\s*\([^()]*\)|\b(?:volatile|static|const)\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SIZES = {
    1: "char bool int8_t uint8_t uchar __nv_fp8_e4m3 __nv_fp8_e5m2 byte",
    2: "short ushort int16_t uint16_t half __half __nv_bfloat16 nv_bfloat16",
    4: "int uint unsigned float int32_t uint32_t half2 __half2 __nv_bfloat162 nv_bfloat162",
    8: "double int64_t uint64_t size_t float2 int2 uint2",
    16: "float4 int4 uint4 double2 longlong2 ulonglong2",
}
_SIZE_OF = {name: size for size, names in _SIZES.items() for name in names.split()}
_MAX_DEPTH = 16  # of constants that name constants


def declared(ptx: str, sources: Iterable[str]) -> dict[str, Declared]:
    """What the sources say of each shared array of the PTX, by its name there."""
    return declared_as({name: int(size or 0) for name, size in _PTX.findall(ptx)}, sources)


def known_arrays(ptx: str | None, files: Mapping[str, str]) -> Known:
    """The same, and what the PTX itself says where the sources say nothing. files: texts by name,
    the PTX's being empty."""
    if not ptx:
        return {}
    of_sources = declared(ptx, [text for name, text in files.items() if name])
    return {
        name: (name, at, size, *of_sources.get(name, shape))
        for name, at, size, *shape in _core.shared_arrays(ptx, None, 0)
    }


def named_arrays(names: Iterable[str], sources: Iterable[str]) -> Known:
    """The same where the PTX is not at hand."""
    found = declared_as(dict.fromkeys(names, 0), sources)
    return {name: (name, 0, 0, *shape) for name, shape in found.items()}


def declared_as(sizes: Mapping[str, int], sources: Iterable[str]) -> dict[str, Declared]:
    """What the sources say of arrays with these names in the PTX, and bytes (0: not known)."""
    texts = [_COMMENT.sub(" ", text) for text in sources]
    constants = dict(pair for text in texts for pair in _constants(text))
    found = [row for text in texts for row in _declarations(text)]
    arrays = {}
    for name, size in sizes.items():
        plain = demangled(name).plain if name.startswith("_Z") else name
        rows = [
            _solved(element, dimensions, size, constants)
            for its_name, element, dimensions in found
            if its_name == plain
        ]
        fitting = {row for row in rows if row is not None}
        if len(fitting) == 1:
            arrays[name] = fitting.pop()
    return arrays


def _constants(text: str) -> Iterator[tuple[str, str]]:
    for defined, value, name, expression in _CONSTANT.findall(text):
        yield defined or name, value or expression


def _declarations(text: str) -> Iterator[tuple[str, int, list[str]]]:
    """(name, bytes per element or 0, dimensions) of each array."""
    for whole in _DECLARATION.findall(text):
        words = re.sub(
            r"(?:__align__|alignas)\s*\([^()]*\)|\b(?:volatile|static|const)\b", " ", whole
        )
        kind = words.split("[")[0].split()[:-1]
        for name, dimensions in _NAME.findall(words):
            yield name, _element(kind), re.findall(r"\[([^\[\]]*)\]", dimensions)


def _element(kind: list[str]) -> int:
    if kind.count("long") or kind[:1] == ["longlong"]:
        return 8
    if kind[:1] in (["unsigned"], ["signed"]) and len(kind) > 1:
        kind = kind[1:]
    return _SIZE_OF.get(kind[0].rpartition("::")[2], 0) if kind else 0


def _solved(
    element: int, dimensions: list[str], size: int, constants: Mapping[str, str]
) -> Declared | None:
    """None: it is not the array of that many bytes."""
    lengths = [_value(text, constants) for text in dimensions]
    if not size:  # extern: the launch gives its size
        return _of_lengths(element, lengths)
    known = prod(length for length in lengths if length)
    missing = lengths.count(None)
    if element and missing == 0:
        fits = known * element == size
    elif not element and missing == 0:
        element, rest = divmod(size, known)
        fits = rest == 0
    else:
        fits = not element or size % (known * element) == 0
    if not fits or (element and 16 % element):
        return None
    if element and missing == 1:
        lengths[lengths.index(None)] = size // (known * element)
    return _of_lengths(element, lengths)


def _of_lengths(element: int, lengths: list[int | None]) -> Declared:
    last, before = lengths[-1], lengths[-2] if len(lengths) > 2 else 0
    return Declared(element, (last or 0) if len(lengths) > 1 else 0, before or 0 if last else 0)


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
}


def _value(text: str, constants: Mapping[str, str], depth: int = 0) -> int | None:
    """A positive dimension; None: not known."""
    try:
        found = _evaluated(ast.parse(text.strip(), mode="eval").body, constants, depth)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None
    return found if found is not None and 0 < found < 1 << 32 else None


def _evaluated(node: ast.expr, constants: Mapping[str, str], depth: int) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name) and depth < _MAX_DEPTH:
        given = constants.get(node.id)
        return None if given is None else _value(given, constants, depth + 1)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left = _evaluated(node.left, constants, depth)
        right = _evaluated(node.right, constants, depth)
        if left is not None and right is not None and max(abs(left), abs(right)) < 1 << 32:
            return _OPERATORS[type(node.op)](left, right)
    return None
