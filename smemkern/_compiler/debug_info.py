"""The variables of a source, and where PTX keeps them: the debug information of nvcc -G.

PTX has it as DWARF 2, in sections of bytes, labels and names of sections. A register's number is
its name, as the bytes of an integer. The text is untrusted: what is malformed has no variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where a variable is, from one line of the PTX to before another."""

    begin: int
    end: int
    register: str | None  # "%r1"
    symbol: str | None  # or a variable of the PTX ...
    offset: int  # ... and bytes from its start


class Variable(NamedTuple):
    name: str
    function: str  # as the PTX names it
    line: int  # of its declaration
    dtype: str | None  # of NumPy: of an element; None: a struct, which is bytes
    size: int  # bytes
    shape: tuple[int, ...]  # of an array
    parameter: bool
    places: tuple[Place, ...]


class _Malformed(Exception):
    pass


_SECTION = re.compile(r"^\s*\.section\s+(\.\w+)\s*\{?\s*$")
_DATA = re.compile(r"^\s*\.(b8|b16|b32|b64)\s+(.*?)\s*;?\s*$")
_LABEL = re.compile(r"^\s*([$%\w]+):\s*$")
_NUMBER = re.compile(r"^-?(0[xX][0-9a-fA-F]+|\d+)$")
_MAX_DIES = 200_000

# Tags, attributes, operations and encodings of DWARF 2 that compilers of CUDA use.
_ARRAY, _PARAMETER, _LEXICAL_BLOCK, _POINTER, _REFERENCE = 0x01, 0x05, 0x0B, 0x0F, 0x10
_STRUCT, _TYPEDEF, _INLINED, _SUBRANGE, _BASE = 0x13, 0x16, 0x1D, 0x21, 0x24
_CONST, _ENUMERATION, _FUNCTION, _VARIABLE, _VOLATILE, _CLASS = 0x26, 0x04, 0x2E, 0x34, 0x35, 0x02
_LOCATION, _NAME, _BYTE_SIZE, _LOW, _HIGH = 0x02, 0x03, 0x0B, 0x11, 0x12
_UPPER_BOUND, _ORIGIN, _COUNT, _LINE, _ENCODING, _TYPE = 0x2F, 0x31, 0x37, 0x3B, 0x3E, 0x49
_LINKAGE = 0x2007
_OP_ADDRESS, _OP_PLUS, _OP_REGISTER = 0x03, 0x23, 0x90
_FORM_SIZES = {
    **{0x01: 8, 0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x10: 4},
    **{0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x0E: 4},
}
_KINDS = {2: "u", 4: "f", 5: "i", 6: "i", 7: "u", 8: "u"}


class _Section:
    """The bytes of a section; names in it are kept by their offset."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.names: dict[int, tuple[str, int]] = {}

    def add(self, kind: str, values: str) -> None:
        size = int(kind[1:]) // 8
        for value in values.split(","):
            value = value.strip()
            if _NUMBER.match(value):
                self.data += (int(value, 0) % (1 << 8 * size)).to_bytes(size, "little")
                continue
            name, _, addend = value.partition("+")
            if addend and not _NUMBER.match(addend):
                raise _Malformed(value)
            self.names[len(self.data)] = (name, int(addend or "0", 0))
            self.data += bytes(size)


class _Reader:
    def __init__(self, section: _Section, at: int) -> None:
        self.section, self.at = section, at

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.section.data):
            raise _Malformed("cut")
        self.at += size
        return bytes(self.section.data[self.at - size : self.at])

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def name(self, size: int) -> tuple[str, int] | None:
        """The name that stands in place of a number; None: it is a number."""
        found = self.section.names.get(self.at)
        self.take(size)
        return found

    def leb(self) -> int:
        value = 0
        for shift in range(0, 140, 7):
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise _Malformed("a number without an end")

    def text(self) -> str:
        end = self.section.data.find(0, self.at)
        if end < 0:
            raise _Malformed("a text without an end")
        return self.take(end + 1 - self.at)[:-1].decode("utf-8", "replace")


class _Entry:
    """A debugging information entry."""

    def __init__(self, tag: int, parent: _Entry | None) -> None:
        self.tag, self.parent = tag, parent
        self.attributes: dict[int, Any] = {}
        self.children: list[_Entry] = []


class _Info:
    def __init__(self, ptx: str) -> None:
        self.sections: dict[str, _Section] = {}
        self.labels: dict[str, int] = {}
        self._read(ptx)
        self.entries: dict[int, _Entry] = {}

    def _read(self, ptx: str) -> None:
        section: _Section | None = None
        for number, line in enumerate(ptx.splitlines(), 1):
            if found := _SECTION.match(line):
                section = self.sections.setdefault(found[1], _Section())
            elif section is not None and (found := _DATA.match(line)):
                section.add(found[1], found[2])
            elif section is not None and line.strip() == "}":
                section = None
            elif section is None and (found := _LABEL.match(line)):
                self.labels[found[1]] = number

    # ---- entries ----

    def _abbreviations(self, at: int) -> dict[int, tuple[int, bool, list[tuple[int, int]]]]:
        reader, found = _Reader(self.sections[".debug_abbrev"], at), {}
        while code := reader.leb():
            tag, children, attributes = reader.leb(), bool(reader.number(1)), []
            while True:
                pair = (reader.leb(), reader.leb())
                if pair == (0, 0):
                    break
                attributes.append(pair)
            found[code] = (tag, children, attributes)
        return found

    def _value(self, reader: _Reader, form: int, base: int) -> Any:
        if form == 0x08:
            return reader.text()
        if form in (0x0A, 0x03, 0x04, 0x09):  # blocks
            size = (
                reader.leb() if form == 0x09 else reader.number({0x0A: 1, 0x03: 2, 0x04: 4}[form])
            )
            begin = reader.at
            reader.take(size)
            return (begin, reader.at)
        if form in (0x0D, 0x0F, 0x15):
            value = reader.leb()
            return value + base if form == 0x15 else value
        if form not in _FORM_SIZES:
            raise _Malformed(f"form {form}")
        size = _FORM_SIZES[form]
        begin = reader.at
        name = reader.name(size)
        value = int.from_bytes(reader.section.data[begin : reader.at], "little")
        if form == 0x0E:
            return _Reader(self.sections[".debug_str"], name[1] if name else value).text()
        if name is not None:
            return name
        return value + base if form in (0x11, 0x12, 0x13, 0x14) else value

    def read_entries(self) -> Iterator[_Entry]:
        """All entries, each after its parent."""
        info = self.sections[".debug_info"]
        unit = 0
        while unit < len(info.data):
            reader = _Reader(info, unit)
            end = unit + 4 + reader.number(4)
            reader.take(2)
            at = reader.name(4)
            reader.take(1)
            abbreviations = self._abbreviations(at[1] if at else 0)
            yield from self._unit(reader, unit, min(end, len(info.data)), abbreviations)
            unit = end

    def _unit(self, reader: _Reader, base: int, end: int, known: Any) -> Iterator[_Entry]:
        parent: _Entry | None = None
        while reader.at < end:
            offset, code = reader.at, reader.leb()
            if code == 0:
                parent = parent.parent if parent else None
                continue
            if code not in known or len(self.entries) > _MAX_DIES:
                raise _Malformed("an entry of no kind")
            tag, has_children, attributes = known[code]
            entry = _Entry(tag, parent)
            for attribute, form in attributes:
                entry.attributes[attribute] = self._value(reader, form, base)
            self.entries[offset] = entry
            if parent:
                parent.children.append(entry)
            parent = entry if has_children else parent
            yield entry

    def attribute(self, entry: _Entry, name: int) -> Any:
        """An attribute of the entry, or of the one that it is an instance of."""
        for _ in range(8):
            if name in entry.attributes:
                return entry.attributes[name]
            origin = self.entries.get(entry.attributes.get(_ORIGIN, -1))
            if origin is None:
                return None
            entry = origin
        return None

    # ---- types ----

    def type_of(self, entry: _Entry) -> tuple[str | None, int, tuple[int, ...]]:
        """(NumPy type of an element, bytes, shape)"""
        at = self.attribute(entry, _TYPE)
        shape: tuple[int, ...] = ()
        for _ in range(32):
            kind = self.entries.get(at if isinstance(at, int) else -1)
            if kind is None:
                break
            if kind.tag in (_POINTER, _REFERENCE):
                return _sized("u8", 8, shape)
            if kind.tag in (_BASE, _ENUMERATION):
                size = int(kind.attributes.get(_BYTE_SIZE, 4))
                letter = _KINDS.get(kind.attributes.get(_ENCODING, 5))
                named = f"{letter}{size}" if letter and size in (1, 2, 4, 8) else None
                return _sized(None if named == "f1" else named, size, shape)
            if kind.tag in (_STRUCT, _CLASS):
                return _sized(None, int(kind.attributes.get(_BYTE_SIZE, 0)), shape)
            if kind.tag == _ARRAY:
                shape += tuple(map(_length, (c for c in kind.children if c.tag == _SUBRANGE)))
            elif kind.tag not in (_TYPEDEF, _CONST, _VOLATILE):
                break
            at = kind.attributes.get(_TYPE)
        return None, 0, ()

    # ---- places ----

    def _range(self, entry: _Entry) -> tuple[int, int]:
        """The lines of the PTX of the innermost scope of an entry."""
        scope = entry.parent
        while scope is not None:
            low, high = scope.attributes.get(_LOW), scope.attributes.get(_HIGH)
            if isinstance(low, tuple) and isinstance(high, tuple):
                begin, end = self.labels.get(low[0]), self.labels.get(high[0])
                if begin is not None and end is not None:
                    return begin, end
            scope = scope.parent
        return 0, 0

    def _expression(self, section: _Section, begin: int, end: int) -> tuple[Any, Any, int] | None:
        """(register, symbol, offset) of an expression; None: another kind."""
        reader = _Reader(section, begin)
        operation = reader.number(1)
        if operation == _OP_REGISTER:
            value = reader.leb()
            name = value.to_bytes((value.bit_length() + 7) // 8, "big").decode("latin-1")
            return (name, None, 0) if name.isprintable() else None
        if operation != _OP_ADDRESS:
            return None
        symbol = reader.name(8)
        if symbol is None:
            return None
        offset = symbol[1]
        if reader.at < end and reader.number(1) == _OP_PLUS:
            offset += reader.leb()
        return None, symbol[0], offset

    def places(self, entry: _Entry) -> Iterator[Place]:
        at = entry.attributes.get(_LOCATION)
        begin, end = self._range(entry)
        if isinstance(at, tuple) and isinstance(at[0], int):
            found = self._expression(self.sections[".debug_info"], *at)
            if found and begin < end:
                yield Place(begin, end, *found)
            return
        if not isinstance(at, (tuple, int)):
            return
        section = self.sections.get(".debug_loc")
        if section is None:
            return
        reader = _Reader(section, at[1] if isinstance(at, tuple) else at)
        while True:
            low, high = reader.name(8), reader.name(8)
            if low is None or high is None:
                return
            size = reader.number(2)
            found = self._expression(section, reader.at, reader.at + size)
            reader.take(size)
            first, last = self.labels.get(low[0]), self.labels.get(high[0])
            if found and first is not None and last is not None:
                yield Place(first, last, *found)

    def variables(self) -> Iterator[Variable]:
        for entry in list(self.read_entries()):
            if entry.tag not in (_VARIABLE, _PARAMETER):
                continue
            function = _function(entry)
            name = self.attribute(entry, _NAME)
            places = tuple(self.places(entry))
            if function is None or not isinstance(name, str) or not places:
                continue
            named = self.attribute(function, _LINKAGE) or self.attribute(function, _NAME)
            line = self.attribute(entry, _LINE)
            parameter = entry.tag == _PARAMETER
            yield Variable(
                name, str(named), int(line or 0), *self.type_of(entry), parameter, places
            )


def _sized(
    dtype: str | None, size: int, shape: tuple[int, ...]
) -> tuple[str | None, int, tuple[int, ...]]:
    for length in shape:
        size *= length
    return dtype, size, shape


def _length(entry: _Entry) -> int:
    if _COUNT in entry.attributes:
        return int(entry.attributes[_COUNT])
    return int(entry.attributes.get(_UPPER_BOUND, -1)) + 1


def _function(entry: _Entry) -> _Entry | None:
    """The function that the entry is in, with the code that it was inlined in."""
    scope = entry.parent
    while scope is not None and scope.tag != _FUNCTION:
        scope = scope.parent
    return scope


@lru_cache(maxsize=4)
def variables(ptx: str) -> tuple[Variable, ...]:
    """The variables of the source that the PTX's debug information describes; () without it."""
    if ".debug_info" not in ptx or ".debug_abbrev" not in ptx:
        return ()
    try:
        return tuple(_Info(ptx).variables())
    except (_Malformed, KeyError, ValueError, OverflowError, RecursionError, TypeError):
        return ()
