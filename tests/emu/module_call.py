"""Calls of random modules: direct and by address, with every kind of argument and result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from module_body import MOST_STEPS, Body
from module_model import Exit, Family, Frame, Function, Parameter, Place, Shape, Step, Way, run

POINTEE = 16  # bytes that a pointer parameter may reach, aligned to 8

Value = Callable[[Frame], int]


def registers_of(shape: Shape) -> str:
    """Letters of the registers that may stand for a .param variable in a call."""
    letters = {2: "h", 4: "rf", 8: "de"}.get(shape.size, "")
    return "" if shape.count else letters[:1] if shape.kind[0] in "su" else letters


class CallBody(Body):
    """Statements with calls among them."""

    recursed = False
    prints = False
    most = MOST_STEPS

    def call(self, depth: int) -> Step | None:
        draw = self.below(100)
        if self.prints and depth == 0 and draw < 30:
            return self.print()
        if draw < 4:
            return self.exit()
        if self.function.family.recursive and depth == 0 and not self.recursed and draw < 50:
            return self.recursion()
        room = (self.most - self.cost) // self.weight
        later = [f for f in self.module.families[self.level + 1 :] if f.cost <= room and f.members]
        if not later:
            return None
        return self.call_of(self.pick(later), "")

    def exit(self) -> Step:
        text, holds = self.condition()
        rare = self.pick(("%r0", "%r1"))

        def act(frame: Frame) -> None:
            if holds(frame) and frame[rare] & 7 == 0:
                raise Exit

        lines = f"{text} and.b32 %t0, {rare}, 7; setp.eq.and.u32 %p0, %t0, 0, %p0; @%p0 exit;"
        return self.step([lines], act)

    # ---- addresses of functions ----

    def member(self, family: Family) -> Function:
        function: Function = self.pick(family.members)
        self.module.used[self.function.name].add(function.name)
        return function

    def address_of(self, family: Family, to: str) -> tuple[str, Value]:
        """The address of some function of the family, and often not the same in all lanes."""
        callbacks = [name for name, of in self.callbacks if of is family]
        draw = self.below(4)
        if callbacks and draw < 2:
            name = self.pick(callbacks)
            return f"ld.param.u64 {to}, [{name}];", lambda f: f.thread.read(f.at[name], 8)
        if family.tables and draw < 3:
            table, source = self.pick(family.tables), self.any("r")
            n = len(table.members)
            place = table.address
            text = (
                f"rem.u32 %t0, {source}, {n}; mul.wide.u32 %w0, %t0, 8; "
                f"mov.b64 {to}, {table.name}; "
                f"add.s64 {to}, {to}, %w0; ld{table.space}.u64 {to}, [{to}+{table.at}];"
            )
            return text, lambda f: f.thread.read(place + table.at + 8 * (f[source] % n), 8)
        one, other = self.member(family), self.member(family)
        if one is other:
            return f"mov.b64 {to}, {one.name};", lambda f: one.address
        text, holds = self.condition()
        return (
            f"mov.b64 {to}, {one.name}; mov.b64 %w0, {other.name}; {text} "
            f"selp.b64 {to}, {to}, %w0, %p0;",
            lambda f: (one if holds(f) else other).address,
        )

    # ---- arguments ----

    def pointer_to(self, to: str) -> tuple[str, Value]:
        """A generic address of 16 bytes that may be written."""
        fits: list[tuple[Place, Way]] = [
            (place, way)
            for place in self.places + self.pointers
            for way in place.ways
            if place.writable and place.size >= POINTEE and place.align >= 8 and way.space == ""
        ]
        if not fits:
            raise LookupError
        place, way = self.pick(fits)
        at = 8 * self.below((place.size - POINTEE) // 8 + 1)
        text = way.before.replace("%a0", to) + f" add.s64 {to}, {to}, {at - way.bias};"
        return text, lambda f: way.locate(f) + at

    def scalar(self, shape: Shape) -> tuple[str, Value] | None:
        """A register or a number in the place of a .param variable."""
        letters = registers_of(shape)
        if not letters:
            return None
        if shape.kind[0] in "bus" and shape.size > 2 and self.below(3) == 0:
            number = self.pick((0, 1, 77, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 8 * shape.size) - 1))
            return str(number), lambda f: number
        register = self.any(self.pick(letters))
        return register, lambda f: f[register]

    def argument(
        self, parameter: Parameter, name: str, k: int, depth: str
    ) -> tuple[list[str], str, Callable[[Frame], bytes]]:
        """Lines before the call, how the argument is written there, and its bytes."""
        shape, to = parameter.shape, f"%a{k + 1}"
        value: Value
        if parameter.role == "data":
            passed = self.scalar(shape) if self.below(2) else None
            if not passed:
                lines, writes = self.fill(name, ".param", shape.alignment, shape.size)

                def bytes_of(frame: Frame) -> bytes:
                    here = frame.thread.new(shape.size)
                    self.write(frame, here, writes)
                    return bytes(frame.thread.objects.pop(here >> 32))

                return [shape.declare(".param", name) + ";", *lines], name, bytes_of
            text, value = passed
            return (
                [],
                text,
                lambda f: (value(f) % (1 << 8 * shape.size)).to_bytes(shape.size, "little"),
            )
        if parameter.role == "depth":
            number = self.below(3)
            before, text, value = "", depth or str(number), lambda f: f[depth] if depth else number
        else:
            if parameter.role == "pointer":
                before, value = self.pointer_to(to)
            else:
                before, value = self.address_of(parameter.family, to)
            text = to
        size = shape.size
        if self.below(2):
            before = (
                f"{before} {shape.declare('.param', name)}; st.param.b{8 * size} [{name}], {text};"
            )
            text = name
        return [before.strip()], text, lambda f: value(f).to_bytes(size, "little")

    # ---- results ----

    def registers_for(self, shape: Shape) -> str:
        """Letters of the registers that may take a result. ptxas 13.0 takes an untyped register for
        a float once a call has left one in it: st.u8 of it stores the float as an integer."""
        letters = registers_of(shape)
        floats_only = shape.kind[0] == "f" and not self.module.all_of_ptx
        return letters[1:] if floats_only else letters

    def result(self, shape: Shape, name: str, guard: str) -> tuple[str, list[str], list[str], Any]:
        """How it is written in the call, lines before and after that, and what takes its bytes."""
        letters = self.registers_for(shape)
        if letters and (guard or self.below(2)):
            register = self.any(self.pick(letters))

            def set_register(frame: Frame, given: bytes) -> None:
                frame[register] = int.from_bytes(given, "little")

            return register, [], [], set_register
        lines, pieces = self.absorb(name, ".param", shape.alignment, shape.size)

        def take(frame: Frame, given: bytes) -> None:
            here = frame.thread.new(len(given))
            frame.thread.write(here, len(given), int.from_bytes(given, "little"))
            self.fold(pieces, lambda f: here)(frame)
            del frame.thread.objects[here >> 32]

        return name, [shape.declare(".param", name) + ";"], lines, take

    # ---- calls ----

    def call_of(self, family: Family, depth: str) -> Step | None:
        number = self.module.number()
        before, arguments, values = [], [], []
        try:
            for k, parameter in enumerate(family.parameters):
                lines, text, value = self.argument(parameter, f"a{number}_{k}", k, depth)
                before += lines
                arguments.append(text)
                values.append(value)
        except LookupError:
            return None
        # Code that ptxas 13.0 makes of .calltargets leaves memory (H100, driver 580).
        form = self.below(3 if self.module.all_of_ptx else 2)
        holds: Callable[[Frame], bool] | None = None
        guard, label = "", ""
        target: Value
        if form == 0:
            member = self.member(family)
            callee, target = member.name, lambda f: member.address
        else:
            text, target = self.address_of(family, "%a0")
            before.append(text)
            callee, label = "%a0", f"c{number}"
            if form == 1:
                before.insert(0, f"{label}: {self.prototype(family)};")
            else:
                names = [m.name for m in family.members]
                self.module.used[self.function.name].update(names)
                before.insert(0, f"{label}: .calltargets {', '.join(names)};")
        # ptxas takes no ld.param under a guard where a call has one.
        if self.below(5) == 0 and all(self.registers_for(shape) for shape in family.results):
            text, holds = self.condition()
            before.append(text)
            guard = "@%p0 "
        results = [
            self.result(shape, f"b{number}_{k}", guard) for k, shape in enumerate(family.results)
        ]
        if len({r[0] for r in results}) < len(results):
            return None
        back = f"({', '.join(r[0] for r in results)}), " if results else ""
        given = f", ({', '.join(arguments)})" if arguments or label else ""
        uni = ".uni" if form == 0 and not guard and self.below(4) == 0 else ""
        line = f"{guard}call{uni} {back}{callee}{given}{f', {label}' if label else ''};"
        text = [*before, *(part for r in results for part in r[1]), line]
        text += [part for r in results for part in r[2]]

        def act(frame: Frame) -> None:
            if holds and not holds(frame):
                return
            passed = [value(frame) for value in values]
            function = self.module.at[target(frame)]
            for r, bits in zip(results, function.call(frame.thread, passed), strict=True):
                r[3](frame, bits)

        return self.step(["{", *text, "}"], act, family.cost + 1)

    def prototype(self, family: Family) -> str:
        back = ", ".join(shape.declare(".param", "_") for shape in family.results)
        given = ", ".join(p.shape.declare(".param", "_") for p in family.parameters)
        return f".callprototype {f'({back}) ' if back else ''}_ ({given})"

    def recursion(self) -> Step | None:
        """The function, or another of its family, with a smaller depth."""
        family, end = self.function.family, self.label()
        k = next(k for k, p in enumerate(family.parameters) if p.role == "depth")
        name = self.function.names[k]
        inner = self.call_of(family, "%t1")
        if not inner:
            return None
        self.recursed, body = True, [inner]

        def act(frame: Frame) -> None:
            frame["%t1"] = frame.thread.read(frame.at[name], 4)
            if frame["%t1"]:
                frame["%t1"] -= 1
                run(body, frame)

        before = f"ld.param.u32 %t1, [{name}]; setp.eq.u32 %p0, %t1, 0; @%p0 bra {end};"
        return self.step([before, "sub.u32 %t1, %t1, 1;", body, f"{end}:"], act)

    # ---- vprintf ----

    FORMS = (
        ("%d", "r", 4, lambda v: str(v - (v >> 31 << 32))),
        ("%u", "r", 4, str),
        ("%08x", "r", 4, lambda v: f"{v:08x}"),
        ("%llx", "d", 8, lambda v: f"{v:x}"),
        ("%llu", "d", 8, str),
        ("%c", "t", 4, chr),
        ("%s", "s", 8, str),
    )

    def print(self) -> Step:
        """A line that names the thread, as lines of threads come in any order."""
        number, at = self.module.number(), 4
        text, before, shown = f"{number}:%u", [], []
        for _ in range(self.below(4)):
            form, letter, size, show = self.pick(self.FORMS)
            at = -(-at // size) * size
            text += self.pick((" ", "%% ", ", ")) + form
            if letter == "t":
                source = self.any("r")
                before.append(f"and.b32 %t0, {source}, 15; add.u32 %t0, %t0, 97;")
                before.append(f"st.local.b32 [s{number}+{at}], %t0;")
                shown.append((lambda f, s=source: chr(97 + (f[s] & 15)),))
            elif letter == "s":
                word = self.pick(("", "warp", "a longer word 100%"))
                before.append(f"mov.b64 %a0, {self.module.string(word)}; cvta.global.u64 %a0, %a0;")
                before.append(f"st.local.b64 [s{number}+{at}], %a0;")
                shown.append((lambda f, w=word: w,))
            else:
                source = self.any(letter)
                before.append(f"st.local.b{8 * size} [s{number}+{at}], {source};")
                shown.append((lambda f, s=source, show=show: show(f[s]),))
            at += size
        name = self.module.string(text + "\n")
        pieces = text.replace("%%", "\0")
        for form in ("%08x", "%llx", "%llu", "%d", "%u", "%c", "%s"):
            pieces = pieces.replace(form, "{}")
        pieces = pieces.replace("\0", "%")
        accept = self.any("r")

        def act(frame: Frame) -> None:
            words = [show[0](frame) for show in shown]
            frame.thread.printed.append(pieces.format(frame.thread.number, *words))
            frame[accept] = 1 + len(words)

        lines = [
            f".local .align 8 .b8 s{number}[{-(-at // 8) * 8}]; st.local.b32 [s{number}], %me;",
            *before,
            f".param .b64 a{number}_0; .param .b64 a{number}_1; .param .b32 b{number};",
            f"mov.b64 %a0, {name}; cvta.global.u64 %a0, %a0; st.param.b64 [a{number}_0], %a0;",
            f"mov.b64 %a1, s{number}; cvta.local.u64 %a1, %a1; st.param.b64 [a{number}_1], %a1;",
            f"call.uni (b{number}), vprintf, (a{number}_0, a{number}_1);",
            f"ld.param.b32 {accept}, [b{number}];",
        ]
        return self.step(["{", *lines, "}"], act, 2)
