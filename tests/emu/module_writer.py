"""Random PTX modules: functions, calls, tables of functions, variables and their initialisers.

A module is made of its seed alone. It has families of functions, each of one signature, that call
those of later families directly, by address and by table, and entries that call all of them. Every
byte of a parameter, a result and an initialised variable that a function can read goes into a
checksum. module_model.py computes what the entries leave, in plain Python; a part of each function
is instructions of the random programs (program_writer.py), whose checksum only a GPU can confirm.

What ptxas 13.0 does not take is left out unless `all_of_ptx` is set: several results, parameters of
.u8 and .u16.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from module_call import POINTEE, CallBody
from module_model import (
    POOLS,
    Exit,
    Family,
    Frame,
    Function,
    Parameter,
    Place,
    Shape,
    Step,
    Thread,
    Way,
)
from module_variables import Variables
from program_writer import SIZES as OPAQUE_SIZES

THREADS = 64  # of the largest launch, all blocks together
SLICE = 32  # bytes that a thread has of each variable that is written
INPUT, TRAIL = 32, 4  # bytes that a thread reads, words of its checksums
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

    def __init__(self, seed: int, all_of_ptx: bool = False) -> None:
        self.seed, self.all_of_ptx = seed, all_of_ptx
        self.random = Random(seed)
        self.numbers = 0
        self.at: dict[int, Function] = {}
        self.used: dict[str, set[str]] = defaultdict(set)  # functions that a function names
        self.strings: dict[str, str] = {}
        self.variables = Variables(self)
        self.places = self.variables.places()
        self.slices = [f"g{k}" for k in range(1)]
        self.tiles = [f"s{k}" for k in range(self.below(2))]
        self.places += [self.slice_of(name, ".global") for name in self.slices]
        self.places += [self.slice_of(name, ".shared") for name in self.tiles]
        self.families: list[Family] = [self.family(k) for k in range(2 + self.below(2))]
        for level in reversed(range(len(self.families))):
            self.members(level)
        self.entries = [self.entry(k) for k in range(1 + (self.below(4) == 0))]

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
        for k in range(1 + self.below(2)):
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

    def slice_of(self, name: str, space: str) -> Place:
        """A thread's own part of a variable that all write."""
        index = "%me" if space == ".global" else "%tid.x"
        short = f"mov.u32 %t0, {index}; mov.b64 %a0, {name}; mad.wide.u32 %a0, %t0, {SLICE}, %a0;"
        ways = [
            Way(short, space, "%a0", lambda f: f.thread.own[name]),
            Way(f"{short} cvta{space}.u64 %a0, %a0;", "", "%a0", lambda f: f.thread.own[name]),
        ]
        if space == ".shared":
            text = f"mov.u32 %t1, {name}; mov.u32 %t0, %tid.x; mad.lo.u32 %t0, %t0, {SLICE}, %t1;"
            ways.append(Way(text, space, "%t0", lambda f: f.thread.own[name]))
        return Place(name, SLICE, 16, True, ways)

    @staticmethod
    def local_of(name: str, size: int, align: int) -> Place:
        address = f"mov.b64 %a0, {name};"
        return Place(
            name,
            size,
            align,
            True,
            [
                Way("", ".local", name, lambda f: f.at[name]),
                Way(address, ".local", "%a0", lambda f: f.at[name]),
                Way(f"{address} cvta.local.u64 %a0, %a0;", "", "%a0", lambda f: f.at[name]),
            ],
        )

    def parameter_place(self, name: str, shape: Shape) -> Place:
        """Read as a parameter, or by its address and then written too."""
        if self.below(3) == 0:
            place = self.local_of(name, shape.size, shape.alignment)
            return replace(place, ways=place.ways[1:])
        ways = [Way("", ".param", name, lambda f: f.at[name])]
        return Place(name, shape.size, shape.alignment, False, ways)

    # ---- functions ----

    def body(self, function: Function, level: int) -> int:
        family = function.family
        out = CallBody(self, function, level)
        out.most = 40 if family.recursive else 120
        for name, parameter in zip(function.names, family.parameters, strict=False):
            if parameter.role == "data":
                out.places.append(self.parameter_place(name, parameter.shape))
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
        self.prologue(out, self.read_parameters(out))
        function.body = out.block(2 + self.below(3), 0)
        for name, shape in zip(
            function.names[len(family.parameters) :], family.results, strict=True
        ):
            lines, writes = out.fill(name, ".param", shape.alignment, shape.size)

            def give(frame: Frame, name: str = name, writes: Any = writes) -> None:
                out.write(frame, frame.at[name], writes)

            function.tail.append(Step(lines, give))
        self.epilogue(out)
        self.declare(out)
        return out.cost

    def read_parameters(self, out: CallBody) -> Step:
        lines, acts = [f"mov.b64 %acc, {out.below(1 << 62)};"], []
        for place in out.places[len(self.places) :]:
            way = out.pick(place.ways)
            part, pieces = out.absorb(way.base, way.space, place.align, place.size)
            lines += [way.before, *part]
            acts.append(out.fold(pieces, way.locate))
        start = int(lines[0].split()[-1][:-1])

        def act(frame: Frame) -> None:
            frame["%acc"] = start
            for one in acts:
                one(frame)

        return Step(lines, act)

    def prologue(self, out: CallBody, first: Step) -> None:
        """Registers and local variables begin with what was read."""
        function = out.function
        lines = ["mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x;"]
        lines += ["mad.lo.u32 %me, %t0, %t1, %t2; mov.b32 %taint, 0;"]
        values: list[tuple[str, int]] = []
        for letter, n in POOLS.items():
            for k in range(n):
                register, factor = f"%{letter}{k}", 2 * out.below(1 << 40) + 1
                values.append((register, factor))
                multiply = f"mul.lo.u64 %w0, %acc, {factor};"
                lines.append(
                    {
                        "h": f"{multiply} cvt.u16.u64 {register}, %w0;",
                        "r": f"{multiply} mov.b64 {{%t0, {register}}}, %w0;",
                        "d": f"mul.lo.u64 {register}, %acc, {factor};",
                        "f": f"{multiply} mov.b64 {{%t0, %t1}}, %w0; mov.b32 {register}, %t1;",
                        "e": f"{multiply} mov.b64 {register}, %w0;",
                    }[letter]
                )

        def act(frame: Frame) -> None:
            for register, factor in values:
                product = frame["%acc"] * factor & (1 << 64) - 1
                frame[register] = product >> 32 if register[1] in "rf" else product

        function.head += [first, Step(lines, act)]
        for k in range(out.below(3)):
            align = (1, 2, 4, 8, 16)[out.below(5)]
            shape = Shape("b8", 1 + out.below(24), align)
            if out.below(3) == 0:
                shape = Shape("b32", 1 + out.below(3), 0, 4)
            name = f"l{k}"
            function.locals[name] = shape.size
            function.declared.append(shape.declare(".local", name) + ";")
            place = self.local_of(name, shape.size, shape.alignment)
            out.places.append(place)
            function.head.append(self.filled(out, place))
        if out.below(4) == 0:
            self.variables.of_function(out)

    def filled(self, out: CallBody, place: Place) -> Step:
        """Writes all of a place."""
        way = out.pick(place.ways)
        lines, writes = out.fill(way.base, way.space, place.align, place.size)
        return Step([way.before, *lines], lambda f: out.write(f, way.locate(f), writes))

    def epilogue(self, out: CallBody) -> None:
        """All registers and local variables go into the thread's checksums."""
        function, word = out.function, 8 * out.below(TRAIL)
        registers = [f"%{letter}{k}" for letter, n in POOLS.items() for k in range(n)]
        lines, acts = [], []
        for place in out.places[len(self.places) :]:
            if place.writable:
                way = out.pick(place.ways)
                part, pieces = out.absorb(way.base, way.space, place.align, place.size)
                lines += [way.before, *part]
                acts.append(out.fold(pieces, way.locate))
        for register in registers:
            widen = {
                "h": f"cvt.u64.u16 %w0, {register};",
                "r": f"cvt.u64.u32 %w0, {register};",
                "f": f"mov.b32 %t0, {register}; cvt.u64.u32 %w0, %t0;",
            }.get(register[1], f"mov.b64 %w0, {register};")
            lines.append(f"{widen} mad.lo.u64 %acc, %acc, 1099511628211, %w0;")
        trail = f"[%a0+{word}]"
        lines.append(
            f"mov.b64 %a0, trail; mad.wide.u32 %a0, %me, {8 * TRAIL}, %a0; ld.global.u64 %w0, {trail}; "
            f"mad.lo.u64 %w0, %w0, 1099511628211, %acc; st.global.u64 {trail}, %w0;"
        )
        if out.opaque:
            lines.append(
                "mov.b64 %a0, taint; mad.wide.u32 %a0, %me, 4, %a0; ld.global.u32 %t0, [%a0]; "
                "mad.lo.u32 %t0, %t0, 16777619, %taint; st.global.u32 [%a0], %t0;"
            )

        def act(frame: Frame) -> None:
            for one in acts:
                one(frame)
            acc, prime = frame["%acc"], 1099511628211
            for register in registers:
                acc = (acc * prime + frame[register]) & (1 << 64) - 1
            at = frame.thread.own["trail"] + word
            frame.thread.write(at, 8, frame.thread.read(at, 8) * prime + acc)

        function.tail.append(Step(lines, act))

    def declare(self, out: CallBody) -> None:
        """The registers, once all is written."""
        widths = {"h": ".b16", "r": ".b32", "d": ".b64", "f": ".f32", "e": ".f64"}
        registers = [f".reg {widths[x]} %{x}<{n}>;" for x, n in POOLS.items()]
        registers.append(".reg .b64 %a<9>, %w<2>, %acc; .reg .b32 %t<3>, %me, %taint;")
        registers.append(".reg .pred %p<2>; .reg .b32 %at, %word;")
        if out.trips:
            registers.append(f".reg .b32 %n<{out.trips}>;")
        for kind in sorted({r[1:].split("_")[0] for r in out.opaque}):
            registers.append(f".reg .{kind} %{kind}_<9>;")
        assert set(OPAQUE_SIZES) >= {f".{r[1:].split('_')[0]}" for r in out.opaque}
        out.function.declared[:0] = registers

    # ---- entries ----

    def entry(self, k: int) -> Launch:
        shapes = [self.shape() for _ in range(self.below(3))]
        shapes = [s for s in shapes if s.kind not in ("b128", "f16") and (s.count or s.size < 16)]
        family = Family([Parameter(Shape("u64")), Parameter(Shape("u64"))], [])
        function = Function(f"entry{k}", self.variables.address(), family)
        function.names = ["out", "in", *(f"p{j}" for j in range(len(shapes)))]
        family.parameters += [Parameter(shape) for shape in shapes]
        out = CallBody(self, function, -1)
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
        read = self.read_parameters(out)
        fold = out.fold(pieces, lambda f: f.thread.own["in"])
        first = Step(
            [*read.parts, text, *lines],
            lambda f: (read.act(f), fold(f)),  # type: ignore[arg-type, func-returns-value]
        )
        self.prologue(out, first)
        written = [p for p in self.places if p.name in (*self.slices, *self.tiles)]
        function.head += [self.filled(out, place) for place in written]
        clear = " ".join(f"st.global.b64 [%a0+{8 * word}], 0;" for word in range(TRAIL))
        clear = f"mov.b64 %a0, trail; mad.wide.u32 %a0, %me, {8 * TRAIL}, %a0; {clear}"
        clear += " mov.b64 %a0, taint; mad.wide.u32 %a0, %me, 4, %a0; st.global.b32 [%a0], 0;"
        function.head.append(
            Step([clear], lambda f: f.thread.write(f.thread.own["trail"], 8 * TRAIL, 0))
        )
        function.body = [self.first_call(out), *out.block(3 + self.below(4), 0)]
        for place in written:
            way = out.pick(place.ways)
            part, pieces = out.absorb(way.base, way.space, place.align, place.size)
            function.tail.append(Step([way.before, *part], out.fold(pieces, way.locate)))
        self.epilogue(out)
        copy = f"mov.b64 %a0, trail; mad.wide.u32 %a0, %me, {8 * TRAIL}, %a0; "
        copy += f"ld.param.u64 %a1, [out]; mad.wide.u32 %a1, %me, {OUTPUT}, %a1; "
        for word in range(TRAIL):
            copy += f"ld.global.u64 %w0, [%a0+{8 * word}]; st.global.u64 [%a1+{8 * word}], %w0; "
        copy += "mov.b64 %a0, taint; mad.wide.u32 %a0, %me, 4, %a0; ld.global.u32 %t0, [%a0]; "
        copy += f"cvt.u64.u32 %w0, %t0; st.global.u64 [%a1+{8 * TRAIL}], %w0;"
        function.tail.append(Step([copy]))
        self.declare(out)
        self.at[function.address] = function
        grid = 1 + self.below(2)
        block = min((1, 7, 32, 33, 64)[self.below(5)], THREADS // grid)
        scalars = [
            (s, self.random.getrandbits(8 * s.size).to_bytes(s.size, "little")) for s in shapes
        ]
        return Launch(function.name, grid, block, scalars)

    def first_call(self, out: CallBody) -> Step:
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
        order = Random(self.seed).sample(functions, len(functions))
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

    # ---- running ----

    def input(self) -> np.ndarray:
        raw = hashlib.shake_128(f"module {self.seed}".encode()).digest(INPUT * THREADS)
        return np.frombuffer(raw, np.uint8)

    def model(self) -> list[tuple[np.ndarray, list[str]]]:
        """What each entry leaves, but for the last 8 bytes of a thread, and the lines it prints."""
        given, left = self.input().tobytes(), []
        for launch in self.entries:
            function = next(f for f in self.at.values() if f.name == launch.entry)
            out, printed = np.full((THREADS, OUTPUT - 8), UNTOUCHED, np.uint8), []
            for me in range(launch.grid * launch.block):
                thread = Thread(self.variables.objects, me)
                for name in (*self.slices, *self.tiles):
                    thread.own[name] = thread.new(SLICE)
                thread.own["trail"] = thread.new(8 * TRAIL)
                thread.own["in"] = thread.new(INPUT)
                own = given[INPUT * me : INPUT * (me + 1)]
                thread.write(thread.own["in"], INPUT, int.from_bytes(own, "little"))
                arguments = [bytes(8), bytes(8), *(bits for _, bits in launch.scalars)]
                try:
                    function.call(thread, arguments)
                    out[me] = list(thread.objects[thread.own["trail"] >> 32])
                except Exit:
                    pass
                printed += thread.printed
            left.append((out, sorted(printed)))
        return left


def run(module: Module, device: str) -> list[np.ndarray]:
    """What each entry leaves on a device."""
    import smemkern

    left, text = [], module.text()
    for launch in module.entries:
        out = np.full((THREADS, OUTPUT), UNTOUCHED, np.uint8)
        scalars = [argument(shape, bits) for shape, bits in launch.scalars]
        kernel = smemkern.Kernel(text, launch.entry)
        kernel(launch.grid, launch.block, out, module.input(), *scalars, device=device)
        left.append(out)
    return left


def argument(shape: Shape, bits: bytes) -> object:
    if shape.count:
        return bits
    letter = {"b": "u", "s": "i"}.get(shape.kind[0], shape.kind[0])
    return np.frombuffer(bits, f"{letter}{shape.size}")[0]


def wrong(module: Module, left: list[np.ndarray]) -> list[str]:
    """The entries that have not left what the model leaves."""
    return [
        launch.entry
        for launch, own, (model, _) in zip(module.entries, left, module.model(), strict=True)
        if not np.array_equal(own[:, : OUTPUT - 8], model)
    ]
