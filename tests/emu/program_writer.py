"""Random PTX programs: what instructions one after another do to registers and memory.

A program is one kernel. Its threads load every register with random bits, run statements, and store
every register. Statements are the instructions that the tests of each instruction check alone (all
that are exact), guarded or not, and around them what programs are made of: branches that lanes take
differently, loops, calls, shared and local memory, shuffles, votes, atomics that add up.

All is made of a seed alone: the programs and their inputs are the same with every Python and NumPy.
A new instruction changes few programs, as each choice is the next one on a circle of hashes.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import zlib
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from random import Random

import numpy as np
from ptx_rows import NOT_ON_A_GPU, TYPES, Row

THREADS = 64
POOLS = {".pred": 4, ".b16": 5, ".b32": 8, ".b64": 5, ".f32": 6, ".f64": 4}
SIZES = {".pred": 4, ".b16": 2, ".b32": 4, ".b64": 8, ".f32": 4, ".f64": 8}
SLOT = 8  # bytes of a register's place in memory
REGISTERS = [(kind, f"%{kind[1:]}_{k}") for kind, n in POOLS.items() for k in range(n)]
TOTALS = 12  # words that all threads add to

# How often the instructions of each file of tests are taken.
FILES = {"integer": 4, "bits": 4, "float": 3, "convert": 2, "half": 2, "compare": 2, "move": 2}

# What PTX leaves open: which NaN abs and neg give, and fns of bits that are not there.
OPEN = re.compile(r"fns|(abs|neg)(\.ftz)?\.(f|bf)")

# Positions and lengths of bits are up to 255 in PTX, and no more than the width makes sense.
PLACED = ("bfe", "bfi", "bmsk", "szext")

# ptxas 13.0 drops the guard of testp, and of the conversion in set, with -O0 too.
UNGUARDED = ("set", "testp")

# ptxas 13.0 makes x of min(x, x), and PTX another NaN where x is one.
DISTINCT = ("min", "max")


@dataclass
class Statement:
    """Lines, and between them other statements."""

    parts: list[str | list[Statement]] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        for part in self.parts:
            if isinstance(part, str):
                yield part
            else:
                for statement in part:
                    yield from statement.lines()


@cache
def menu() -> dict[str, tuple[list[int], list[Row]]]:
    """Of each file of tests the instructions that are exact, in the order of their hashes."""
    chosen = {}
    for name in FILES:
        rows = {
            zlib.crc32(f"{row} {row.text}".encode()): row
            for row in importlib.import_module(f"test_emu_{name}").ROWS
            if row.close is None
            and row.text not in NOT_ON_A_GPU
            and not OPEN.match(row.text)
            and all(kind in POOLS for kind in kinds(row).values())
        }
        chosen[name] = (sorted(rows), [rows[hashed] for hashed in sorted(rows)])
    return chosen


def kinds(row: Row) -> dict[str, str]:
    """The kind of register of each operand, destinations first."""
    operands = [*zip("de", row.results, strict=False), *zip("abcf", row.sources, strict=False)]
    return {name: row.registers.get(name, TYPES[t].register) for name, t in operands}


class Writer:
    """Writes the statements of one program."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = 0

    def below(self, n: int) -> int:
        return self.random.getrandbits(32) % n

    def any(self, kind: str) -> str:
        return f"%{kind[1:]}_{self.below(POOLS[kind])}"

    def other(self, kind: str, taken: str) -> str:
        while (name := self.any(kind)) == taken:
            pass
        return name

    def label(self) -> str:
        self.names += 1
        return f"L{self.names}"

    def block(self, count: int, depth: int) -> list[Statement]:
        return [self.statement(depth) for _ in range(count)]

    def statement(self, depth: int) -> Statement:
        """One at random. What a warp does together stands where all its lanes are."""
        draw = self.below(100)
        if draw < 70:
            return self.instruction()
        if depth < 3 and draw < 75:
            return self.branch(depth)
        if depth < 2 and draw < 78:
            return self.loop(depth)
        anywhere: list[Callable[[], Statement]] = [self.local, self.call, self.total]
        together = [self.exchange, self.shuffle, self.vote, self.match, self.reduce]
        choices = anywhere + (together if depth == 0 else [])
        return choices[self.below(len(choices))]()

    def instruction(self) -> Statement:
        weights = [name for name, weight in FILES.items() for _ in range(weight)]
        hashes, rows = menu()[weights[self.below(len(weights))]]
        row = rows[bisect(hashes, self.random.getrandbits(32)) % len(rows)]
        opcode = row.text.split(".")[0]
        operands: dict[str, str] = {}
        for name, kind in kinds(row).items():
            operands[name] = self.any(kind)
            if name == "e" and kind == kinds(row)["d"]:
                operands[name] = self.other(kind, operands["d"])
            if name == "b" and opcode in DISTINCT:
                operands[name] = self.other(kind, operands["a"])
        before = []
        if opcode in PLACED:
            for name, register in zip(list(operands)[-2:], ("%at", "%word"), strict=True):
                before.append(f"and.b32 {register}, {operands[name]}, 63;")
                operands[name] = register
        guard = ("", "", "", f"@{self.any('.pred')} ", f"@!{self.any('.pred')} ")[self.below(5)]
        if row.setup or row.declared or opcode in UNGUARDED:
            guard = ""
        text = [part.strip() for part in (*row.setup.split(";"), row.text) if part.strip()]
        body = " ".join([*before, *(f"{guard}{part.format(**operands)};" for part in text)])
        return Statement([f"{{ {row.declared} {body} }}" if row.declared else body])

    def branch(self, depth: int) -> Statement:
        other, end = self.label(), self.label()
        return Statement(
            [
                f"@{self.any('.pred')} bra {other};",
                self.block(1 + self.below(4), depth + 1),
                f"bra {end};",
                f"{other}:",
                self.block(1 + self.below(4), depth + 1),
                f"{end}:",
            ]
        )

    def loop(self, depth: int) -> Statement:
        """Once to four times, each lane as often as a register of its own says."""
        top = self.label()
        count = f"%trips_{depth}"
        return Statement(
            [
                f"and.b32 {count}, {self.any('.b32')}, 3;",
                f"{top}:",
                self.block(1 + self.below(4), depth + 1),
                f"sub.s32 {count}, {count}, 1;",
                f"setp.ge.s32 %again, {count}, 0;",
                f"@%again bra {top};",
            ]
        )

    def local(self) -> Statement:
        """Local memory at an index that differs from lane to lane."""
        write, read = self.any(".b32"), self.any(".b32")
        return Statement(
            [
                f"and.b32 %at, {write}, 7; mad.lo.s32 %at, %at, 8, %stack;",
                f"st.local.b64 [%at], {self.any('.b64')};",
                f"and.b32 %at, {read}, 7; mad.lo.s32 %at, %at, 8, %stack;",
                f"ld.local.v2.b32 {{%word, {self.any('.b32')}}}, [%at];",
            ]
        )

    def call(self) -> Statement:
        a, b, result = self.any(".b32"), self.any(".f32"), self.any(".b32")
        return Statement(
            [
                "{ .param .b32 one; .param .b32 two; .param .b32 back; "
                f"st.param.b32 [one], {a}; st.param.f32 [two], {b}; "
                f"call (back), mix, (one, two); ld.param.b32 {result}, [back]; }}"
            ]
        )

    def total(self) -> Statement:
        """An atomic whose sum does not depend on the order of threads."""
        forms = ["add.u32", "xor.b32", "min.s32", "max.u32", "and.b32", "or.b32"]
        k = self.below(len(forms))
        space, base = (("global", "%totals"), ("shared", "%tallies"))[self.below(2)]
        return Statement([f"red.{space}.{forms[k]} [{base} + {4 * k}], {self.any('.b32')};"])

    def exchange(self) -> Statement:
        """Shared memory, written by one thread and read by another."""
        kind = (".b16", ".b32", ".b64", ".f32", ".f64")[self.below(5)]
        size, back = SIZES[kind], self.any(kind)
        t = kind[1:] if kind[1] == "f" else f"u{kind[2:]}"
        return Statement(
            [
                f"bar.warp.sync -1; bar.sync 0; mad.lo.u32 %at, %thread, {size}, %exchange; "
                f"st.shared.{t} [%at], {self.any(kind)};",
                f"bar.sync 0; xor.b32 %at, %thread, {1 + self.below(THREADS - 1)}; "
                f"mad.lo.u32 %at, %at, {size}, %exchange; ld.shared.{t} {back}, [%at];",
            ]
        )

    def shuffle(self) -> Statement:
        mode = ("idx", "up", "down", "bfly")[self.below(4)]
        width = (0, 0x1F, 0x1000, 0x1C03, 0x1810)[self.below(5)]
        if mode == "up":
            width &= 0x1F00
        distance = (str(self.below(32)), self.any(".b32"))[self.below(2)]
        back, source = self.any(".b32"), self.any(".b32")
        return Statement(
            [f"shfl.sync.{mode}.b32 {back}|{self.any('.pred')}, {source}, {distance}, {width}, -1;"]
        )

    def vote(self) -> Statement:
        source = ("", "!")[self.below(2)] + self.any(".pred")
        mode = ("ballot", "any", "all", "uni")[self.below(4)]
        if mode == "ballot":
            return Statement([f"vote.sync.ballot.b32 {self.any('.b32')}, {source}, -1;"])
        return Statement([f"vote.sync.{mode}.pred {self.any('.pred')}, {source}, -1;"])

    def match(self) -> Statement:
        kind = (".b32", ".b64")[self.below(2)]
        a, back = self.any(kind), self.any(".b32")
        if self.below(2):
            return Statement([f"match.any.sync{kind} {back}, {a}, -1;"])
        return Statement([f"match.all.sync{kind} {back}|{self.any('.pred')}, {a}, -1;"])

    def reduce(self) -> Statement:
        form = ("add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32")[self.below(6)]
        return Statement([f"redux.sync.{form} {self.any('.b32')}, {self.any('.b32')}, -1;"])


def statements(seed: int) -> list[Statement]:
    writer = Writer(seed)
    return writer.block(12 + writer.below(30), 0)


HEADER = """.version 8.3
.target sm_90
.address_size 64
.func (.param .b32 back) mix(.param .b32 one, .param .b32 two)
{
    .reg .b32 %a, %b; .reg .f32 %x; .reg .pred %p;
    ld.param.b32 %a, [one]; ld.param.f32 %x, [two];
    setp.lt.s32 %p, %a, 0;
    @%p bra NEGATIVE;
    fma.rn.f32 %x, %x, 0f3FC00000, 0fBF000000;
    mov.b32 %b, %x; shf.l.wrap.b32 %a, %a, %b, 7;
    st.param.b32 [back], %a; ret;
NEGATIVE:
    mov.b32 %b, %x; prmt.b32 %a, %a, %b, 0x5346;
    st.param.b32 [back], %a; ret;
}
"""


def kernel(name: str, body: list[Statement]) -> str:
    """An entry: registers in, statements, registers and tallies out."""
    declared = [f".reg {kind} %{kind[1:]}_<{n}>;" for kind, n in POOLS.items()]
    loads, stores = [], []
    for k, (kind, register) in enumerate(REGISTERS):
        place = f"[%base + {k * SLOT * THREADS}]"
        t = f"b{8 * SIZES[kind]}" if kind[1] in "bp" else kind[1:]
        if kind == ".pred":
            loads.append(f"ld.global.b32 %word, {place}; setp.lt.s32 {register}, %word, 0;")
            stores.append(f"selp.b32 %word, 1, 0, {register}; st.global.b32 {place}, %word;")
        else:
            loads.append(f"ld.global.{t} {register}, {place};")
            stores.append(f"st.global.{t} {place}, {register};")
    lines = [
        f".visible .entry {name}(.param .u64 values, .param .u64 sums)",
        "{",
        *declared,
        ".reg .b32 %trips_<3>, %at, %word, %thread, %stack, %exchange, %tallies;",
        ".reg .b64 %base, %totals; .reg .pred %again;",
        f".shared .align 8 .b8 exchange[{SLOT * THREADS}];",
        f".shared .align 4 .b8 tallies[{4 * TOTALS}];",
        ".local .align 8 .b8 stack[64];",
        "mov.u32 %thread, %tid.x; mov.u32 %exchange, exchange; mov.u32 %tallies, tallies;",
        "mov.u32 %stack, stack; ld.param.u64 %base, [values]; ld.param.u64 %totals, [sums];",
        f"mad.wide.u32 %base, %thread, {SLOT}, %base;",
        *(f"st.local.b64 [%stack + {8 * k}], {k};" for k in range(8)),
        f"setp.ge.u32 %again, %thread, {TOTALS}; mad.lo.u32 %at, %thread, 4, %tallies;",
        "@!%again st.shared.b32 [%at], 0;",
        *loads,
        "bar.sync 0;",
        *(line for statement in body for line in statement.lines()),
        "bar.warp.sync -1; bar.sync 0;",
        *stores,
        f"setp.ge.u32 %again, %thread, {TOTALS}; mad.lo.u32 %at, %thread, 4, %tallies;",
        "@!%again ld.shared.b32 %word, [%at];",
        "mul.wide.u32 %base, %thread, 4; add.s64 %base, %base, %totals;",
        f"@!%again st.global.b32 [%base + {4 * TOTALS}], %word;",
        "ret;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def module(programs: dict[str, list[Statement]]) -> str:
    return HEADER + "".join(kernel(name, body) for name, body in programs.items())


def inputs(seed: int) -> np.ndarray:
    """Random bits for each register; a third of the numbers have exponents around that of one."""
    count = len(REGISTERS) * THREADS * SLOT
    raw = hashlib.shake_128(str(seed).encode()).digest(count)
    values = np.frombuffer(raw, np.uint64).reshape(len(REGISTERS), THREADS).copy()
    for k, (kind, _) in enumerate(REGISTERS):
        near = values[k] % 3 == 0
        if kind == ".f32":
            values[k][near] = values[k][near] & 0x80FFFFFF | 0x3E000000
        elif kind == ".f64":
            values[k][near] = values[k][near] & 0x801FFFFFFFFFFFFF | 0x3FC0000000000000
        elif kind == ".b32":
            values[k][near] &= 0x3F
    return values


def run(ptx: str, name: str, seed: int, device: str) -> np.ndarray:
    """All registers of all threads, then the totals, as bytes."""
    import smemkern

    values = inputs(seed)
    sums = np.zeros(2 * TOTALS, np.uint32)
    smemkern.Kernel(ptx, name)(1, THREADS, values, sums, device=device)
    return np.concatenate([values.view(np.uint8).ravel(), sums.view(np.uint8)])


def differences(one: np.ndarray, other: np.ndarray) -> list[str]:
    """The registers that are not equal, and the totals."""
    names = [register for _, register in REGISTERS]
    size = len(names) * THREADS * SLOT
    at = np.flatnonzero(one != other)
    return sorted({names[k // (THREADS * SLOT)] if k < size else "totals" for k in at.tolist()})
