"""ZLUDA's programs: their inputs and results are in a table of Rust macros, which this reads."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from suites.reference import Launch

TABLE = "ptx/src/test/spirv_run/mod.rs"
SHARED_BYTES = 1024  # of each launch there
WARPS = 64  # threads of the tests of warps

TYPES = {
    f"{kind}{bits}": np.dtype(f"{name}{bits}")
    for kind, name, all_bits in (
        ("u", "uint", (8, 16, 32, 64)),
        ("i", "int", (8, 16, 32, 64)),
        ("f", "float", (16, 32, 64)),
    )
    for bits in all_bits
}
TYPES["bf16"] = np.dtype(ml_dtypes.bfloat16)

CALL = re.compile(r"^test_ptx(_with_32|_warp)?!\(\s*(\w+)\s*(?:,(.*?))?\)\s*;", re.M | re.S)
LITERAL = re.compile(
    r"(?:0x(?P<hex>[0-9a-fA-F_]+?)|0b(?P<bin>[01_]+)|(?P<dec>[0-9][0-9_]*(?:\.[0-9_]*)?))"
    r"_?(?P<type>[ui](?:8|16|32|64)|f(?:32|64))?"
)
NAMED = re.compile(r"(?:half::|std::)?(bf16|[uif]\d+)::(?:consts::)?(\w+)(?:\((.*)\))?")


def _named(kind: str, name: str, given: str | None) -> Any:
    dtype = TYPES[kind]
    if name.startswith("from_"):
        value = _value(given or "")[0]
        if name == "from_bits":
            return np.array(int(value), f"u{dtype.itemsize}").view(dtype)[()]
        return dtype.type(value)
    if name.lower().removesuffix("_value") in ("max", "min"):
        limits = np.iinfo(dtype)
        return dtype.type(limits.max if name.lower().startswith("max") else limits.min)
    known = {"NAN": math.nan, "INFINITY": math.inf, "NEG_INFINITY": -math.inf, "PI": math.pi}
    return dtype.type(known[name])


def _value(text: str) -> tuple[Any, str]:
    """A constant expression of Rust, and its type if it states one."""
    text = text.strip()
    if "/" in text:
        (left, kind), (right, other) = map(_value, text.split("/"))
        dtype = TYPES[kind or other].type
        return dtype(left) / dtype(right), kind or other
    if text.endswith(".to_bits()"):
        value, kind = _value(text.removesuffix(".to_bits()"))
        bits = TYPES[kind].itemsize * 8
        return int(np.array(value).view(f"u{bits // 8}")), f"u{bits}"
    if text.startswith("-"):
        value, kind = _value(text[1:])
        return -value, kind
    if found := NAMED.fullmatch(text):
        return _named(*found.groups()), found[1]
    found = LITERAL.fullmatch(text)
    if not found:
        raise ValueError(f"expected a constant, found {text!r}")
    kind = found["type"] or ""
    if found["dec"]:
        number = found["dec"].replace("_", "")
        return (float(number) if "." in number or kind[:1] == "f" else int(number)), kind
    digits = (found["hex"] or found["bin"]).replace("_", "")
    return int(digits, 16 if found["hex"] else 2), kind


def array(text: str) -> np.ndarray[Any, Any]:
    """`[1u32, 2, 3]`: all elements have the type that one of them states, or Rust's default."""
    elements = [part for part in re.split(r",(?![^()]*\))", text.strip()[1:-1]) if part.strip()]
    values = [_value(element) for element in elements]
    default = "f64" if any(isinstance(value, float) for value, _ in values) else "i32"
    kind = next((kind for _, kind in values if kind), default)
    return np.array([value for value, _ in values]).astype(TYPES[kind])


def table(root: Path) -> dict[str, list[np.ndarray[Any, Any]]]:
    """By program: [input, output], [output] for one of a warp, [] if it only compiles."""
    text = re.sub(r"//[^\n]*", "", (root / TABLE).read_text())
    found = {}
    for _, name, given in CALL.findall(text):
        arrays = re.findall(r"\[[^\[\]]*\]", given or "")
        found[name] = [array(one) for one in arrays]
    return found


def launch(arrays: list[np.ndarray[Any, Any]], n_parameters: int) -> Launch:
    """As ZLUDA's tests launch: one thread, or two warps, which get the output for each pointer."""
    out = np.zeros_like(arrays[-1])
    warp = len(arrays) == 1
    args = [out] * n_parameters if warp else [arrays[0], out]
    at = len(args) - 1
    return Launch(1, WARPS if warp else 1, args, {at: arrays[-1]}, 0, 0, SHARED_BYTES)
