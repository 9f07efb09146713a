"""Parses kernel arguments and launch extents given as text on the command line.

    f32[1024]           an array of zeros          i32=5      a scalar
    f32[64,64]=random   filled: random, arange,    data.npy   an array from a file
                        zeros, ones, or any number
    5, 0.5              a number of the parameter's type
    {5,f32[64]}         a struct of these, in which an array is a pointer and 5 an int
    tensor{f32[64,64]=random,box=16x32,swizzle=128B,element_strides=2x1,fill=nan}
                        a tensor map of an array; all after the box can be left out

Types are a letter and a number of bits (f16 f32 f64, i8 ... i64, u8 ... u64) or NumPy's names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._core import TensorMap

_KINDS = {"f": "float", "i": "int", "u": "uint"}
_ARRAY = re.compile(r"(?P<type>\w+)\[(?P<shape>[^\]]*)\](?:=(?P<fill>.+))?", re.ASCII)
_SCALAR = re.compile(r"(?P<type>\w+)=(?P<value>.+)", re.ASCII)
_MAX_STRUCTS = 100
_FORMS = (
    "f32[1024], f32[64,64]=random (arange, ones, zeros, a number), 5, i32=5, a file x.npy, "
    "a struct of these {5,f32[64]}, or a tensor map tensor{f32[64,64],box=16x32}"
)


def _dtype(name: str, text: str) -> np.dtype[Any]:
    short = re.fullmatch(r"([fiu])(8|16|32|64)", name)
    try:
        dtype = np.dtype(_KINDS[short[1]] + short[2] if short else name)
    except TypeError:
        dtype = None
    if dtype is None or dtype.kind not in "fiu" or dtype.itemsize > 8:
        raise ValueError(
            f"argument {text!r}: there is no type {name!r}; use f16 f32 f64, i8 i16 i32 i64, "
            "u8 u16 u32 u64"
        )
    return dtype


def _number(text: str, dtype: np.dtype[Any], argument: str) -> np.generic[Any]:
    try:
        value = float(text) if dtype.kind == "f" else int(text, 0)
    except ValueError:
        wanted = "a number" if dtype.kind == "f" else "an integer"
        raise ValueError(f"argument {argument!r}: {text!r} is not {wanted}") from None
    if dtype.kind != "f" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise ValueError(f"argument {argument!r}: {text} does not fit into {dtype}")
    return dtype.type(value)


def _shape(text: str, argument: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(length) for length in text.split(","))
    except ValueError:
        shape = (-1,)
    if min(shape) < 0:
        raise ValueError(f"argument {argument!r}: expected lengths, as in [64,64]; found [{text}]")
    return shape


def _array(
    dtype: np.dtype[Any], shape: tuple[int, ...], fill: str, argument: str, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    if fill == "random":
        if dtype.kind == "f":
            return rng.standard_normal(shape).astype(dtype)
        low, high = (-100 if dtype.kind == "i" else 0), (255 if dtype == np.uint8 else 100)
        return rng.integers(low, high, shape, endpoint=True).astype(dtype)
    if fill == "arange":
        return np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    if fill in ("zeros", "ones"):
        return np.full(shape, int(fill == "ones"), dtype)
    return np.full(shape, _number(fill, dtype, argument))


def _plain_number(text: str) -> int | float | None:
    """A number without a type, which a Kernel converts to the parameter's; None: it is none."""
    for kind in (lambda: int(text, 0), lambda: float(text)):
        try:
            return kind()
        except ValueError:
            continue
    return None


Argument = np.ndarray[Any, Any] | np.generic | int | float | tuple[Any, ...] | TensorMap


def _members(text: str) -> list[str]:
    """Splits at the commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


_TENSOR_OPTIONS = ("box", "swizzle", "element_strides", "fill")


def tensor_members(text: str) -> list[str]:
    """The array and the options of tensor{...}, as texts."""
    return _members(text[len("tensor{") : -1])


def _tensor(text: str, rng: np.random.Generator) -> TensorMap:
    """A tensor map: an array, then the options of TensorMap, lists as 16x32."""
    first, *given = tensor_members(text)
    array = argument(first, rng)
    if not isinstance(array, np.ndarray):
        raise ValueError(f"argument {text!r}: expected an array first, found {first!r}")
    options: dict[str, Any] = {}
    for one in given:
        name, _, value = one.partition("=")
        if name not in _TENSOR_OPTIONS or name in options:
            known = ", ".join(_TENSOR_OPTIONS)
            raise ValueError(f"argument {text!r}: expected each of {known} once, found {one!r}")
        lists = name in ("box", "element_strides")
        options[name] = _counts(value, text) if lists else value
    if "box" not in options:
        raise ValueError(f"argument {text!r}: a tensor map needs a box, as box=16x32")
    try:
        return TensorMap(array, **options)
    except (TypeError, ValueError) as wrong:
        raise ValueError(f"argument {text!r}: {wrong}") from None


def _counts(given: str, text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(x\d+)*", given, re.ASCII):
        raise ValueError(f"argument {text!r}: expected numbers, as 16x32, found {given!r}")
    return tuple(map(int, given.split("x")))


def argument(text: str, rng: np.random.Generator) -> Argument:
    """One argument of a kernel.

    Parameters
    ----------
    text : str
        One of the forms at the top of this file. Random floats are normal with mean 0 and standard
        deviation 1. Random integers are -100 to 100, unsigned ones 0 to 100.
    rng : numpy.random.Generator
        The generator for `random`.

    Raises
    ------
    ValueError
        If the text matches none of the forms.
    OSError
        If a file cannot be read.
    """
    if text.startswith("{") and text.endswith("}"):
        if text.count("{") > _MAX_STRUCTS:
            raise ValueError(f"an argument has more than {_MAX_STRUCTS} structs")
        return tuple(argument(part, rng) for part in _members(text[1:-1]))
    if text.startswith("tensor{") and text.endswith("}"):
        return _tensor(text, rng)
    if text.endswith(".npy"):
        return np.load(Path(text), allow_pickle=False)
    if found := _ARRAY.fullmatch(text):
        dtype = _dtype(found["type"], text)
        return _array(dtype, _shape(found["shape"], text), found["fill"] or "zeros", text, rng)
    if found := _SCALAR.fullmatch(text):
        dtype = _dtype(found["type"], text)
        return _number(found["value"], dtype, text)
    if (number := _plain_number(text)) is not None:
        return number
    raise ValueError(f"argument {text!r} should be one of {_FORMS}")


def arguments(texts: Sequence[str], seed: int = 0) -> list[Argument]:
    """All arguments of a launch. Equal texts and seeds give equal data."""
    rng = np.random.default_rng(seed)
    return [argument(text, rng) for text in texts]


def extent(text: str) -> tuple[int, ...]:
    """The extent of a grid or block: "256", "16,16", "16x16x1".

    Raises
    ------
    ValueError
        If it is not one to three positive integers.
    """
    try:
        lengths = tuple(int(length) for length in re.split("[,x]", text))
    except ValueError:
        lengths = ()
    if not 1 <= len(lengths) <= 3 or min(lengths) < 1:
        raise ValueError(f"expected one to three positive integers, as in 16,16; found {text!r}")
    return lengths
