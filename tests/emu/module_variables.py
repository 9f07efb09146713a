"""Variables of random modules that start with values: numbers, and addresses of one another."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from module_model import Family, Frame, Function, Place, Shape, Way, size_of

SPACES = (".global", ".const")
KINDS = (
    "u8",
    "s8",
    "b8",
    "u16",
    "s16",
    "b16",
    "u32",
    "s32",
    "b32",
    "u64",
    "s64",
    "b64",
    "f32",
    "f64",
)


@dataclass
class Table:
    """Addresses of functions of one family, from byte `at` of a variable."""

    name: str
    space: str
    at: int
    members: list[Function]
    address: int
    line: str


class Variables:
    def __init__(self, module: Any) -> None:
        self.module = module
        self.objects: dict[int, bytes] = {}
        self.last = 0
        self.lines: list[str] = []
        self.tables: list[Table] = []
        self.data = self.places()

    def below(self, n: int) -> int:
        return int(self.module.below(n))

    def address(self, bits: bytes | None = None) -> int:
        """Of a new object with these bytes, or of a function."""
        self.last += 1
        if bits is not None:
            self.objects[self.last] = bits
        return self.last << 32

    # ---- numbers ----

    def number(self, kind: str) -> tuple[str, bytes]:
        """As PTX writes it, and its bytes."""
        size, bits = size_of(kind), self.module.random.getrandbits(64)
        if kind[0] == "f":
            word = bits & (1 << 8 * size) - 1
            if self.below(3) == 0:
                value = (self.below(64) - 32) / 8
                return str(value), struct.pack("<f" if size == 4 else "<d", value)
            return f"0{'f' if size == 4 else 'd'}{word:0{2 * size}X}", word.to_bytes(size, "little")
        word = bits >> self.below(64) & (1 << 8 * size) - 1
        given = word.to_bytes(size, "little")
        form = self.below(5)
        if form == 0 and word >> (8 * size - 1):
            return str(word - (1 << 8 * size)), given
        if form == 1 and word < 1 << 31:
            return f"({word >> 4} << 4 | {word & 15})", given
        return (str(word), f"0x{word:X}", f"0{word:o}" if word else "0")[form % 3], given

    def shape(self) -> Shape:
        kind = KINDS[self.below(len(KINDS))]
        vector = (1, 1, 1, 2, 4)[self.below(5)]
        if vector * size_of(kind) > 16:
            vector = 1
        natural = vector * size_of(kind)
        align = (0, 0, natural, 8, 16)[self.below(5)]
        if 0 < align < natural:
            align = natural
        return Shape(kind, (0, 1 + self.below(9))[self.below(2)], align, vector)

    def values(self, shape: Shape) -> tuple[str, bytes]:
        """An initialiser, perhaps of the first elements only, and the bytes of all."""
        total = (shape.count or 1) * shape.vector
        given = total if shape.vector > 1 or not shape.count else 1 + self.below(total)
        pairs = [self.number(shape.kind) for _ in range(given)]
        texts = [text for text, _ in pairs]
        bits = b"".join(part for _, part in pairs).ljust(shape.size, b"\0")
        if shape.vector > 1:
            groups = [texts[k : k + shape.vector] for k in range(0, total, shape.vector)]
            texts = [f"{{{', '.join(group)}}}" for group in groups]
            return (f"{{{', '.join(texts)}}}" if shape.count else texts[0]), bits
        return (f"{{{', '.join(texts)}}}" if shape.count else texts[0]), bits

    # ---- variables with numbers ----

    def one(self, name: str) -> tuple[str, Place]:
        """A declaration, and the place; with zeros if it has no initialiser."""
        shape, space = self.shape(), SPACES[self.below(2)]
        if self.below(5):
            text, bits = self.values(shape)
            declared = shape.declare(space, name)
            full = shape.count and len(text.split(",")) == shape.count and shape.vector == 1
            if full and self.below(2):
                declared = declared.replace(f"[{shape.count}]", "[]")
            line = f"{declared} = {text};"
        else:
            line, bits = f"{shape.declare(space, name)};", bytes(shape.size)
        address = self.address(bits)

        def locate(frame: Frame) -> int:
            return address

        move = f"mov.b64 %a0, {name};"
        ways = [
            Way("", space, name, locate),
            Way(move, space, "%a0", locate),
            Way(f"{move} cvta{space}.u64 %a0, %a0;", "", "%a0", locate),
        ]
        if space == ".global":
            ways.append(Way("", ".global.nc", name, locate))
        return line, Place(name, shape.size, shape.alignment, False, ways)

    def places(self) -> list[Place]:
        """Variables with numbers, and tables that lead to them."""
        found = []
        for k in range(1 + self.below(4)):
            line, place = self.one(f"v{k}")
            self.lines.append(line)
            found.append(place)
        # What tables may name: addresses, whether they are generic, and whose they are.
        targets = [(place.name, place.ways[0].space, place, None) for place in found]
        for k in range(self.below(3)):
            self.pointers(f"t{k}", targets)
        return found

    def of_function(self, out: Any) -> None:
        """A variable of one function, with a value that stays."""
        line, place = self.one("own")
        out.function.declared.append(line)
        out.places.append(place)

    # ---- variables with addresses ----

    def pointers(self, name: str, targets: list[Any]) -> None:
        """A table of addresses; each is one more way to what it points to, or to a table."""
        space, entries, bits = SPACES[self.below(2)], [], b""
        n, packed = 1 + self.below(4), self.below(3) == 0
        fresh = []
        for k in range(n):
            target, of, place, inner = targets[self.below(len(targets))]
            generic = bool(self.below(2))
            addend = self.below(3) * 8 if inner is None and place.size > 16 else 0
            at = place.ways[0].locate(None) if inner is None else inner[1]
            bits += (at + addend).to_bytes(8, "little")
            text = f"generic({target})" if generic else target
            text += f"+{addend}" if addend else ""
            entries.append(text)
            fresh.append((8 * k, addend, "" if generic else of, place, inner))
        if packed:
            skip = 8 * self.below(2)
            parts = [str(7 + k) for k in range(skip)]
            for text in entries:
                parts += [f"{hex(0xFF << 8 * byte)}({text})" for byte in range(8)]
            bits, kind, lead = bytes(7 + k for k in range(skip)) + bits, "u8", skip
        else:
            parts, kind, lead = entries, "u64", 0
        count = len(parts)
        self.lines.append(f"{space} .align 8 .{kind} {name}[{count}] = {{{', '.join(parts)}}};")
        address = self.address(bits)
        for at, addend, of, place, inner in fresh:
            load = f"mov.b64 %a0, {name}; ld{space}.u64 %a0, [%a0+{lead + at}];"

            def locate(frame: Frame, at: int = address + lead + at) -> int:
                return frame.thread.read(at, 8)

            if inner is None:
                self.way(place, load, of, locate, addend)
                continue
            step, base, below, bias, last = inner  # the other table: from there to the place
            text = f"{load} ld{of}.u64 %a0, [%a0+{step}];"

            def locate_two(frame: Frame, outer: Any = locate, step: int = step) -> int:
                return frame.thread.read(outer(frame) + step, 8)

            self.way(place, text, last, locate_two, bias)
        at, addend, of, place, inner = fresh[0]
        if inner is None:
            targets.append((name, space, place, (lead + at, address, None, addend, of)))

    @staticmethod
    def way(place: Place, load: str, space: str, locate: Any, addend: int) -> None:
        place.ways.append(Way(load, space, "%a0", lambda frame: locate(frame) - addend, addend))

    # ---- functions ----

    def table(self, family: Family) -> Table:
        space, name = SPACES[self.below(2)], f"calls{len(self.tables)}"
        members = [
            family.members[self.below(len(family.members))] for _ in range(1 + self.below(4))
        ]
        skip = self.below(3)
        bits = bytes(8 * skip) + b"".join(m.address.to_bytes(8, "little") for m in members)
        if self.below(3) == 0:
            parts = ["0"] * (8 * skip)
            for m in members:
                parts += [f"{hex(0xFF << 8 * byte)}({m.name})" for byte in range(8)]
            line = f"{space} .align 8 .u8 {name}[{len(parts)}] = {{{', '.join(parts)}}};"
        else:
            parts = ["0"] * skip + [m.name for m in members]
            line = f"{space} .u64 {name}[{len(parts)}] = {{{', '.join(parts)}}};"
        table = Table(name, space, 8 * skip, members, self.address(bits), line)
        self.tables.append(table)
        return table
