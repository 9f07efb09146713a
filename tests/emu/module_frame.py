"""What every function of a random module begins and ends with, and the places that it has."""

from __future__ import annotations

from dataclasses import replace

from module_call import CallBody
from module_model import POOLS, WIDTHS, Frame, Place, Shape, Step, Way

SLICE = 32  # bytes that a thread has of each variable that is written
TRAIL = 4  # words of a thread's checksums


def slice_of(name: str, space: str) -> Place:
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


def parameter_place(name: str, shape: Shape, by_address: bool) -> Place:
    """Read as a parameter, or by its address and then written too."""
    if by_address:
        place = local_of(name, shape.size, shape.alignment)
        return replace(place, ways=place.ways[1:])
    ways = [Way("", ".param", name, lambda f: f.at[name])]
    return Place(name, shape.size, shape.alignment, False, ways)


class WholeBody(CallBody):
    """Statements, and what comes before and after them."""

    def read(self, places: list[Place]) -> Step:
        """All of these goes into %acc."""
        lines, acts = [f"mov.b64 %acc, {self.below(1 << 62)};"], []
        for place in places:
            way = self.pick(place.ways)
            part, pieces = self.absorb(way.base, way.space, place.align, place.size, way.bias)
            lines += [way.before, *part]
            acts.append(self.fold(pieces, way.locate))
        start = int(lines[0].split()[-1][:-1])

        def act(frame: Frame) -> None:
            frame["%acc"] = start
            for one in acts:
                one(frame)

        return Step(lines, act)

    def prologue(self, first: Step) -> None:
        """Registers and local variables begin with what was read."""
        function = self.function
        lines = ["mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x;"]
        lines += ["mad.lo.u32 %me, %t0, %t1, %t2; mov.b32 %taint, 0;"]
        values: list[tuple[str, int]] = []
        for letter, n in POOLS.items():
            for k in range(n):
                register, factor = f"%{letter}{k}", 2 * self.below(1 << 40) + 1
                if self.module.small and k:
                    lines.append(f"mov.b{8 * WIDTHS[letter]} {register}, %{letter}0;")
                    values.append((register, values[-1][1]))
                    continue
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
        for k in range(self.below(3)):
            align = (1, 2, 4, 8, 16)[self.below(5)]
            shape = Shape("b8", 1 + self.below(24), align)
            if self.below(3) == 0:
                shape = Shape("b32", 1 + self.below(3), 0, 4)
            name = f"l{k}"
            function.locals[name] = shape.size
            function.declared.append(shape.declare(".local", name) + ";")
            place = local_of(name, shape.size, shape.alignment)
            self.places.append(place)
            function.head.append(self.filled(place))
        if self.below(4) == 0:
            self.module.variables.of_function(self)

    def filled(self, place: Place) -> Step:
        """Writes all of a place."""
        way = self.pick(place.ways)
        lines, writes = self.fill(way.base, way.space, place.align, place.size)
        return Step([way.before, *lines], lambda f: self.write(f, way.locate(f), writes))

    def epilogue(self) -> None:
        """All registers and local variables go into the thread's checksums."""
        function, word = self.function, 8 * self.below(TRAIL)
        registers = [f"%{letter}{k}" for letter, n in POOLS.items() for k in range(n)]
        if self.module.small:
            registers = [f"%{letter}0" for letter in POOLS]
        lines, acts = [], []
        for place in self.places[len(self.module.places) :]:
            if place.writable:
                way = self.pick(place.ways)
                part, pieces = self.absorb(way.base, way.space, place.align, place.size)
                lines += [way.before, *part]
                acts.append(self.fold(pieces, way.locate))
        for register in registers:
            widen = {
                "h": f"cvt.u64.u16 %w0, {register};",
                "r": f"cvt.u64.u32 %w0, {register};",
                "f": f"mov.b32 %t0, {register}; cvt.u64.u32 %w0, %t0;",
            }.get(register[1], f"mov.b64 %w0, {register};")
            lines.append(f"{widen} mad.lo.u64 %acc, %acc, 1099511628211, %w0;")
        trail = f"[%a0+{word}]"
        lines.append(
            f"mov.b64 %a0, trail; mad.wide.u32 %a0, %me, {8 * TRAIL}, %a0; "
            f"ld.global.u64 %w0, {trail}; mad.lo.u64 %w0, %w0, 1099511628211, %acc; "
            f"st.global.u64 {trail}, %w0;"
        )
        if self.opaque:
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

    def declare(self) -> None:
        """The registers, once all is written."""
        widths = {"h": ".b16", "r": ".b32", "d": ".b64", "f": ".f32", "e": ".f64"}
        registers = [f".reg {widths[x]} %{x}<{n}>;" for x, n in POOLS.items()]
        registers.append(".reg .b64 %a<9>, %w<2>, %acc; .reg .b32 %t<3>, %me, %taint;")
        registers.append(".reg .pred %p<2>; .reg .b32 %at, %word;")
        if self.trips:
            registers.append(f".reg .b32 %n<{self.trips}>;")
        for kind in sorted({r[1:].split("_")[0] for r in self.opaque}):
            registers.append(f".reg .{kind} %{kind}_<9>;")
        self.function.declared[:0] = registers
