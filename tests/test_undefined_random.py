"""Random kernels that copy and use values that nobody wrote, against a model in Python.

A thread has 64 bytes of shared memory, which nobody has written, of an array, and of local memory,
whose values before the first store are of no interest. So there are no races. The model runs one
thread after the other, and keeps for each byte of a register or of memory whether it is undefined:
the line of the load that read it where nobody had written it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

import smemkern

BYTES, THREADS = 64, 40
REGISTERS = {4: [f"%r{k}" for k in range(6)], 8: [f"%d{k}" for k in range(4)], 2: ["%h0", "%h1"]}
SIZE = {name: size for size, names in REGISTERS.items() for name in names}
SHARED, GLOBAL, LOCAL = "shared", "global", "local"
BASES = {SHARED: "%s", GLOBAL: "%g", LOCAL: "%l"}

Origin = int | None  # the line of the load; None: the byte is defined
Value = list[Origin]
Used = dict[str, int]  # by register: a mask of the bytes that are not only copied
ALL = 0xFFFF


@dataclass
class Thread:
    number: int
    memory: dict[str, Value] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)  # bytes of shared memory
    reported: set[int] = field(default_factory=set)  # of them, never written: the first read only
    registers: dict[str, Value] = field(default_factory=dict)
    found: set[tuple[int, int | None]] = field(default_factory=set)


@dataclass
class Statement:
    """One instruction. kind: ld, st, mov, use. Registers that it writes, and reads; of a use the
    bytes of its sources."""

    kind: str
    text: str
    to: list[str]
    sources: list[str]
    guard: int  # lanes whose number has this bit run it; 0: all
    run: Callable[[Thread, int, Used], None]
    uses: int = ALL


def braces(items: list[str]) -> str:
    return items[0] if len(items) == 1 else "{" + ", ".join(items) + "}"


def split(value: Value, n: int) -> list[Value]:
    size = len(value) // n
    return [value[k * size : (k + 1) * size] for k in range(n)]


def origin_of(value: Value) -> Origin:
    return next((o for o in value if o), None)


def load(rng: random.Random) -> Statement:
    space = rng.choice([SHARED, SHARED, GLOBAL, LOCAL])
    n, kind = rng.choice(
        [(1, "u8"), (1, "s8"), (1, "u16"), (1, "b32"), (1, "b64"), (2, "b32")] * 2
        + [(4, "b32"), (2, "b64"), (1, "s16")]
    )
    width = int(kind[1:]) // 8
    names = REGISTERS[rng.choice([2, 4] if width == 1 else [4] if kind == "s16" else [width])]
    to = rng.sample(names, n) if len(names) >= n else []
    to = [name if n == 1 or rng.random() > 0.15 else "_" for name in to]
    if not any(name != "_" for name in to):
        to[0] = names[0]
    at = rng.randrange(0, BYTES, n * width)

    def run(t: Thread, line: int, used: Used) -> None:
        memory, origin = t.memory[space], None
        if space == LOCAL:  # one for the whole access
            origin = origin_of(memory[at : at + n * width])
        values: list[Value] = []
        for k, name in enumerate(to):
            where = range(at + k * width, at + (k + 1) * width)
            value: Value = []
            for b in where:
                never = space == SHARED and b not in t.written
                undefined = memory[b] or (line if never else None)
                mask = used.get(name, 0)
                mask = ALL if mask >> width else mask  # the sign of a narrow element
                if undefined and name != "_" and mask >> len(value) & 1:
                    if space == LOCAL and origin:
                        t.found.add((origin, None))
                    elif memory[b] or b not in t.reported:
                        t.found.add((line, memory[b]))
                    t.reported |= set() if memory[b] else {b}
                    undefined = None
                if undefined and not origin:
                    origin = undefined
                value.append(undefined)
            values.append(value)
        for name, value in zip(to, values, strict=True):
            if name == "_":
                continue
            value = [origin if b else None for b in value]
            top = value[-1] if kind.startswith("s") else None
            t.registers[name] = value + [top] * (SIZE[name] - width)

    vector = f".v{n}" if n > 1 else ""
    text = f"ld.{space}{vector}.{kind} {braces(to)}, [{BASES[space]} + {at}];"
    return Statement("ld", text, [name for name in to if name != "_"], [], 0, run)


def store(rng: random.Random) -> Statement:
    space = rng.choice([SHARED, GLOBAL, LOCAL])
    n, kind = rng.choice([(1, "u8"), (1, "u16"), (1, "b32"), (1, "b64"), (2, "b32"), (4, "b32")])
    width = int(kind[1:]) // 8
    sources = rng.choices(REGISTERS[2 if width < 4 else width], k=n)
    at = rng.randrange(0, BYTES, n * width)

    def run(t: Thread, line: int, used: Used) -> None:
        values = [t.registers[name] for name in sources]
        origin = None
        for value in values:
            origin = origin_of(value) or origin
        for k, value in enumerate(values):
            for b in range(width):
                where = at + k * width + b
                t.memory[space][where] = origin if value[b] else None
                word = range(where // 4 * 4, where // 4 * 4 + 4)
                for other in word if space == LOCAL and value[b] else ():
                    if t.memory[LOCAL][other]:  # a word has one origin
                        t.memory[LOCAL][other] = origin
                if space == SHARED:
                    t.written.add(where)

    vector = f".v{n}" if n > 1 else ""
    text = f"st.{space}{vector}.{kind} [{BASES[space]} + {at}], {braces(sources)};"
    return Statement("st", text, [], sources, 0, run)


def move(rng: random.Random) -> Statement:
    size = rng.choice([2, 4, 4, 8, 8])
    shape = rng.choice(["register", "constant"] + ["pack", "unpack"] * (size > 2))
    to, sources = [rng.choice(REGISTERS[size])], []
    if shape == "register":
        sources = [rng.choice(REGISTERS[size])]
    if shape == "pack":
        sources = rng.choices(REGISTERS[size // 2], k=2)
    if shape == "unpack":
        to, sources = rng.sample(REGISTERS[size // 2], 2), to

    def run(t: Thread, line: int, used: Used) -> None:
        joined: Value = []
        origin = None
        for name in sources:
            origin = origin_of(t.registers[name]) or origin
            joined += t.registers[name]
        value = [origin if b else None for b in joined] or [None] * SIZE[to[0]]
        for name, part in zip(to, split(value, len(to)), strict=True):
            t.registers[name] = part

    text = f"mov.b{8 * size} {braces(to)}, {braces(sources) if sources else '7'};"
    return Statement("mov", text, to, sources, 0, run)


def use(rng: random.Random) -> Statement:
    size = rng.choice([4, 8])
    to, *sources = rng.choices(REGISTERS[size], k=3)
    bytes_used, text = ALL, f"add.u{8 * size} {to}, {', '.join(sources)};"
    part = rng.choice(["", "", "cvt", "shr", "and"])
    if part:
        sources = sources[:1]
    if part == "cvt":
        to = rng.choice(REGISTERS[size // 2])
        bytes_used, text = (1 << size // 2) - 1, f"cvt.u{4 * size}.u{8 * size} {to}, {sources[0]};"
    if part == "shr":
        bits = rng.randrange(8 * size)
        bytes_used, text = (
            ALL & ~((1 << bits // 8) - 1),
            f"shr.u{8 * size} {to}, {sources[0]}, {bits};",
        )
    if part == "and":
        bytes_used = rng.randrange(1, 1 << size)
        mask = sum(0xA0 << 8 * k for k in range(size) if bytes_used >> k & 1)
        text = f"and.b{8 * size} {to}, {sources[0]}, {mask:#x};"

    def run(t: Thread, line: int, used: Used) -> None:
        values = [t.registers[name] for name in sources]
        assert not any(o for value in values for k, o in enumerate(value) if bytes_used >> k & 1)
        t.registers[to] = [None] * SIZE[to]

    return Statement("use", text, [to], sources, 0, run, bytes_used)


def guarded(rng: random.Random, s: Statement) -> Statement:
    s.guard = rng.choice([0, 0, 0, 1, 2])
    if s.guard:
        s.text = f"@%p{s.guard} {s.text}"
    return s


def used_bytes(body: list[Statement]) -> Used:
    used = dict.fromkeys(SIZE, 0)

    def add(name: str, mask: int) -> None:
        mask |= used[name]
        own = (1 << SIZE[name]) - 1
        used[name] = ALL if mask & own == own else mask

    for s in body:
        for name in s.to if s.kind == "use" else ():
            add(name, ALL)
        for name in s.sources if s.kind == "use" else ():
            add(name, s.uses)
    for _ in range(8 * len(SIZE)):
        for s in body:
            if s.kind != "mov" or not s.sources:
                continue
            size = sum(SIZE[name] for name in s.to)
            each = size // len(s.to)
            mask = sum((used[name] & (1 << each) - 1) << k * each for k, name in enumerate(s.to))
            each = size // len(s.sources)
            for k, name in enumerate(s.sources):
                add(name, mask >> k * each & (1 << each) - 1)
    return used


HEAD = f"""
.version 7.8
.target sm_80
.address_size 64
.shared .align 16 .b8 s[{BYTES * THREADS}];
.visible .entry k(.param .u64 y) {{
.reg .pred %p<4>;
.reg .b16 %h<2>;
.reg .b32 %r<6>, %s, %t, %u, %i;
.reg .b64 %d<4>, %g, %l;
.local .align 16 .b8 l[{BYTES}];
ld.param.u64 %g, [y];
mov.u32 %t, %ctaid.x;
mad.lo.u32 %t, %t, {THREADS}, %tid.x;
mad.wide.u32 %g, %t, {BYTES}, %g;
mov.u64 %l, l;
mov.u32 %s, s;
mov.u32 %t, %tid.x;
mad.lo.u32 %s, %t, {BYTES}, %s;
and.b32 %u, %t, 1;
setp.ne.u32 %p1, %u, 0;
and.b32 %u, %t, 2;
setp.ne.u32 %p2, %u, 0;
mov.u32 %i, 0;
"""
TAIL = """
add.u32 %i, %i, 1;
setp.lt.u32 %p3, %i, {turns};
@%p3 bra again;
ret;
}}
"""


def expected(body: list[Statement], first_line: int, turns: int) -> set[tuple[int, int | None]]:
    used = used_bytes(body)
    found: set[tuple[int, int | None]] = set()
    for number in range(THREADS):
        t = Thread(number, {space: [None] * BYTES for space in BASES})
        t.registers = {name: [None] * size for name, size in SIZE.items()}
        for _ in range(turns):
            for k, s in enumerate(body):
                if not s.guard or number & s.guard:
                    s.run(t, first_line + k, used)
        found |= t.found | {(origin, None) for origin in t.memory[GLOBAL] if origin}
    return found


@pytest.mark.parametrize("number", range(40))
def test_random_kernels(number, draw):
    check(draw.getrandbits(32))


def check(seed):
    rng = random.Random(seed)
    makers = [load] * 6 + [store] * 5 + [move] * 4 + [use] * rng.choice([0, 1, 2])
    body = [guarded(rng, rng.choice(makers)(rng)) for _ in range(rng.randrange(4, 40))]
    turns, blocks = rng.randrange(1, 4), rng.randrange(1, 3)
    begin = "".join(f"mov.b{8 * SIZE[name]} {name}, 1;\n" for name in SIZE)
    head = HEAD + begin + "again:\n"
    text = head + "".join(s.text + "\n" for s in body) + TAIL.format(turns=turns)
    first_line = head.count("\n") + 1
    y = np.zeros(BYTES * THREADS * blocks, "u1")
    trace = smemkern.trace(smemkern.Kernel(text, "k"), blocks, THREADS, y)
    assert {h.kind for h in trace.hazards} <= {"uninitialised"}
    found = {(h.line, h.other_line) for h in trace.hazards}
    assert found == expected(body, first_line, turns), (seed, text)
