"""What the threads of a random module do, in plain Python: the model that the emulator is held to.

One thread runs after the other, so the model knows nothing of warps, divergence and frames. Memory
is objects. An address is the number of an object and an offset, so no access leaves its object.
A byte that nothing has written is None, and reading it fails: modules read no uninitialised data.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from program_writer import Statement

SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


def size_of(kind: str) -> int:
    """Bytes of u8, b16, f32, ..."""
    return SIZES[kind.lstrip("busf")]


class Leave(Exception):
    """The function returns before its end."""


class Exit(Exception):
    """The thread ends."""


class Thread:
    """One thread: its objects, and what it has printed."""

    def __init__(self, constants: dict[int, bytes], number: int) -> None:
        self.objects: dict[int, Any] = dict(constants)
        self.number = number  # in the grid
        self.own: dict[str, int] = {}  # its part of module variables that are written
        self.printed: list[str] = []
        self.last = 1 << 20  # the numbers below are the module's

    def new(self, size: int) -> int:
        self.last += 1
        self.objects[self.last] = [None] * size
        return self.last << 32

    def read(self, address: int, size: int) -> int:
        at = address & 0xFFFFFFFF
        piece = bytes(self.objects[address >> 32][at : at + size])
        assert len(piece) == size
        return int.from_bytes(piece, "little")

    def write(self, address: int, size: int, value: int) -> None:
        at, to = address & 0xFFFFFFFF, self.objects[address >> 32]
        assert at + size <= len(to)
        to[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


class Frame:
    """One call: registers by name, and the addresses of parameters, results and variables."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.registers: dict[str, int] = {}
        self.at: dict[str, int] = {}

    def __getitem__(self, register: str) -> int:
        return self.registers[register]

    def __setitem__(self, register: str, value: int) -> None:
        self.registers[register] = value & (1 << 8 * WIDTHS[register[1]]) - 1


# Registers of a function by the letter of their names: bytes. %a, %w, %t, %p are scratch.
WIDTHS = {"h": 2, "r": 4, "d": 8, "f": 4, "e": 8, "a": 8, "w": 8, "t": 4, "p": 4}
POOLS = {"h": 2, "r": 4, "d": 3, "f": 2, "e": 2}

Act = Callable[[Frame], None]


@dataclass
class Step(Statement):
    """A statement, and what it does to a frame."""

    act: Act = field(default=lambda frame: None)


def run(steps: list[Step], frame: Frame) -> None:
    for step in steps:
        step.act(frame)


@dataclass(frozen=True)
class Shape:
    """The type of a parameter, result or variable."""

    kind: str
    count: int = 0  # of an array's elements; 0: a scalar
    align: int = 0  # as written; 0: not written
    vector: int = 1

    @property
    def size(self) -> int:
        return size_of(self.kind) * self.vector * (self.count or 1)

    @property
    def alignment(self) -> int:
        return self.align or size_of(self.kind) * self.vector

    def declare(self, space: str, name: str) -> str:
        align = f".align {self.align} " if self.align else ""
        vector = f".v{self.vector} " if self.vector > 1 else ""
        count = f"[{self.count}]" if self.count else ""
        return f"{space} {align}{vector}.{self.kind} {name}{count}"


@dataclass(frozen=True)
class Way:
    """How an instruction gets to a place: what comes before it, its space, and the address."""

    before: str
    space: str  # "" is generic
    base: str
    locate: Callable[[Frame], int]
    bias: int = 0  # the address is that far inside the place


@dataclass
class Place:
    """Memory that a function can name, and the ways to it."""

    name: str
    size: int
    align: int
    writable: bool
    ways: list[Way]


@dataclass(frozen=True)
class Parameter:
    shape: Shape
    role: str = "data"  # or depth, pointer, callback
    family: Any = None  # of a callback


@dataclass
class Family:
    """Functions of one signature; they call those of later families, and themselves if a parameter
    bounds the depth."""

    parameters: list[Parameter]
    results: list[Shape]
    members: list[Function] = field(default_factory=list)
    tables: list[Any] = field(default_factory=list)
    cost: int = 0  # the most steps that a call takes

    @property
    def recursive(self) -> bool:
        return any(p.role == "depth" for p in self.parameters)


@dataclass
class Function:
    name: str
    address: int
    family: Family
    names: list[str] = field(default_factory=list)  # of parameters, then of results
    head: list[Step] = field(default_factory=list)
    body: list[Step] = field(default_factory=list)
    tail: list[Step] = field(default_factory=list)
    declared: list[str] = field(default_factory=list)
    linkage: str = ""
    locals: dict[str, int] = field(default_factory=dict)

    def call(self, thread: Thread, arguments: list[bytes]) -> list[bytes]:
        frame = Frame(thread)
        shapes = [p.shape for p in self.family.parameters] + self.family.results
        for name, shape in zip(self.names, shapes, strict=True):
            frame.at[name] = thread.new(shape.size)
        for name, given in zip(self.names, arguments, strict=False):
            thread.write(frame.at[name], len(given), int.from_bytes(given, "little"))
        for name, size in self.locals.items():
            frame.at[name] = thread.new(size)
        run(self.head, frame)
        with suppress(Leave):
            run(self.body, frame)
        run(self.tail, frame)
        left = self.names[len(arguments) :]
        back = [bytes(thread.objects[frame.at[name] >> 32]) for name in left]
        for at in frame.at.values():
            thread.objects.pop(at >> 32, None)
        return back
