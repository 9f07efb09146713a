"""Writes the statements of one function of a random module, and what each does to the model."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

from module_model import (
    POOLS,
    Act,
    Family,
    Frame,
    Function,
    Leave,
    Place,
    Step,
    Way,
    run,
    size_of,
)
from program_writer import Writer as Programs

K = 0x100000001B3  # of the checksum that every function keeps in %acc
MASK = (1 << 64) - 1
MOST_STEPS = 700  # of a thread, all calls included
SCALARS = {"h": "b16", "r": "b32", "d": "b64", "f": "f32", "e": "f64"}

# Type of an access, letters of the registers it may have, whether it extends the sign.
ACCESSES = (
    ("u8", "rh", False),
    ("s8", "rhd", True),
    ("b8", "rh", False),
    ("u16", "rhd", False),
    ("s16", "rd", True),
    ("b16", "h", False),
    ("b32", "rf", False),
    ("f32", "f", False),
    ("u32", "rd", False),
    ("s32", "rd", True),
    ("b64", "de", False),
    ("u64", "d", False),
    ("f64", "e", False),
)


def signed(value: int, size: int) -> int:
    return value - (1 << 8 * size) if value >> (8 * size - 1) else value


# Instructions on registers: text, letters of destinations and sources, and what they compute.
Rule = tuple[str, str, str, Callable[..., tuple[int, ...]]]
RULES: tuple[Rule, ...] = (
    ("add.u32 {}, {}, {}", "r", "rr", lambda a, b: (a + b,)),
    ("sub.s32 {}, {}, {}", "r", "rr", lambda a, b: (a - b,)),
    ("mul.lo.u32 {}, {}, {}", "r", "rr", lambda a, b: (a * b,)),
    ("mad.lo.s32 {}, {}, {}, {}", "r", "rrr", lambda a, b, c: (a * b + c,)),
    ("xor.b32 {}, {}, {}", "r", "rr", lambda a, b: (a ^ b,)),
    ("min.u32 {}, {}, {}", "r", "rr", lambda a, b: (min(a, b),)),
    ("shr.u32 {}, {}, 13", "r", "r", lambda a: (a >> 13,)),
    ("add.s64 {}, {}, {}", "d", "dd", lambda a, b: (a + b,)),
    ("xor.b64 {}, {}, {}", "d", "dd", lambda a, b: (a ^ b,)),
    ("mul.lo.u64 {}, {}, {}", "d", "dd", lambda a, b: (a * b,)),
    ("mul.wide.u32 {}, {}, {}", "d", "rr", lambda a, b: (a * b,)),
    ("mul.wide.s32 {}, {}, {}", "d", "rr", lambda a, b: (signed(a, 4) * signed(b, 4),)),
    ("shl.b64 {}, {}, 21", "d", "d", lambda a: (a << 21,)),
    ("not.b64 {}, {}", "d", "d", lambda a: (~a,)),
    ("add.u16 {}, {}, {}", "h", "hh", lambda a, b: (a + b,)),
    ("mov.b64 {}, {{{}, {}}}", "d", "rr", lambda a, b: (a | b << 32,)),
    ("mov.b64 {{{}, {}}}, {}", "rr", "d", lambda a: (a, a >> 32)),
    ("mov.b32 {}, {{{}, {}}}", "r", "hh", lambda a, b: (a | b << 16,)),
    ("mov.b32 {{{}, {}}}, {}", "hh", "r", lambda a: (a, a >> 16)),
    ("mov.b32 {}, {}", "f", "r", lambda a: (a,)),
    ("mov.b32 {}, {}", "r", "f", lambda a: (a,)),
    ("mov.b64 {}, {}", "e", "d", lambda a: (a,)),
    ("mov.b64 {}, {}", "d", "e", lambda a: (a,)),
    ("cvt.u64.u32 {}, {}", "d", "r", lambda a: (a,)),
    ("cvt.s64.s32 {}, {}", "d", "r", lambda a: (signed(a, 4),)),
    ("cvt.u32.u64 {}, {}", "r", "d", lambda a: (a,)),
    ("cvt.u16.u32 {}, {}", "h", "r", lambda a: (a,)),
    ("cvt.s32.s16 {}, {}", "r", "h", lambda a: (signed(a, 2),)),
)


class Body:
    """One function or entry: `module` has what all of them share."""

    def __init__(self, module: Any, function: Function, level: int) -> None:
        self.module, self.function, self.level = module, function, level
        self.random: Random = module.random
        self.places: list[Place] = list(module.places)
        self.pointers: list[Place] = []
        self.callbacks: list[tuple[str, Family]] = []
        self.cost, self.weight = 0, 1
        self.trips = 0
        self.opaque: set[str] = set()  # registers of statements that the model leaves out

    # ---- drawing ----

    def below(self, n: int) -> int:
        return self.random.getrandbits(32) % n

    def pick(self, items: Any) -> Any:
        return items[self.below(len(items))]

    def any(self, letter: str) -> str:
        return f"%{letter}{self.below(POOLS[letter])}"

    def different(self, letters: str) -> list[str]:
        """As many registers, no two the same."""
        found: list[str] = []
        for letter in letters:
            while (name := self.any(letter)) in found:
                pass
            found.append(name)
        return found

    def step(self, parts: list[Any], act: Act, cost: int = 1) -> Step:
        self.cost += cost * self.weight
        return Step(parts, act)

    def label(self) -> str:
        return self.module.label()

    # ---- moving bytes between a place and registers ----

    def chunks(self, place_align: int, size: int, vectors: bool = True) -> list[tuple[int, int]]:
        """All of a place in pieces: offsets and sizes, each aligned to its size."""
        out, at = [], 0
        while at < size:
            fits = [
                n
                for n in (1, 2, 4, 8, 16)
                if at % n == 0 and n <= place_align and at + n <= size and (n < 16 or vectors)
            ]
            n = fits[-1] if self.below(3) else self.pick(fits)
            out.append((at, n))
            at += n
        return out

    def absorb(
        self, base: str, space: str, place_align: int, size: int, bias: int = 0
    ) -> tuple[list[str], list[tuple[int, int]]]:
        """Lines that read all of it into %acc, and the pieces in their order."""
        lines, pieces = [], []
        for at, n in self.chunks(place_align, size):
            many = 2 if n == 16 else 1
            registers = "%w0" if many == 1 else "{%w0, %w1}"
            kind = f"v2.u{4 * n}" if many == 2 else f"u{8 * n}"
            lines.append(f"ld{space}.{kind} {registers}, [{base}+{at - bias}];")
            for k in range(many):
                lines.append(f"mad.lo.u64 %acc, %acc, {K}, %w{k};")
                pieces.append((at + k * n // many, n // many))
        self.cost += self.weight * len(pieces) // 4
        return lines, pieces

    def fold(self, pieces: list[tuple[int, int]], locate: Callable[[Frame], int]) -> Act:
        def act(frame: Frame) -> None:
            address, acc = locate(frame), frame["%acc"]
            for at, n in pieces:
                acc = acc * K + frame.thread.read(address + at, n) & MASK
            frame["%acc"] = acc

        return act

    def source(self, n: int) -> tuple[str, str, str]:
        """Type, text and register (or a number as text) of a value of n bytes."""
        if self.below(6) == 0:
            value = self.pick((0, 1, 5, 127, (1 << 8 * n - 1) - 1))
            return f"b{8 * n}", str(value), str(value)
        letters = {1: "hr", 2: "hr", 4: "rf", 8: "de"}[n]
        register = self.any(self.pick(letters))
        if register[1] in "fe" and self.below(2):
            return f"f{8 * n}", register, register
        if n == 2 and register[1] == "r":
            return "u16", register, register
        return f"b{8 * n}", register, register

    def fill(self, base: str, space: str, align: int, size: int) -> tuple[list[str], list[Any]]:
        """Lines that write all of it, and the writes: offset, size, register or number."""
        lines, writes = [], []
        for at, n in self.chunks(align, size):
            if n == 16 or (n >= 4 and self.below(3) == 0):
                half = n // 2
                letter = {2: "h", 4: "r", 8: "d"}[half]
                pair = [self.any(letter), self.any(letter)]
                lines.append(f"st{space}.v2.b{8 * half} [{base}+{at}], {{{', '.join(pair)}}};")
                writes += [(at, half, pair[0]), (at + half, half, pair[1])]
            else:
                kind, text, value = self.source(n)
                lines.append(f"st{space}.{kind} [{base}+{at}], {text};")
                writes.append((at, n, value))
        self.cost += self.weight * len(writes) // 4
        return lines, writes

    @staticmethod
    def write(frame: Frame, address: int, writes: list[Any]) -> None:
        for at, n, value in writes:
            bits = frame[value] if value[0] == "%" else int(value)
            frame.thread.write(address + at, n, bits)

    def access(self) -> Step:
        """One load or store at an offset, of one or more registers."""
        place: Place = self.pick(self.places + 2 * self.pointers)
        way: Way = self.pick(place.ways)
        fits = [row for row in ACCESSES if size_of(row[0]) <= min(place.size, place.align)]
        kind, letters, extends = self.pick(fits)
        size, letter = size_of(kind), self.pick(letters)
        most = min(place.size, place.align, 16)
        many = self.pick([m for m in (1, 1, 2, 4) if m * size <= most and m <= POOLS[letter]])
        at = self.below(place.size // (many * size)) * many * size
        dotted = ("", f".v{many}")[many > 1]
        operand = f"[{way.base}+{at - way.bias}]"
        store = place.writable and self.below(2)
        if letter == "d" and size < 8 and (store or many > 1):
            letter = "r"
        if store:
            registers = [self.any(letter) for _ in range(many)]
            kind = kind.replace("s", "u")
        else:
            registers = self.different(letter * many)
        text = registers[0] if many == 1 else "{" + ", ".join(registers) + "}"
        volatile = (
            ".volatile" if way.space in ("", ".global", ".shared") and not self.below(8) else ""
        )
        if store:
            line = f"{way.before} st{volatile}{way.space}{dotted}.{kind} {operand}, {text};"
            writes = [(at + k * size, size, register) for k, register in enumerate(registers)]
            return self.step([line], lambda f: self.write(f, way.locate(f), writes))

        def load(frame: Frame) -> None:
            address = way.locate(frame) + at
            for k, register in enumerate(registers):
                value = frame.thread.read(address + k * size, size)
                frame[register] = signed(value, size) if extends else value

        return self.step(
            [f"{way.before} ld{volatile}{way.space}{dotted}.{kind} {text}, {operand};"], load
        )

    def difference(self) -> Step:
        """Of two addresses in one object."""
        place = self.pick(self.places)
        ways = [way for way in place.ways if way.base == "%a0"]
        if not ways:
            return self.rule()
        one = self.pick(ways)
        other = self.pick([way for way in ways if way.space == one.space])
        to = self.any("d")
        second = other.before.replace("%a0", "%a1")
        if one.space == ".shared":
            return self.rule()

        def act(frame: Frame) -> None:
            frame[to] = other.locate(frame) + other.bias - one.locate(frame) - one.bias

        return self.step([f"{one.before} {second} sub.s64 {to}, %a1, %a0;"], act)

    # ---- on registers ----

    def rule(self) -> Step:
        text, to, sources, compute = self.pick(RULES)
        results, used = self.different(to), [self.any(letter) for letter in sources]

        def act(frame: Frame) -> None:
            for register, value in zip(results, compute(*(frame[u] for u in used)), strict=True):
                frame[register] = value

        return self.step([text.format(*results, *used) + ";"], act)

    def unmodelled(self) -> Step:
        """Instructions of the random programs, on registers of their own; a checksum of these
        goes to %taint, which the model leaves out and a GPU is compared in."""
        programs = Programs(self.random.getrandbits(32))
        lines = [" ".join(programs.instruction().lines()) for _ in range(1 + self.below(2))]
        used = sorted(set(re.findall(r"%(?:pred|[bf]\d\d)_\d+", " ".join(lines))))
        before, after = [], []
        for register in used:
            kind = register[1:].split("_")[0]
            r, d = self.any("r"), self.any("d")
            before.append(
                {
                    "pred": f"setp.lt.s32 {register}, {r}, 0;",
                    "b16": f"cvt.u16.u32 {register}, {r};",
                    "b32": f"mov.b32 {register}, {r};",
                    "f32": f"mov.b32 {register}, {r};",
                    "b64": f"mov.b64 {register}, {d};",
                    "f64": f"mov.b64 {register}, {d};",
                }[kind]
            )
            back = {
                "pred": f"selp.b32 %t0, 1, 0, {register};",
                "b16": f"cvt.u32.u16 %t0, {register};",
                "b32": f"mov.b32 %t0, {register};",
                "f32": f"mov.b32 %t0, {register};",
                "b64": f"mov.b64 {{%t0, %t1}}, {register}; xor.b32 %t0, %t0, %t1;",
                "f64": f"mov.b64 {{%t0, %t1}}, {register}; xor.b32 %t0, %t0, %t1;",
            }[kind]
            after.append(f"{back} mad.lo.u32 %taint, %taint, 16777619, %t0;")
        self.opaque.update(used)
        return self.step([*before, *lines, *after], lambda frame: None)

    # ---- control ----

    def condition(self) -> tuple[str, Callable[[Frame], bool]]:
        """Sets %p0 by some lanes' values."""
        register, bit = self.any("r"), self.below(32)
        text = f"and.b32 %t0, {register}, {1 << bit}; setp.ne.u32 %p0, %t0, 0;"
        return text, lambda frame: bool(frame[register] >> bit & 1)

    def block(self, count: int, depth: int) -> list[Step]:
        return [self.statement(depth) for _ in range(count)]

    def branch(self, depth: int) -> Step:
        text, holds = self.condition()
        other, end = self.label(), self.label()
        yes, no = self.block(1 + self.below(2), depth + 1), self.block(self.below(3), depth + 1)
        parts = [f"{text} @!%p0 bra {other};", yes, f"bra{self.pick(('', '.uni'))} {end};"]
        return self.step(
            [*parts, f"{other}:", no, f"{end}:"],
            lambda frame: run(yes if holds(frame) else no, frame),
        )

    def loop(self, depth: int) -> Step:
        top, source = self.label(), self.any("r")
        count = f"%n{self.trips}"
        self.trips += 1
        most = 1 + self.below(3)
        self.weight *= most
        body = self.block(1 + self.below(2), depth + 1)
        self.weight //= most

        def act(frame: Frame) -> None:
            for _ in range(1 + frame[source] % most):
                run(body, frame)

        parts = [f"rem.u32 {count}, {source}, {most};", f"{top}:", body]
        parts += [f"sub.s32 {count}, {count}, 1; setp.ge.s32 %p0, {count}, 0; @%p0 bra {top};"]
        return self.step(parts, act)

    def table(self, depth: int) -> Step:
        """A branch by table, in which targets may come more than once."""
        arms = [self.block(self.below(3), depth + 1) for _ in range(2 + self.below(3))]
        labels, end, name = [self.label() for _ in arms], self.label(), self.label()
        targets = list(range(len(arms)))
        targets += [self.below(len(arms)) for _ in range(self.below(3))]
        source = self.any("r")
        parts: list[Any] = [
            f"{name}: .branchtargets {', '.join(labels[k] for k in targets)};",
            f"rem.u32 %t0, {source}, {len(targets)}; brx.idx %t0, {name};",
        ]
        for label, arm in zip(labels, arms, strict=True):
            parts += [f"{label}:", arm, f"bra {end};"]
        return self.step(
            [*parts, f"{end}:"],
            lambda frame: run(arms[targets[frame[source] % len(targets)]], frame),
        )

    def leave(self) -> Step:
        text, holds = self.condition()

        def act(frame: Frame) -> None:
            if holds(frame):
                raise Leave

        return self.step([f"{text} @%p0 bra {self.function.name}_end;"], act)

    # ---- all of it ----

    def statement(self, depth: int) -> Step:
        draw = self.below(100)
        if draw < 35:
            return self.access()
        if draw < 55:
            return self.rule()
        if draw < 58:
            return self.unmodelled()
        if draw < 61:
            return self.difference()
        if depth < 2 and draw < 66:
            return self.branch(depth)
        if depth < 2 and draw < 69:
            return self.loop(depth)
        if depth < 2 and draw < 72:
            return self.table(depth)
        if draw < 74:
            return self.leave()
        return self.call(depth) or self.access()

    def call(self, depth: int) -> Step | None:
        raise NotImplementedError
