"""CuTe's layouts as text: what Layout.from_cute reads and Layout.to_cute writes.

    (8,64):(64,1)                                   shape:stride, in elements
    ((2,4),8):((1,16),2)                            modes of modes; the first runs fastest
    Swizzle<3,4,3> o (8,64):(64,1)                  a swizzle of the element's number
    Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)    a swizzle of the byte's address
    Sw<3,4,3> o _0 o (_8,_64):(_64,_1)              an offset between them; numbers known statically

Read are the spellings of CUTLASS (C++ and Python) and of the package tensor-layouts.

Swizzle<B,M,S> is x ^ ((x >> S) & mask) with B ones from bit M on. For a negative S it is
x ^ ((x & mask) << -S). Source: CUTLASS, include/cute/swizzle.hpp.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Mode = tuple[tuple[int, int], ...]  # (size, stride) pairs; the first runs fastest

_MAX_TEXT = 10_000
_MAX_SIZE = 1 << 22  # elements whose offsets are compared one by one

_POINTER = r"smem_ptr\s*\[\s*(?P<bits>\d+)\s*b\s*\]\s*(?:\([^()]*\))?"
_OFFSET = r"\{?\s*_?(?P<offset>\d+)\s*\}?"
_SWIZZLE = r"\(?\s*(?:Swizzle|Sw|S)\s*[<(](?P<swizzle>[-\d,\s]*)[>)]\s*\)?"
_FORM = re.compile(
    rf"(?:{_SWIZZLE}\s*(?:o|_)\s*)?(?:{_POINTER}\s*o\s*)?(?:{_OFFSET}\s*o\s*)?(?P<layout>.*)", re.S
)
_COMPOSED = re.compile(
    r"ComposedLayout\((?P<swizzle>Swizzle\([^()]*\)),\s*(?P<layout>Layout\(.*\)),\s*"
    r"offset=(?P<offset>\d+)\)",
    re.S,
)
_CALL = re.compile(r"Layout\((?P<arguments>.*)\)", re.S)
_FORMS = "expected a layout as '(8,64):(64,1)' or 'Swizzle<3,4,3> o (8,64):(64,1)'"


class Cute(NamedTuple):
    """A layout of a tile, as CuTe writes it."""

    rows: Mode
    cols: Mode
    swizzle: tuple[int, int, int] | None  # of elements, or of bytes with a pointer's type
    offset: int  # in elements
    bits: int | None  # of an element, by a pointer's type


# ---- reading ----


def read(text: str) -> Cute:
    """Parses a layout of a tile.

    Raises
    ------
    ValueError
        If the text is no layout, or the layout is no tile: two modes, in which each element has an
        address of its own.
    """
    __tracebackhide__ = True
    if len(text) > _MAX_TEXT:
        raise ValueError(f"a layout of {len(text)} characters is too long")
    plain = text.strip()
    composed = _COMPOSED.fullmatch(plain)
    if composed:  # repr of tensor-layouts
        plain = f"{composed['swizzle']} o {composed['offset']} o {composed['layout']}"
    found = _FORM.fullmatch(plain)
    assert found is not None  # the last part is anything
    shape, stride = _shape_and_stride(found["layout"].strip(), text)
    rows, cols = _modes(shape, stride, text)
    return Cute(
        rows,
        cols,
        _swizzle(found["swizzle"], text),
        int(found["offset"] or 0),
        int(found["bits"]) if found["bits"] else None,
    )


def _swizzle(text: str | None, whole: str) -> tuple[int, int, int] | None:
    if text is None:
        return None
    try:
        bits, base, shift = (int(number) for number in text.split(","))
    except ValueError:
        raise ValueError(f"{whole!r}: a swizzle has three numbers; found <{text}>") from None
    if bits < 0 or base < 0:
        raise ValueError(f"{whole!r}: the first two numbers of a swizzle are not negative")
    return (bits, base, shift) if bits else None


def _shape_and_stride(text: str, whole: str) -> tuple[Any, Any]:
    call = _CALL.fullmatch(text)
    if call:  # Layout((8, 64), (64, 1))
        both = _nest(f"({call['arguments']})", whole)
        if not isinstance(both, tuple) or len(both) != 2:
            raise ValueError(f"{whole!r}: expected Layout(shape, stride)")
        return both[0], both[1]
    if text.startswith("(") and _closes(text) == len(text) - 1:  # ((8, 64) : (64, 1))
        text = text[1:-1]
    shape, colon, stride = text.partition(":")
    if not colon or ":" in stride:
        raise ValueError(f"{whole!r}: {_FORMS}")
    return _nest(shape, whole), _nest(stride, whole)


def _closes(text: str) -> int:
    """The place of the parenthesis that closes the first one; -1 if none does."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at
    return -1


def _nest(text: str, whole: str) -> Any:
    """Nested tuples of integers."""
    bare = re.sub(r"(?<![\w.])_(?=\d)", "", text).strip()
    if not re.fullmatch(r"[\d\s(),-]+", bare):
        raise ValueError(f"{whole!r}: {_FORMS}, of whole numbers; found {text.strip()!r}")
    try:
        return ast.literal_eval(bare)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{whole!r}: {_FORMS}; found {text.strip()!r}") from None


def _pairs(shape: Any, stride: Any, whole: str) -> Iterator[tuple[int, int]]:
    """(size, stride) of each leaf."""
    if isinstance(shape, int) and isinstance(stride, int):
        if shape < 1:
            raise ValueError(f"{whole!r}: a size should be at least 1, not {shape}")
        if stride < 0:
            raise ValueError(f"{whole!r}: a tile has no negative strides, as {stride}")
        yield shape, stride
    elif isinstance(shape, tuple) and isinstance(stride, tuple) and len(shape) == len(stride):
        for one, step in zip(shape, stride, strict=True):
            yield from _pairs(one, step, whole)
    else:
        raise ValueError(f"{whole!r}: the strides {stride} do not have the form of {shape}")


def _modes(shape: Any, stride: Any, whole: str) -> tuple[Mode, Mode]:
    """The modes of rows and columns. A layout of one mode is one row."""
    if isinstance(shape, int) or len(shape) == 1:
        return (), _coalesced(_pairs(shape, stride, whole))
    every = [
        _coalesced(_pairs(*mode, whole))
        for mode in zip(shape, stride if isinstance(stride, tuple) else (), strict=False)
    ]
    list(_pairs(shape, stride, whole))  # the same form
    while len(every) > 2 and not every[-1]:  # one stage
        every.pop()
    if len(every) != 2:
        raise ValueError(
            f"{whole!r} has {len(every)} modes; a tile has two, its rows and its columns: take one "
            "slice of it, or group modes, as ((8,4),64)"
        )
    rows, cols = every
    return rows, cols


def _coalesced(pairs: Iterable[tuple[int, int]]) -> Mode:
    """The fewest (size, stride) pairs with the same offsets in the same order."""
    merged: list[tuple[int, int]] = []
    for size, stride in pairs:
        if size == 1:
            continue
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * size, merged[-1][1])
        else:
            merged.append((size, stride))
    return tuple(merged)


# ---- offsets ----


def size(mode: Mode) -> int:
    return math.prod(n for n, _ in mode)


def last(mode: Mode) -> int:
    """The largest offset."""
    return sum((n - 1) * stride for n, stride in mode)


def offsets(mode: Mode, index: NDArray[np.int64]) -> NDArray[np.int64]:
    """The offset of each index: its digits, the first running fastest, times the strides."""
    total = np.zeros_like(index)
    for n, stride in mode:
        index, digit = np.divmod(index, n)
        total = total + digit * stride
    return total


def check_distinct(rows: Mode, cols: Mode, text: str) -> None:
    """Raises ValueError if two elements have one offset."""
    __tracebackhide__ = True
    span = 1
    for n, stride in sorted((*rows, *cols), key=lambda pair: pair[1]):
        if stride < span:
            break
        span += (n - 1) * stride
    else:
        return
    if size(rows) * size(cols) > _MAX_SIZE:
        raise ValueError(f"{text!r} has overlapping strides and more than {_MAX_SIZE} elements")
    i, j = np.arange(size(rows)), np.arange(size(cols))
    every = offsets(rows, i)[:, None] + offsets(cols, j)[None, :]
    if np.unique(every).size != every.size:
        raise ValueError(f"{text!r} is no tile: two elements have the same address")


# ---- writing ----


def write(rows: Mode, cols: Mode, swizzle: tuple[int, int, int] | None, offset: int = 0) -> str:
    """The layout's text, in elements."""
    shape = ",".join(_written(mode, 0) for mode in (rows, cols))
    stride = ",".join(_written(mode, 1) for mode in (rows, cols))
    parts = [f"({shape}):({stride})"]
    if offset:
        parts.insert(0, str(offset))
    if swizzle or offset:
        parts.insert(0, "Swizzle<{},{},{}>".format(*(swizzle or (0, 0, 0))))
    return " o ".join(parts)


def _written(mode: Mode, which: int) -> str:
    """The sizes (0) or strides (1) of a mode; of a mode of one element "1" and "0"."""
    numbers = [str(pair[which]) for pair in mode] or ["01"[1 - which]]
    return numbers[0] if len(numbers) == 1 else f"({','.join(numbers)})"
