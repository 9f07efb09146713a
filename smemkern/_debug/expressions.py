"""Expressions of the debugger: C's operators over registers, arrays and special registers, by lane.

    %r1 $r1                  a register of PTX
    threadIdx.x %tid.x       special registers, in both spellings; laneid, warpid
    tile[3][4] part[5]       elements of shared arrays
    x[7] x[1][2]             elements of the call's arrays
    *0x40                    the word at byte 64 of the block's shared memory
    + - * / % << >> < <= > >= == != & ^ | && || ! ~ ( )

A value is an array of 32 lanes, or one number for all.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.demangle import variable_name
from .._replay.recording import LANES, NONE
from .machine import Machine


class Wrong(Exception):
    """A command that cannot be done, with the reason."""


class Array(NamedTuple):
    """An array in memory, of which elements can be named."""

    name: str
    memory: int
    offset: int  # of its first element, in bytes
    dtype: np.dtype[Any]
    shape: tuple[int, ...]  # a first length of 0: up to the memory's end
    strides: tuple[int, ...]  # bytes

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize


Value = NDArray[Any]  # of shape (), or (32,): one for each lane


class Cell(NamedTuple):
    """A place in memory, by lane or for all."""

    array: Array
    offsets: NDArray[np.int64]  # bytes in the memory


_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|\d+\.\d*(?:[eE][-+]?\d+)?f?|\.\d+f?|\d+)[uUlL]*"
    r"|(?P<register>[%$][A-Za-z_]\w*(?:\.[xyz])?)"
    r"|(?P<name>[A-Za-z_]\w*(?:\.[xyz]\b)?)"
    r"|(?P<operator><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&^|!~()\[\]]))"
)
_LEVELS: list[dict[str, Callable[[Any, Any], Any]]] = [
    {"||": lambda a, b: (a != 0) | (b != 0)},
    {"&&": lambda a, b: (a != 0) & (b != 0)},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    {"<<": operator.lshift, ">>": operator.rshift},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.truediv, "%": operator.mod},
]
_MAX_DEPTH = 50


def tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        after_operand = found and (found[-1][0] != "operator" or found[-1][1] in (")", "]"))
        if match and after_operand and (match["register"] or "").startswith("%"):
            found.append(("operator", "%"))
            at = text.index("%", at) + 1
            continue
        if match is None:
            raise Wrong(f"expected an expression, found {text[at:].strip()!r}")
        found.append((str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return found


class Scope:
    """The names of one warp at one step."""

    def __init__(self, machine: Machine, warp: int, step: int) -> None:
        self.machine, self.warp, self.step = machine, warp, step

    # ---- parsing and evaluating ----

    def evaluated(self, text: str) -> Value | Cell:
        """A value, or the place in memory that an expression names; raises Wrong."""
        return _Parser(self, tokens(text)).whole()

    def value(self, text: str) -> Value:
        found = self.evaluated(text)
        return self.load(found) if isinstance(found, Cell) else found

    def cell(self, text: str) -> Cell:
        found = self.evaluated(text)
        if not isinstance(found, Cell):
            raise Wrong(
                f"{text.strip()} is no place in memory: name an element, such as tile[3][4]"
            )
        return found

    # ---- names ----

    def register(self, name: str) -> Value:
        special = _SPECIAL.get(name[1:])
        if special:
            return self.special(special)
        for index, register in enumerate(self.machine.header["registers"]):
            if register["name"] in (name, "%" + name[1:]) and self.is_of_function(index):
                return self.register_value(index)
        raise Wrong(f"there is no register {name}; info registers lists them")

    def is_of_function(self, index: int) -> bool:
        """Names of registers repeat in every function: those of the warp's current one count."""
        at = self.machine.next_of(self.warp, self.step) or self.machine.before(self.warp, self.step)
        if at is None:
            return True
        function = self.machine.header["functions"][self.machine.instruction(at)["function"]]
        first = function["first_register"]
        return bool(first <= index < first + function["registers"])

    def register_value(self, index: int) -> Value:
        found = self.machine.recording.register(index, self.warp, self.step)
        name = self.machine.header["registers"][index]["name"]
        if found is None:
            raise Wrong(f"{name} has not been written")
        return found

    def named(self, name: str) -> Value | Array:
        special = _SPECIAL.get(name)
        if special:
            return self.special(special)
        for array in self.arrays():
            if array.name == name:
                return array
        variables = self.machine.variables(self.warp, self.step)
        if name in variables and variables[name].shape[:1] == (LANES,):
            return variables[name]
        raise Wrong(
            f"there is no {name} here: registers are %r1, arrays are listed by info shared, and "
            "variables of the source need -G"
        )

    def special(self, which: tuple[str, int]) -> Value:
        kind, axis = which
        machine, warp = self.machine, self.warp
        if kind == "tid":
            return np.array([machine.thread(warp, lane)[axis] for lane in range(LANES)])
        if kind == "ctaid":
            return np.array(machine.block_of(warp)["index"][axis])
        if kind == "laneid":
            return np.arange(LANES)
        if kind == "warpid":
            return np.array(machine.header["warps"][warp]["warp"])
        return np.array(machine.launch_of(warp)[kind][axis])

    # ---- arrays ----

    def arrays(self) -> list[Array]:
        """The shared arrays of the warp's block, and the call's arrays."""
        return [*self.shared_arrays(), *self.global_arrays()]

    def shared_arrays(self) -> list[Array]:
        header, block = self.machine.header, self.machine.block_of(self.warp)
        memory = block["shared"]
        if memory is None:
            return []
        size = header["memories"][memory]["bytes"]
        return [
            _shared_array(one, memory, size)
            for one in header["shared"]
            if one["launch"] == block["launch"]
        ]

    def global_arrays(self) -> list[Array]:
        found = []
        for index, memory in enumerate(self.machine.header["memories"]):
            if memory["kind"] == "array":
                one = self.machine.header["arrays"][memory["array"]]
                if not one.get("dtype"):
                    one["dtype"] = _DTYPES.get(self.machine.accessed_type(index) or "", "u4")
                found.append(_global_array(one, index, memory["array"]))
        return found

    def at_offset(self, memory: int, offset: int) -> Cell | None:
        """The element at that byte, if it is of an array."""
        for array in self.arrays():
            at = offset - array.offset
            if array.memory != memory or at < 0 or at % array.itemsize:
                continue
            index: list[int] = []
            for stride in array.strides:
                if stride <= 0:
                    break
                index.append(at // stride)
                at %= stride
            inside = all(not n or i < n for i, n in zip(index, array.shape, strict=False))
            if len(index) == len(array.shape) and at == 0 and inside:
                return Cell(array, np.asarray(offset, np.int64))
        return None

    def name_of(self, cell: Cell) -> str:
        """tile[3][4]; cell: of at_offset"""
        at, name = int(cell.offsets) - cell.array.offset, cell.array.name
        for stride in cell.array.strides:
            name += f"[{at // stride}]"
            at %= stride
        return name

    def element(self, array: Array, indices: list[Value]) -> Cell:
        if len(indices) > len(array.shape):
            raise Wrong(f"{array.name} has {len(array.shape)} dimensions, not {len(indices)}")
        if len(indices) < len(array.shape):  # as in C: tile[3] is a row
            raise Wrong(f"{array.name} has {len(array.shape)} dimensions: {_form(array)}")
        offsets: Any = np.asarray(array.offset, np.int64)
        for index, length, stride in zip(indices, array.shape, array.strides, strict=True):
            if index.dtype.kind not in "iu":
                raise Wrong(f"an index of {array.name} should be an integer")
            if length and ((index < 0) | (index >= length)).any():
                raise Wrong(f"an index of {array.name} is outside 0 to {length - 1}")
            offsets = offsets + index.astype(np.int64) * stride
        return Cell(array, offsets)

    def load(self, cell: Cell) -> Value:
        words = self.machine.words(cell.array.memory, self.step)
        data = words.view(np.uint8)
        size = cell.array.itemsize
        if ((cell.offsets < 0) | (cell.offsets + size > len(data))).any():
            raise Wrong(
                f"the recording has no contents of {cell.array.name} there"
                + (": the array is too large" if not len(data) else "")
            )
        taken = data[cell.offsets[..., None] + np.arange(size)]
        return np.ascontiguousarray(taken).view(cell.array.dtype)[..., 0]

    def shared_word(self, address: Value) -> Cell:
        memory = self.machine.block_of(self.warp)["shared"]
        if memory is None or address.dtype.kind not in "iu":
            raise Wrong("an address should be an integer: a byte of the block's shared memory")
        if (address >= 1 << 40).any():
            found = self.machine.memory_of(int(address.max()))
            if found is None or address.ndim:
                raise Wrong("there is no array of the call at that address")
            return Cell(_words("global memory", found[0]), np.asarray(found[1], np.int64))
        return Cell(_words("shared memory", memory), address.astype(np.int64))


def _words(name: str, memory: int) -> Array:
    return Array(name, memory, 0, np.dtype(np.uint32), (0,), (4,))


def _form(array: Array) -> str:
    return array.name + "".join(f"[0..{n - 1}]" if n else "[...]" for n in array.shape)


def _names(ptx: str, cuda: str, kind: str) -> dict[str, tuple[str, int]]:
    return {
        f"{name}.{letter}": (kind, axis)
        for name in (ptx, cuda)
        for axis, letter in enumerate("xyz")
    }


_SPECIAL = {
    **_names("tid", "threadIdx", "tid"),
    **_names("ctaid", "blockIdx", "ctaid"),
    **_names("ntid", "blockDim", "block"),
    **_names("nctaid", "gridDim", "grid"),
    "laneid": ("laneid", 0),
    "warpid": ("warpid", 0),
}
_DTYPES = {
    "f64": "f8", "f32": "f4", "f16": "f2", "u64": "u8", "u32": "u4", "u16": "u2", "u8": "u1",
    "s64": "i8", "s32": "i4", "s16": "i2", "s8": "i1", "b64": "u8", "b32": "u4", "b16": "u2",
    "b8": "u1",
}  # fmt: skip


def _shared_array(one: dict[str, Any], memory: int, memory_bytes: int) -> Array:
    kind = one.get("accessed") or one["type"]
    element = one.get("element")
    dtype = np.dtype(_DTYPES.get(kind, "u4"))
    if element and element != dtype.itemsize:
        dtype = np.dtype({1: "u1", 2: "u2", 4: "u4", 8: "u8"}.get(element, dtype.str))
    size = one["bytes"] or memory_bytes - one["offset"]
    cols = one.get("cols") or 0
    count = size // dtype.itemsize
    if cols and count % cols == 0:
        shape: tuple[int, ...] = (count // cols, cols)
        strides: tuple[int, ...] = (cols * dtype.itemsize, dtype.itemsize)
    else:
        shape, strides = (count,), (dtype.itemsize,)
    return Array(
        one.get("label") or variable_name(one["name"]), memory, one["offset"], dtype, shape, strides
    )


def _global_array(one: dict[str, Any], memory: int, number: int) -> Array:
    name = one.get("label") or f"arg{number}"
    offset = one.get("offset") or 0
    try:
        dtype = np.dtype(one.get("dtype") or "u4")
    except TypeError:  # structs, and types of other packages: as words
        dtype = np.dtype("V")
    if dtype.kind not in "biufc":
        return Array(name, memory, offset, np.dtype("u4"), (one["bytes"] // 4,), (4,))
    shape = tuple(one.get("shape") or (one["bytes"] // dtype.itemsize,))
    strides = tuple(one.get("strides") or np.empty(shape, dtype).strides)
    return Array(name, memory, offset, dtype, shape, strides)


class _Parser:
    """Precedence climbing; at the lowest level unary operators and elements."""

    def __init__(self, scope: Scope, given: list[tuple[str, str]]) -> None:
        self.scope, self.given, self.at = scope, given, 0

    def whole(self) -> Value | Cell:
        found = self.binary(0, 0)
        if self.at < len(self.given):
            raise Wrong(f"expected the end of the expression, found {self.given[self.at][1]!r}")
        return found

    def peek(self) -> str | None:
        kind, text = self.given[self.at] if self.at < len(self.given) else ("", "")
        return text if kind == "operator" else None

    def accept(self, text: str) -> bool:
        if self.peek() != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise Wrong(f"expected {text!r} in the expression")

    def loaded(self, found: Value | Cell) -> Value:
        return self.scope.load(found) if isinstance(found, Cell) else found

    def binary(self, level: int, depth: int) -> Value | Cell:
        if depth > _MAX_DEPTH:
            raise Wrong("the expression is nested too deeply")
        if level == len(_LEVELS):
            return self.unary(depth)
        left = self.binary(level + 1, depth)
        while (name := self.peek()) in _LEVELS[level]:
            self.at += 1
            right = self.loaded(self.binary(level + 1, depth))
            left = _applied(_LEVELS[level][str(name)], str(name), self.loaded(left), right)
        return left

    def unary(self, depth: int) -> Value | Cell:
        for name, apply in (("-", operator.neg), ("~", operator.invert), ("!", operator.not_)):
            if self.accept(name):
                given = self.loaded(self.unary_of(depth))
                if name == "~" and given.dtype.kind == "f":
                    raise Wrong("~ needs an integer")
                return np.asarray(given == 0 if name == "!" else apply(_wide(given)))
        if self.accept("*"):
            return self.scope.shared_word(self.loaded(self.unary_of(depth)))
        return self.element(depth)

    def unary_of(self, depth: int) -> Value | Cell:
        if depth > _MAX_DEPTH:
            raise Wrong("the expression is nested too deeply")
        return self.unary(depth + 1)

    def element(self, depth: int) -> Value | Cell:
        found = self.primary(depth)
        if not isinstance(found, Array):
            return self.lane_element(found, depth)
        indices = []
        while self.accept("["):
            indices.append(self.loaded(self.binary(0, depth + 1)))
            self.expect("]")
        return self.scope.element(found, indices)

    def lane_element(self, found: Value | Cell, depth: int) -> Value | Cell:
        """An element of a variable that is an array of each lane."""
        while not isinstance(found, Cell) and found.ndim > 1 and self.accept("["):
            index = self.loaded(self.binary(0, depth + 1))
            self.expect("]")
            if index.dtype.kind not in "iu" or ((index < 0) | (index >= found.shape[1])).any():
                raise Wrong(f"an index should be an integer from 0 to {found.shape[1] - 1}")
            found = found[np.arange(LANES), np.broadcast_to(index, (LANES,))]
        if not isinstance(found, Cell) and found.ndim > 1:
            raise Wrong(f"it is an array of {found.shape[1]} in each lane: name an element")
        return found

    def primary(self, depth: int) -> Value | Cell | Array:
        if self.accept("("):
            found = self.binary(0, depth + 1)
            self.expect(")")
            return found
        if self.at == len(self.given):
            raise Wrong("the expression ends too early")
        kind, text = self.given[self.at]
        self.at += 1
        if kind == "number":
            return np.array(_number(text))
        if kind == "register":
            return self.scope.register(text)
        if kind == "name":
            return self.scope.named(text)
        raise Wrong(f"expected a value, found {text!r}")


def _number(text: str) -> int | float:
    if text[:2] in ("0x", "0X"):
        found = int(text, 16)
    elif "." in text or "e" in text.lower():
        return float(text.rstrip("f"))
    else:
        found = int(text)
    if found >= 1 << 63:
        raise Wrong(f"{text} is too large")
    return found


def _wide(lanes: NDArray[Any]) -> NDArray[Any]:
    """Integers as 64-bit ones, so that sums and differences do not wrap around."""
    return lanes.astype(np.int64) if lanes.dtype.kind in "iub" else lanes.astype(np.float64)


def _applied(apply: Callable[[Any, Any], Any], name: str, left: Value, right: Value) -> Value:
    a, b = _wide(left), _wide(right)
    is_real = "f" in (a.dtype.kind, b.dtype.kind)
    if is_real and name in ("|", "^", "&", "<<", ">>", "%"):
        raise Wrong(f"{name} needs integers")
    if name in ("<<", ">>") and ((b < 0) | (b > 63)).any():
        raise Wrong("a shift should be by 0 to 63 bits")
    with np.errstate(all="ignore"):
        if name in ("/", "%") and not is_real:
            if (b == 0).any():
                raise Wrong("division by zero")
            quotient = np.sign(a) * np.sign(b) * (abs(a) // abs(b))  # towards zero, as C's
            lanes = quotient if name == "/" else a - quotient * b
        else:
            lanes = np.asarray(apply(a, b))
    return np.asarray(lanes)


__all__ = ["Array", "Cell", "NONE", "Scope", "Value", "Wrong", "tokens"]
