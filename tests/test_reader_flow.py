"""Control flow and register slots: random programs on lanes that part and meet, against Python.

Every assignment goes through fresh registers, so that a warp's frame is full of slots that several
registers share; every branch, loop count and guard depends on the lane.
"""

import random

import numpy as np
import pytest

import smemkern

THREADS, VARIABLES = 64, 5
MASK = 0xFFFFFFFF
OPERATIONS = {
    "add.u32": lambda a, b: (a + b) & MASK,
    "sub.u32": lambda a, b: (a - b) & MASK,
    "mul.lo.u32": lambda a, b: (a * b) & MASK,
    "xor.b32": lambda a, b: a ^ b,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
}


class Writer:
    """PTX of a program, as it is drawn; `run` is the same program for one lane in Python."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.labels = 0
        self.n = {"%t": 0, "%q": 0, "%w": 0}

    def fresh(self, kind):
        self.n[kind] += 1
        return f"{kind}{self.n[kind]}"

    def label(self):
        self.labels += 1
        return f"L{self.labels}"

    def emit(self, line):
        self.lines.append(line)

    def expression(self, depth):
        """The register that holds it, and its value as a function of the variables."""
        if depth == 0:
            if self.random.random() < 0.3:
                value = self.random.getrandbits(32)
                register = self.fresh("%t")
                self.emit(f"mov.u32 {register}, {value};")
                return register, lambda v: value
            i = self.random.randrange(VARIABLES)
            return f"%v{i}", lambda v: v[i]
        a, value_a = self.expression(depth - 1)
        b, value_b = self.expression(depth - 1)
        if self.random.random() < 0.2:  # through another size of slot
            wide, register = self.fresh("%w"), self.fresh("%t")
            self.emit(f"mul.wide.u32 {wide}, {a}, {b};")
            self.emit(f"shr.u64 {wide}, {wide}, 7;")
            self.emit(f"cvt.u32.u64 {register}, {wide};")
            return register, lambda v: (value_a(v) * value_b(v)) >> 7 & MASK
        name = self.random.choice(list(OPERATIONS))
        operation = OPERATIONS[name]
        register = self.fresh("%t")
        self.emit(f"{name} {register}, {a}, {b};")
        return register, lambda v: operation(value_a(v), value_b(v))

    def condition(self):
        i, modulus = self.random.randrange(VARIABLES), self.random.choice([2, 3, 5])
        rest, predicate = self.fresh("%t"), self.fresh("%q")
        self.emit(f"rem.u32 {rest}, %v{i}, {modulus}; setp.eq.u32 {predicate}, {rest}, 0;")
        return predicate, lambda v: v[i] % modulus == 0

    def block(self, depth):
        steps = [self.statement(depth) for _ in range(self.random.randint(1, 3))]

        def run(v):
            return all(step(v) for step in steps)  # False: the lane has left

        return run

    def statement(self, depth):
        kinds = ["assign", "assign", "guarded"]
        if depth:
            kinds += ["if", "ifelse", "loop", "switch", "leave"]
        return getattr(self, self.random.choice(kinds))(depth)

    def assign(self, depth):
        i = self.random.randrange(VARIABLES)
        register, value = self.expression(self.random.randint(1, 3))
        self.emit(f"mov.u32 %v{i}, {register};")

        def run(v):
            v[i] = value(v)
            return True

        return run

    def guarded(self, depth):
        i = self.random.randrange(VARIABLES)
        predicate, holds = self.condition()
        register, value = self.expression(1)
        negated = self.random.random() < 0.5
        self.emit(f"@{'!' * negated}{predicate} mov.u32 %v{i}, {register};")

        def run(v):
            if holds(v) != negated:
                v[i] = value(v)
            return True

        return run

    def leave(self, depth):
        """An early exit: in a block of its own, or straight to the common one."""
        predicate, holds = self.condition()
        self.emit(f"@{predicate} bra END;")
        return lambda v: not holds(v)

    def _if(self, depth, has_else):
        predicate, holds = self.condition()
        other, end = self.label(), self.label()
        self.emit(f"@!{predicate} bra {other};")
        then = self.block(depth - 1)
        if has_else:
            self.emit(f"bra {end};")
        self.emit(f"{other}:")
        otherwise = self.block(depth - 1) if has_else else lambda v: True
        self.emit(f"{end}:")
        return lambda v: then(v) if holds(v) else otherwise(v)

    def ifelse(self, depth):
        return self._if(depth, True)

    def loop(self, depth):
        i, head, counter = self.random.randrange(VARIABLES), self.label(), self.fresh("%t")
        predicate = self.fresh("%q")
        self.emit(f"and.b32 {counter}, %v{i}, 3;")
        self.emit(f"{head}:")
        body = self.block(depth - 1)
        self.emit(f"setp.gt.u32 {predicate}, {counter}, 0; sub.u32 {counter}, {counter}, 1;")
        self.emit(f"@{predicate} bra {head};")

        def run(v):
            return all(body(v) for _ in range((v[i] & 3) + 1))

        return run

    def switch(self, depth):
        i, end, index = self.random.randrange(VARIABLES), self.label(), self.fresh("%t")
        labels, arms = [self.label() for _ in range(4)], []
        self.emit(f"and.b32 {index}, %v{i}, 3;")
        self.emit(f"{end}T: .branchtargets {', '.join(labels)};")
        self.emit(f"brx.idx {index}, {end}T;")
        for label in labels:
            self.emit(f"{label}:")
            arms.append(self.block(depth - 1))
            self.emit(f"bra {end};")
        self.emit(f"{end}:")
        return lambda v: arms[v[i] & 3](v)

    def ptx(self):
        stores = "".join(f"st.global.u32 [%rd1+{4 * i}], %v{i};\n" for i in range(VARIABLES))
        start = "".join(
            f"mad.lo.u32 %v{i}, %lane, {2 * i + 1}, {i * 77};\n" for i in range(VARIABLES)
        )
        body = "\n".join(self.lines)
        return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y)
{{
.reg .b32 %v<{VARIABLES}>, %t<{self.n["%t"] + 1}>, %lane;
.reg .pred %q<{self.n["%q"] + 1}>;
.reg .b64 %rd<3>, %w<{self.n["%w"] + 1}>;
ld.param.u64 %rd1, [y];
mov.u32 %lane, %tid.x;
mul.wide.u32 %rd2, %lane, {4 * VARIABLES};
add.u64 %rd1, %rd1, %rd2;
{start}{body}
END:
{stores}ret;
}}
"""

    def __getattr__(self, name):
        if name == "if":
            return lambda depth: self._if(depth, False)
        raise AttributeError(name)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed, device):
    writer = Writer(seed)
    blocks = [writer.block(3) for _ in range(3)]
    expected = np.empty((THREADS, VARIABLES), np.uint32)
    for lane in range(THREADS):
        v = [(lane * (2 * i + 1) + i * 77) & MASK for i in range(VARIABLES)]
        all(block(v) for block in blocks)
        expected[lane] = v
    y = np.zeros((THREADS, VARIABLES), np.uint32)
    smemkern.Kernel(writer.ptx(), "k")(1, THREADS, y, device=device)
    assert np.array_equal(y, expected)


EARLY = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y)
{
.reg .pred %p<4>;
.reg .b32 %r<4>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [y];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd1, %rd1, %rd2;
%s
END: ret;
}
"""


@pytest.mark.parametrize(
    "body",
    [
        # Of the lanes that take the branch some leave for good; the rest must meet the others.
        """
        setp.lt.u32 %p1, %r1, 16; setp.lt.u32 %p2, %r1, 8;
        @!%p1 bra REST;
        @%p2 bra END;
        REST: popc.b32 %r2, %r1; st.global.u32 [%rd1], %r2;
        """,
        # The same, and those that leave do something first.
        """
        setp.lt.u32 %p1, %r1, 16; setp.lt.u32 %p2, %r1, 8;
        @!%p1 bra REST;
        @%p2 bra LEAVE;
        bra REST;
        LEAVE: mov.u32 %r3, 0; add.u32 %r3, %r3, 1; mul.lo.u32 %r3, %r3, %r3; xor.b32 %r3, %r3, %r1;
        bra END;
        REST: popc.b32 %r2, %r1; st.global.u32 [%rd1], %r2;
        """,
        # A loop that some lanes leave by returning, others by its end at different times.
        """
        and.b32 %r2, %r1, 3; setp.lt.u32 %p2, %r1, 8;
        LOOP:
        @%p2 bra END;
        setp.gt.u32 %p1, %r2, 0; sub.u32 %r2, %r2, 1;
        @%p1 bra LOOP;
        popc.b32 %r2, %r1; st.global.u32 [%rd1], %r2;
        """,
    ],
)
def test_lanes_do_not_wait_apart_for_those_that_left(body):
    y = np.full(32, 99, np.uint32)
    t = smemkern.trace(smemkern.Kernel(EARLY.replace("%s", body), "k"), 1, 32, y)
    expected = [99] * 8 + [bin(lane).count("1") for lane in range(8, 32)]
    assert y.tolist() == expected
    assert t.instructions["popc.b32"] == 1, "all lanes that stayed are together again"
