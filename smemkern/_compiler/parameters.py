"""The parameters of a kernel as its source declares them: their types and names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .demangle import demangled
from .outline import Outline, every

if TYPE_CHECKING:
    from .._core import Kernel


class Parameter(NamedTuple):
    type: str  # "" if it is not known
    name: str

    def __str__(self) -> str:
        space = "" if self.type.endswith(("*", "&")) or not self.type else " "
        return f"{self.type}{space}{self.name}" if self.name else self.type


def parameters(kernel: Kernel, n: int) -> list[Parameter]:
    """The `n` parameters of a kernel: types from its mangled name, names from its source."""
    found = demangled(kernel.name)
    types = [] if found.parameters in (None, ("void",)) else list(found.parameters or ())
    declared = _declared(found.plain, n, tuple(sorted(kernel._origin.texts.items())))
    if len(types) != n:
        types = [one.type for one in declared] if declared else [""] * n
    names = [one.name for one in declared] if declared else [""] * n
    return [Parameter(*pair) for pair in zip(types, names, strict=True)]


@lru_cache(maxsize=64)
def _declared(name: str, n: int, texts: tuple[tuple[str, str], ...]) -> list[Parameter]:
    """The parameters in the source; empty unless exactly one kernel has this name and number."""
    found = []
    for _, text in texts:
        if name not in text or "__global__" not in text:
            continue
        for item in every(Outline(text).items):
            words = [token.text for token in item.head]
            if item.kind == "function" and "__global__" in words and name in words:
                own = _split(words[words.index(name) + 1 :])
                if len(own) == n and own not in found:
                    found.append(own)
    return found[0] if len(found) == 1 else []


def _split(words: Sequence[str]) -> list[Parameter]:
    """The parameters between the parentheses that begin here."""
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += (word in "([{<") - (word in ")]}>")
        if depth == 0:
            break
        if word == "," and depth == 1:
            parts.append([])
        elif not (word == "(" and depth == 1 and parts == [[]]):
            parts[-1].append(word)
    return [_parameter(part) for part in parts if part and part != ["void"]]


_QUALIFIERS = ("__restrict__", "__restrict", "restrict", "__grid_constant__", "volatile")


def _parameter(words: Sequence[str]) -> Parameter:
    kept = [word for word in words if word not in _QUALIFIERS]
    if "=" in kept:
        kept = kept[: kept.index("=")]
    if "[" in kept:  # int x[]: a pointer
        at = kept.index("[")
        kept = [*kept[: at - 1], "*", kept[at - 1]]
    name = kept.pop() if len(kept) > 1 and re.fullmatch(r"[^\W\d]\w*", kept[-1]) else ""
    text = " ".join(kept)
    text = re.sub(r"\s*(::|<|>)\s*", r"\1", text)
    return Parameter(re.sub(r"\*\s+(?=[*&])", "*", text), name)


# ---- the types of arrays ----

_SCALARS: Mapping[str, str] = {
    "float": "f4",
    "double": "f8",
    "__half": "f2",
    "half": "f2",
    "short": "i2",
    "unsigned short": "i2",
    "int": "i4",
    "unsigned int": "i4",
    "unsigned": "i4",
    "int32_t": "i4",
    "uint32_t": "i4",
    "long": "i8",
    "unsigned long": "i8",
    "long long": "i8",
    "unsigned long long": "i8",
    "int64_t": "i8",
    "uint64_t": "i8",
    "size_t": "i8",
}
_NAMES = {
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
}


def pointees(kernel: Kernel, n: int) -> tuple[str | None, ...]:
    """What each parameter points to, as a NumPy type; None: no pointer to a known type."""
    found = []
    for one in parameters(kernel, n):
        text = " ".join(
            w for w in one.type.replace("*", " * ").split() if w not in ("const", *_QUALIFIERS)
        )
        found.append(_SCALARS.get(text[:-2]) if text.endswith(" *") else None)
    return tuple(found)


def is_of(name: str, dtype: np.dtype) -> bool:  # type: ignore[type-arg]
    """Whether elements of a C++ type may be of a dtype; true for types that are not known."""
    wanted = _SCALARS.get(" ".join(w for w in name.split() if w != "const"))
    return wanted is None or _fits(wanted, dtype)


def _pointees(kernel: Kernel, n: int) -> tuple[str | None, ...]:
    """The same, found once per kernel."""
    kept = kernel._origin.pointees
    if (kernel.name, n) not in kept:
        kept[kernel.name, n] = pointees(kernel, n)
    return kept[kernel.name, n]


def wrong_array(kernel: Kernel, args: Sequence[object]) -> str | None:
    """What is wrong with the dtype of an array, by the kernel's signature; None: nothing."""
    expected = _pointees(kernel, len(args))
    for number, (wanted, given) in enumerate(zip(expected, args, strict=True)):
        if wanted is None or not isinstance(given, np.ndarray) or _fits(wanted, given.dtype):
            continue
        parameter = parameters(kernel, len(args))[number]
        return (
            f"argument {number} is an array of {given.dtype}, but the kernel's parameter is "
            f"{parameter}; pass {_NAMES[wanted]}, or for other bits x.view(numpy.{_NAMES[wanted]})"
        )
    return None


def number_for_pointer(kernel: Kernel, args: Sequence[object]) -> str | None:
    """What is wrong with a number where the signature has a pointer; None: nothing. A command
    knows no addresses, so the array is missing."""
    for number, (one, given) in enumerate(zip(parameters(kernel, len(args)), args, strict=False)):
        if one.type.endswith("*") and isinstance(given, int | float):
            return (
                f"argument {number} is the number {given}, but the kernel's parameter is {one}; "
                "pass an array, as f32[1024]"
            )
    return None


def _fits(wanted: str, dtype: np.dtype) -> bool:  # type: ignore[type-arg]
    kind, size = wanted[0], int(wanted[1])
    if dtype.kind == "V":  # structs, and types of other packages
        return True
    if kind == "f":
        real = dtype.itemsize == size and (dtype.kind == "f" or size == 2)
        return real or (dtype.kind == "c" and dtype.itemsize == 2 * size)
    # Integers are also storage of packed smaller elements, and unsigned short that of halves.
    return dtype.itemsize < size or (dtype.itemsize == size and (dtype.kind in "iub" or size == 2))


def wrong_number(kernel: Kernel, given: int, n: int) -> str:
    """The message for a call with too few or too many arguments."""
    own = parameters(kernel, n)
    name = demangled(kernel.name).written
    shown = f"{name}({', '.join(map(str, own))})" if any(map(str, own)) else name
    many = f"{n} argument" + "s" * (n != 1)
    text = f"kernel {shown} takes {many} but {given} {'was' if given == 1 else 'were'} given"
    if given < n:
        missing = [
            f"{at} ({one})" if str(one) else str(at) for at, one in enumerate(own) if at >= given
        ]
        text += f"; missing: {', '.join(missing)}, counted from 0"
    return text
