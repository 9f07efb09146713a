"""Random PTX modules: functions, calls, tables of functions, variables and their initialisers.

A module is made of its seed alone. It has families of functions, each of one signature, that call
those of later families directly, by address and by table, and entries that call them. Every byte
of parameters, results and variables goes into checksums. module_model.py computes what the entries
leave, in plain Python; a part of each function is instructions of the random programs
(program_writer.py), whose checksum only a GPU can confirm.

What ptxas 13.0 does not take is left out unless `all_of_ptx` is set: several results, parameters of
.u8 and .u16.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from module_call import POINTEE
from module_frame import SLICE, TRAIL, WholeBody, parameter_place, slice_of
from module_model import (
    Family,
    Frame,
    Function,
    Parameter,
    Place,
    Shape,
    Step,
    Way,
)
from module_variables import Variables

THREADS = 64  # of the largest launch, all blocks together
INPUT = 32  # bytes that a thread reads
OUTPUT = 8 * TRAIL + 8  # bytes that a thread leaves: checksums, and one that is not modelled
UNTOUCHED = 0xA5  # what the output holds before

HEADER = ".version 8.3\n.target sm_90\n.address_size 64\n"
SCALARS = ("b8", "b16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64", "b128", "f16")
RESTS = ("u8", "s8", "u16", "s16")


@dataclass
class Launch:
    entry: str
    grid: int
    block: int
    scalars: list[tuple[Shape, bytes]]  # parameters behind the two arrays


class Module:
    """Text, launches and model."""

    def __init__(self, seed: int, all_of_ptx: bool = False, small: bool = False) -> None:
        self.seed, self.all_of_ptx, self.small = seed, all_of_ptx, small
        self.random = Random(seed)
        self.numbers = 0
        self.at: dict[int, Function] = {}
        self.used: dict[str, set[str]] = defaultdict(set)  # functions that a function names
        self.strings: dict[str, str] = {}
        self.variables = Variables(self)
        self.places = list(self.variables.data)
        self.slices = [f"g{k}" for k in range(1)]
        self.tiles = [f"s{k}" for k in range(self.below(2))]
        self.places += [slice_of(name, ".global") for name in self.slices]
        self.places += [slice_of(name, ".shared") for name in self.tiles]
        self.families: list[Family] = [
            self.family(k) for k in range(2 if small else 2 + self.below(2))
        ]
        for level in reversed(range(len(self.families))):
            self.members(level)
        self.entries = [self.entry(k) for k in range(1 + (not small and self.below(4) == 0))]

    def below(self, n: int) -> int:
        return self.random.getrandbits(32) % n

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def label(self) -> str:
        return f"L{self.number()}"

    def string(self, text: str) -> str:
        return self.strings.setdefault(text, f"text{len(self.strings)}")

    # ---- signatures ----

    def shape(self, result: bool = False) -> Shape:
        if self.below(2):
            kinds = SCALARS + (RESTS if self.all_of_ptx else ())
            return Shape(kinds[self.below(len(kinds))])
        if self.below(4) == 0:
            kind = ("b16", "b32", "f64", "u8")[self.below(4)]
            return Shape(kind, 1 + self.below(5), (0, 8, 16)[self.below(3)])
        align = (1, 2, 4, 8, 16)[self.below(5)]
        return Shape("b8", (1 + 2 * self.below(13), 1 + self.below(24))[self.below(2)], align)

    def family(self, k: int) -> Family:
        parameters = [Parameter(self.shape()) for _ in range(self.below(4))]
        extra = self.below(10)
        if extra < 3:
            parameters.append(Parameter(Shape("u32"), "depth"))
        if extra % 3 == 2:
            parameters.append(Parameter(Shape("u64"), "pointer"))
        if extra == 9:
            parameters.append(Parameter(Shape("b64"), "callback", k + 1))
        order = sorted(parameters, key=lambda _: self.random.getrandbits(32))
        results = [self.shape(True) for _ in range(min(1, self.below(4)))]
        if self.all_of_ptx and results and self.below(2):
            results += [self.shape(True) for _ in range(1 + self.below(2))]
        return Family(order, results)

    def members(self, level: int) -> None:
        family = self.families[level]
        for k, parameter in enumerate(family.parameters):
            if parameter.role == "callback":  # of the next family, if there is one
                if level + 1 < len(self.families):
                    family.parameters[k] = replace(parameter, family=self.families[level + 1])
                else:
                    family.parameters[k] = Parameter(Shape("b64"))
        # Members call one another only by recursion, so all are there before any has a body.
        for k in range(1 if self.small else 1 + self.below(2)):
            function = Function(f"f{level}_{k}", self.variables.address(), family)
            function.linkage = ("", "", ".visible ", ".weak ")[self.below(4)]
            n = len(family.parameters)
            function.names = [f"p{j}" for j in range(n)]
            function.names += [f"q{j}" for j in range(len(family.results))]
            self.at[function.address] = function
            family.members.append(function)
        for function in family.members:
            family.cost = max(family.cost, self.body(function, level))
        if family.recursive:
            family.cost *= 3
        for _ in range(self.below(3)):
            family.tables.append(self.variables.table(family))

    # ---- places ----

    # ---- functions ----

    def body(self, function: Function, level: int) -> int:
        family = function.family
        out = WholeBody(self, function, level)
        out.most = 40 if family.recursive else 120
        for name, parameter in zip(function.names, family.parameters, strict=False):
            if parameter.role == "data":
                out.places.append(parameter_place(name, parameter.shape, self.below(3) == 0))
            elif parameter.role == "pointer":
                way = Way(
                    f"ld.param.u64 %a0, [{name}];",
                    "",
                    "%a0",
                    lambda f, name=name: f.thread.read(f.at[name], 8),
                )
                out.pointers.append(Place(name, POINTEE, 8, True, [way]))
            elif parameter.role == "callback":
                out.callbacks.append((name, parameter.family))
        out.prologue(out.read(out.places[len(self.places) :]))
        function.body = out.block(1 if self.small else 2 + self.below(3), 0)
        for name, shape in zip(
            function.names[len(family.parameters) :], family.results, strict=True
        ):
            lines, writes = out.fill(name, ".param", shape.alignment, shape.size)

            def give(frame: Frame, name: str = name, writes: Any = writes) -> None:
                out.write(frame, frame.at[name], writes)

            function.tail.append(Step(lines, give))
        out.epilogue()
        out.declare()
        return out.cost

    # ---- entries ----

    def entry(self, k: int) -> Launch:
        shapes = [self.shape() for _ in range(self.below(3))]
        shapes = [s for s in shapes if s.kind not in ("b128", "f16") and (s.count or s.size < 16)]
        family = Family([Parameter(Shape("u64")), Parameter(Shape("u64"))], [])
        function = Function(f"entry{k}", self.variables.address(), family)
        function.names = ["out", "in", *(f"p{j}" for j in range(len(shapes)))]
        family.parameters += [Parameter(shape) for shape in shapes]
        out = WholeBody(self, function, -1)
        out.prints = self.below(8) == 0
        for name, shape in zip(function.names[2:], shapes, strict=True):
            cvta = f"mov.b64 %a0, {name}; cvta.param.u64 %a0, %a0;"
            ways = [Way("", ".param", name, lambda f, n=name: f.at[n])]
            ways.append(Way(cvta, "", "%a0", lambda f, n=name: f.at[n]))
            out.places.append(Place(name, shape.size, shape.alignment, False, ways))
        index = "mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; "
        index += "mad.lo.u32 %me, %t0, %t1, %t2;"
        text = f"{index} ld.param.u64 %a0, [in]; mad.wide.u32 %a0, %me, {INPUT}, %a0;"
        lines, pieces = out.absorb("%a0", ".global", 16, INPUT)
        read = out.read([*self.variables.data, *out.places[len(self.places) :]])
        fold = out.fold(pieces, lambda f: f.thread.own["in"])
        first = Step(
            [*read.parts, text, *lines],
            lambda f: (read.act(f), fold(f)),  # type: ignore[arg-type, func-returns-value]
        )
        out.prologue(first)
        written = [p for p in self.places if p.name in (*self.slices, *self.tiles)]
        function.head += [out.filled(place) for place in written]
        clear = " ".join(f"st.global.b64 [%a0+{8 * word}], 0;" for word in range(TRAIL))
        clear = f"mov.b64 %a0, trail; mad.wide.u32 %a0, %me, {8 * TRAIL}, %a0; {clear}"
        clear += " mov.b64 %a0, taint; mad.wide.u32 %a0, %me, 4, %a0; st.global.b32 [%a0], 0;"
        function.head.append(
            Step([clear], lambda f: f.thread.write(f.thread.own["trail"], 8 * TRAIL, 0))
        )
        function.body = [
            self.first_call(out),
            *out.block(1 if self.small else 3 + self.below(4), 0),
        ]
        for place in written:
            way = out.pick(place.ways)
            part, pieces = out.absorb(way.base, way.space, place.align, place.size)
            function.tail.append(Step([way.before, *part], out.fold(pieces, way.locate)))
        out.epilogue()
        copy = f"mov.b64 %a0, trail; mad.wide.u32 %a0, %me, {8 * TRAIL}, %a0; "
        copy += f"ld.param.u64 %a1, [out]; mad.wide.u32 %a1, %me, {OUTPUT}, %a1; "
        for word in range(TRAIL):
            copy += f"ld.global.u64 %w0, [%a0+{8 * word}]; st.global.u64 [%a1+{8 * word}], %w0; "
        copy += "mov.b64 %a0, taint; mad.wide.u32 %a0, %me, 4, %a0; ld.global.u32 %t0, [%a0]; "
        copy += f"cvt.u64.u32 %w0, %t0; st.global.u64 [%a1+{8 * TRAIL}], %w0;"
        function.tail.append(Step([copy]))
        out.declare()
        self.at[function.address] = function
        grid = 1 + self.below(2)
        block = min((1, 7, 32, 33, 64)[self.below(5)], THREADS // grid)
        scalars = [
            (s, self.random.getrandbits(8 * s.size).to_bytes(s.size, "little")) for s in shapes
        ]
        return Launch(function.name, grid, block, scalars)

    def first_call(self, out: WholeBody) -> Step:
        return out.call_of(self.families[0], "") or out.access()

    # ---- text ----

    def header_of(self, function: Function, names: list[str]) -> str:
        family, n = function.family, len(function.family.parameters)
        given = ", ".join(
            p.shape.declare(".param", x) for p, x in zip(family.parameters, names, strict=False)
        )
        if function.name.startswith("entry"):
            return f".visible .entry {function.name}({given})"
        back = ", ".join(
            s.declare(".param", x) for s, x in zip(family.results, names[n:], strict=True)
        )
        return f"{function.linkage}.func {f'({back}) ' if back else ''}{function.name}({given})"

    def text(self) -> str:
        functions = list(self.at.values())
        draw = Random(self.seed)
        order = sorted(functions, key=lambda _: draw.getrandbits(32))
        entries = [f for f in order if f.name.startswith("entry")]
        order = [f for f in order if f not in entries] + entries
        lines = [HEADER]
        if self.strings:
            lines.append(
                ".extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 arguments);"
            )
        for string, name in self.strings.items():
            codes = ", ".join(str(code) for code in (*string.encode(), 0))
            lines.append(f".global .align 1 .b8 {name}[{len(string) + 1}] = {{{codes}}};")
        lines.append(f".global .align 8 .b64 trail[{TRAIL * THREADS}]; ")
        lines.append(f".global .align 4 .b32 taint[{THREADS}];")
        lines += [f".global .align 16 .b8 {name}[{SLICE * THREADS}];" for name in self.slices]
        lines += [f".shared .align 16 .b8 {name}[{SLICE * THREADS}];" for name in self.tiles]
        lines += self.variables.lines
        tabled = {member.name for table in self.variables.tables for member in table.members}
        seen: set[str] = set()

        def declare(names: set[str]) -> None:
            for other in functions:
                if other.name in names - seen:
                    lines.append(self.header_of(other, [f"{n}_" for n in other.names]) + ";")
                    seen.add(other.name)

        declare(tabled)
        lines += [table.line for table in self.variables.tables]
        for function in order:
            declare(self.used[function.name])
            lines += [self.header_of(function, function.names), "{", *function.declared]
            lines += [line for part in function.head for line in part.lines() if line]
            lines += [line for step in function.body for line in step.lines() if line]
            lines.append(f"{function.name}_end:")
            lines += [line for part in function.tail for line in part.lines() if line]
            lines += ["ret;", "}"]
            seen.add(function.name)
        return "\n".join(lines) + "\n"
