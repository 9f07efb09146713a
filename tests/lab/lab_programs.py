"""Random kernels in the laboratory's subset, without undefined behaviour.

An expression carries its type and a bound of its absolute value, so that signed arithmetic never
overflows. Indices are masked. Barriers and shuffles stand where all threads of the block come by.
"""

from typing import NamedTuple

import numpy as np

THREADS = 64
OUTPUTS = 12  # per type
RANK = ["int", "unsigned", "long long", "unsigned long long", "float", "double"]
NARROW = {
    "bool": 1,
    "signed char": 127,
    "unsigned char": 255,
    "short": 32767,
    "unsigned short": 65535,
}
LIMIT = {"int": 2**30, "long long": 2**61}
WRAP = {"unsigned": 2**32 - 1, "unsigned long long": 2**64 - 1}


def arguments(rng):
    """Of the kernel k of a program, for one block."""
    return [
        rng.integers(-1000, 1001, 64).astype("i4"),
        rng.integers(0, 256, 64).astype("u1"),
        rng.standard_normal(64).astype("f4"),
        np.zeros(THREADS * OUTPUTS, "i8"),
        np.zeros(THREADS * OUTPUTS, "f8"),
    ]


class E(NamedTuple):
    text: str
    type: str
    bound: int = 0


def is_float(type_):
    return type_ in ("float", "double")


def promoted(e):
    return e._replace(type="int") if e.type in NARROW else e


def common(a, b):
    return max(promoted(a).type, promoted(b).type, key=RANK.index)


def settled(e):
    """Small enough for a few more operations."""
    if e.type in WRAP:
        return e._replace(bound=WRAP[e.type])
    if e.type in LIMIT and e.bound > LIMIT[e.type]:
        return E(f"({e.text} % 1009)", e.type, 1008)
    return e


class Writer:
    def __init__(self, rng, floats=True):
        self.rng = rng
        self.floats = floats
        self.lines = []
        self.variables = []  # E, that may be assigned to
        self.constants = []  # E, that may only be read
        self.functions = []  # (name, parameter types, result type)
        self.count = 0
        self.has_arrays = True  # device functions have only their parameters

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p):
        return self.rng.random() < p

    def name(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    # ---- expressions ----

    def literal(self):
        kind = int(self.rng.integers(6 if self.floats else 4))
        n = int(self.rng.integers(0, 100))
        if kind == 0:
            return E(str(n), "int", n)
        if kind == 1:
            return E(f"{n}u", "unsigned", n)
        if kind == 2:
            return E(f"0x{n:x}ll", "long long", n)
        if kind == 3:
            return E(self.pick(["true", "false"]), "bool", 1)
        value = self.pick(["0.5", "1.25", "3.0", "0.1", "1e-3", "7.5e2", "2.0"])
        return E(value + ("f" if kind == 4 else ""), "float" if kind == 4 else "double")

    def leaf(self):
        kind = self.rng.random()
        if kind < 0.15:
            return self.literal()
        if kind < 0.25:
            return E("threadIdx.x", "unsigned", 63)
        if kind < 0.4 and self.has_arrays:
            index = f"({self.integer(1).text}) & 63"
            options = [("xi", "int", 1000), ("xu", "unsigned char", 255)]
            options += [("xf", "float", 0)] if self.floats else []
            array, type_, bound = self.pick(options)
            return E(f"{array}[{index}]", type_, bound)
        everything = self.variables + self.constants
        return self.pick(everything) if everything else self.literal()

    def integer(self, depth):
        for _ in range(20):
            e = self.expression(depth)
            if not is_float(e.type):
                return e
        return E("3", "int", 3)

    def expression(self, depth):
        if depth <= 0 or self.chance(0.15):
            return self.leaf()
        makers = [self.arithmetic] * 5 + [self.integers] * 3 + [self.division, self.comparison]
        makers += [self.logical, self.conditional, self.conditional, self.cast, self.cast]
        makers += [self.unary, self.shift, self.minimum, self.bits, self.call]
        return settled(self.pick(makers)(depth - 1))

    def arithmetic(self, depth):
        a, b, op = self.expression(depth), self.expression(depth), self.pick("+-*")
        bound = a.bound * b.bound if op == "*" else a.bound + b.bound
        if not is_float(common(a, b)) and common(a, b) in LIMIT and bound > 2 * LIMIT[common(a, b)]:
            op, bound = "^", 2 ** max(a.bound, b.bound).bit_length()
            if is_float(a.type) or is_float(b.type):
                return a
        return E(f"({a.text} {op} {b.text})", common(a, b), bound)

    def integers(self, depth):
        a, b, op = self.integer(depth), self.integer(depth), self.pick("&|^")
        return E(f"({a.text} {op} {b.text})", common(a, b), 2 ** max(a.bound, b.bound).bit_length())

    def division(self, depth):
        if self.floats and self.chance(0.3):
            a, b = self.expression(depth), self.expression(depth)
            type_ = self.pick(["float", "double"])
            return E(f"(({type_}){a.text} / ({type_}){b.text})", type_)
        a, b, op = self.integer(depth), self.integer(depth), self.pick("/%")
        return E(f"({a.text} {op} ({b.text} | 1))", common(a, b), max(a.bound, b.bound) + 1)

    def comparison(self, depth):
        a, b = self.expression(depth), self.expression(depth)
        op = self.pick(["<", ">", "<=", ">=", "==", "!="])
        return E(f"({a.text} {op} {b.text})", "bool", 1)

    def logical(self, depth):
        a, b = self.expression(depth), self.expression(depth)
        if self.chance(0.2):
            return E(f"(!{a.text})", "bool", 1)
        return E(f"({a.text} {self.pick(['&&', '||'])} {b.text})", "bool", 1)

    def conditional(self, depth):
        c, a, b = (self.expression(depth) for _ in range(3))
        type_ = a.type if a.type == b.type else common(a, b)
        return E(f"({c.text} ? {a.text} : {b.text})", type_, max(a.bound, b.bound))

    def cast(self, depth):
        e = self.expression(depth)
        types = [*NARROW, *RANK[: 6 if self.floats else 4]]
        type_ = self.pick(types)
        if is_float(type_):
            return E(f"({type_})({e.text})", type_)
        if is_float(e.type):
            if type_ == "bool":
                return E(f"(bool)({e.text})", "bool", 1)
            low = 0 if type_.startswith("unsigned") else -100
            limited = f"fminf(fmaxf((float)({e.text}), {low}.0f), 100.0f)"
            return E(f"({type_}){limited}", type_, 100)
        own = {**NARROW, **WRAP, "int": 2**31, "long long": 2**63}[type_]
        narrowed = E(f"({type_})({e.text})", type_, min(e.bound, own))
        if type_ in ("int", "long long") and e.bound > own:
            return E(f"({type_})({e.text} & 1023)", type_, 1023)
        return narrowed

    def unary(self, depth):
        if self.chance(0.5):
            e = self.integer(depth)
            return E(f"(~{e.text})", promoted(e).type, e.bound + 1)
        e = self.expression(depth)
        return E(f"(-{e.text})", promoted(e).type, e.bound)

    def shift(self, depth):
        e, n = self.integer(depth), int(self.rng.integers(0, 31))
        amount = str(n) if self.chance(0.5) else f"({self.integer(0).text} & 15)"
        if self.chance(0.5):
            return E(f"((unsigned){e.text} << {amount})", "unsigned", WRAP["unsigned"])
        return E(f"({e.text} >> {amount})", promoted(e).type, e.bound)

    def minimum(self, depth):
        a, b = self.expression(depth), self.expression(depth)
        type_ = common(a, b)
        name = self.pick(["min", "max"])
        return E(f"{name}(({type_}){a.text}, ({type_}){b.text})", type_, max(a.bound, b.bound))

    def bits(self, depth):
        e, function = self.integer(depth), self.pick(["__popc", "__ffs", "__clz", "__brev"])
        return E(f"{function}((int){e.text})", "int", 2**31)

    def call(self, depth):
        if not self.functions:
            return self.leaf()
        name, parameters, result = self.pick(self.functions)
        values = [self.as_type(self.expression(depth), type_) for type_ in parameters]
        return E(f"{name}({', '.join(values)})", result, 1000)

    def as_type(self, e, type_):
        """A text that converts to the type without undefined behaviour."""
        if is_float(e.type) and not is_float(type_):
            return f"({type_})fminf(fmaxf((float)({e.text}), 0.0f), 100.0f)"
        if type_ in LIMIT:
            return f"({type_})({e.text} % 1009)" if not is_float(e.type) else e.text
        return f"({type_})({e.text})"

    # ---- statements ----

    def declare(self, indent):
        e = self.expression(3)
        name = self.name()
        type_ = self.pick([*NARROW, *RANK]) if self.chance(0.4) else e.type
        if is_float(type_) and not self.floats:
            type_ = "int"
        bound = NARROW.get(type_, WRAP.get(type_, 1009))
        self.lines.append(f"{indent}{type_} {name} = {self.as_type(e, type_)};")
        return E(name, type_, bound)

    def assign(self, indent):
        if not self.variables:
            return
        v = self.pick(self.variables)
        e = self.expression(3)
        if v.type in WRAP and self.chance(0.5) and not is_float(e.type):
            self.lines.append(f"{indent}{v.text} {self.pick('+-*^|&')}= {self.as_type(e, v.type)};")
        elif v.type in WRAP and self.chance(0.5):
            self.lines.append(f"{indent}{self.pick(['++', '--'])}{v.text};")
        elif is_float(v.type) and self.chance(0.5):
            self.lines.append(f"{indent}{v.text} {self.pick('+-*')}= {self.as_type(e, v.type)};")
        else:
            self.lines.append(f"{indent}{v.text} = {self.as_type(e, v.type)};")

    def block(self, indent, depth):
        kept = len(self.variables)
        for _ in range(int(self.rng.integers(1, 4))):
            self.statement(indent, depth)
        del self.variables[kept:]

    def if_statement(self, indent, depth):
        self.lines.append(f"{indent}if ({self.expression(2).text}) {{")
        self.block(indent + "    ", depth - 1)
        if self.chance(0.5):
            self.lines.append(f"{indent}}} else {{")
            self.block(indent + "    ", depth - 1)
        self.lines.append(indent + "}")

    def loop(self, indent, depth):
        i, n = self.name("i"), int(self.rng.integers(1, 6))
        kind = self.pick(["for", "while", "do"])
        head = {
            "for": f"for (int {i} = 0; {i} < {n}; {i}++) {{",
            "while": f"int {i} = -1; while (++{i} < {n}) {{",
            "do": f"int {i} = 0; do {{",
        }[kind]
        self.lines.append(indent + head)
        self.constants.append(E(i, "int", 6))
        self.block(indent + "    ", depth - 1)
        if self.chance(0.4):
            jump = "break" if kind == "do" else self.pick(["break", "continue"])
            self.lines.append(f"{indent}    if ({self.expression(2).text}) {jump};")
            self.block(indent + "    ", depth - 1)
        self.constants.pop()
        self.lines.append(f"{indent}}} while (++{i} < {n});" if kind == "do" else indent + "}")

    def local_array(self, indent):
        name, value = self.name("a"), self.integer(2)
        i = self.name("i")
        self.lines += [
            f"{indent}int {name}[4] = {{1, 2}};",
            f"{indent}for (int {i} = 2; {i} < 4; {i}++)",
            f"{indent}    {name}[{i}] = {self.as_type(value, 'int')};",
        ]
        self.constants.append(E(f"{name}[{self.integer(1).text} & 3]", "int", 1009))

    def statement(self, indent, depth):
        kind = self.rng.random()
        if depth > 0 and kind < 0.2:
            self.if_statement(indent, depth)
        elif depth > 0 and kind < 0.35:
            self.loop(indent, depth)
        elif kind < 0.7:
            self.variables.append(self.declare(indent))
        else:
            self.assign(indent)

    def exchange(self, indent):
        """Through shared memory, or by a shuffle."""
        v = self.declare(indent)
        self.variables.append(v)
        stride, first = int(self.rng.integers(0, 64)), int(self.rng.integers(0, 64))
        if self.chance(0.3):
            lane = self.integer(1)
            op = self.pick(["__shfl_sync", "__shfl_xor_sync"])
            wide = v.type if v.type in RANK else "int"
            self.lines.append(
                f"{indent}{wide} s{v.text} = {op}(0xffffffffu, ({wide}){v.text}, {lane.text} & 31);"
            )
            self.variables.append(E(f"s{v.text}", wide, v.bound))
            return
        tile = f"tile_{v.text}"
        self.lines += [
            f"{indent}__shared__ {v.type} {tile}[8][9];",
            f"{indent}{tile}[threadIdx.x / 8][threadIdx.x % 8] = {v.text};",
            f"{indent}__syncthreads();",
            f"{indent}{v.text} = {tile}[(threadIdx.x * {stride} + {first}) / 8 % 8]"
            f"[(threadIdx.x * {stride} + {first}) % 8];",
        ]

    # ---- the program ----

    def function(self):
        some_float = ["float"] * self.floats
        name, result = self.name("f"), self.pick(["int", "unsigned", *some_float])
        types = [self.pick(["int", "unsigned", "short", *some_float]) for _ in range(2)]
        outer = self.lines, self.variables, self.constants
        self.lines, self.constants, self.has_arrays = [], [], False
        self.variables = [
            E(f"p{k}", t, NARROW.get(t, WRAP.get(t, 1009))) for k, t in enumerate(types)
        ]
        self.block("    ", 1)
        if self.chance(0.5):
            early = self.as_type(self.expression(2), result)
            self.lines.append(f"    if ({self.expression(2).text}) return {early};")
        body, value = self.lines, self.as_type(self.expression(2), result)
        self.lines, self.variables, self.constants = outer
        self.has_arrays = True
        parameters = ", ".join(f"{t} p{k}" for k, t in enumerate(types))
        self.functions.append((name, types, result))
        head = f"__device__ {result} {name}({parameters}) {{"
        return [head, *body, f"    return {value};", "}"]

    def program(self):
        head = ["#define LIMIT(x) ((x) & 1023)", "constexpr int SEVEN = 7;"]
        self.constants = [E("SEVEN", "int", 7)]
        functions = []
        for _ in range(int(self.rng.integers(0, 3))):
            functions += self.function()
        self.lines = []
        for _ in range(int(self.rng.integers(4, 12))):
            if self.chance(0.3):
                self.exchange("    ")
            elif self.chance(0.1):
                self.local_array("    ")
            else:
                self.statement("    ", 2)
        for n, v in enumerate(self.variables[-OUTPUTS:]):
            array, type_ = ("yd", "double") if is_float(v.type) else ("yi", "long long")
            self.lines.append(f"    {array}[{n * THREADS} + threadIdx.x] = ({type_}){v.text};")
        kernel = (
            'extern "C" __global__ void k(const int *xi, const unsigned char *xu, const float *xf, '
            "long long *yi, double *yd) {"
        )
        return "\n".join([*head, *functions, kernel, *self.lines, "}", ""])
