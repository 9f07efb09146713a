"""Random kernels that access shared memory in random patterns, with barriers here and there.

Each access is on a line of its own, each loaded value is stored to y, and all arrays are stored to
z at the end, so a compiler removes no access.
"""

TYPES = {  # type: elements of an array
    "unsigned char": 512,
    "short": 512,
    "int": 256,
    "float": 256,
    "double": 128,
    "float2": 128,
    "float4": 64,
    "int4": 64,
}


class Writer:
    def __init__(self, rng):
        self.rng = rng
        self.lines = []
        self.count = 0

    def number(self, low, high):
        return int(self.rng.integers(low, high))

    def index(self, n):
        a, b, c = self.number(1, 40), self.number(0, n), self.number(1, 9)
        self.count += 1  # no two indices are the same
        forms = [
            f"(t * {a} + {b} + {self.count}) % {n}",
            f"((t ^ {b % 64}) + {self.count}) % {n}",
            f"(t / {c} + {self.count}) % {n}",
            f"(t % {c} * {a} + {self.count}) % {n}",
        ]
        return forms[self.number(0, len(forms))]

    def target(self, array, n):
        """An element of each thread's own; of more threads than elements only the first store."""
        columns = self.shapes[array]
        self.count += 1
        flat = f"(t * {2 * self.number(0, 20) + 1} + {self.count}) % {n}"
        if columns == 0:
            return f"{array}[{flat}]"
        return f"{array}[{flat} / {columns}][{flat} % {columns}]"

    def element(self, array, n):
        columns = self.shapes[array]
        if columns == 0:
            return f"{array}[{self.index(n)}]"
        return f"{array}[{self.index(n // columns)}][{self.index(columns)}]"

    def access(self, array, type_, n, k):
        lanes = int(type_[-1]) if type_[-1].isdigit() else 1
        if self.number(0, 2):
            value = f"(float)t + {k}" if lanes == 1 else ""
            if lanes > 1:
                values = ", ".join(f"t + {k + lane}" for lane in range(lanes))
                value = f"make_{type_}({values})"
            own = self.number(0, 5) > 0
            target = self.target(array, n) if own else self.element(array, n)
            self.lines.append(f"    if (t < {n if own else 96}) {target} = {value};")
            return
        self.lines.append(f"    {type_} v{k} = {self.element(array, n)};")
        total = f"v{k}" if lanes == 1 else " + ".join(f"v{k}.{'xyzw'[i]}" for i in range(lanes))
        self.lines.append(f"    y[{k} * 96 + t] = (float)({total});")

    def program(self):
        self.shapes = {}
        types = list(TYPES)
        arrays = [(f"s{k}", types[self.number(0, len(types))]) for k in range(self.number(1, 4))]
        for array, type_ in arrays:
            n = TYPES[type_]
            self.shapes[array] = columns = [0, 0, 16, 32][self.number(0, 4)]
            pad = self.number(0, 2)
            size = f"[{n}]" if columns == 0 else f"[{n // columns}][{columns + pad}]"
            self.lines.append(f"    __shared__ {type_} {array}{size};")
        self.lines.append("    int t = threadIdx.x;")
        for array, _ in arrays:  # no element is read before it was written
            self.lines.append(f"    for (int i = t; i < (int)sizeof({array}) / 4; i += 96)")
            self.lines.append(f"        ((int *){array})[i] = i;")
        self.lines.append("    __syncthreads();")
        for k in range(self.number(3, 10)):
            array, type_ = arrays[self.number(0, len(arrays))]
            guard = self.number(0, 4) == 0
            if guard:
                self.lines.append(f"    if (t % {self.number(2, 5)} == 0) {{")
            self.access(array, type_, TYPES[type_], k)
            if guard:
                self.lines.append("    }")
            if self.number(0, 4):
                self.lines.append("    __syncthreads();")
        self.lines.append("    __syncthreads();")
        for k, (array, _) in enumerate(arrays):  # a compiler may drop stores that nothing reads
            self.lines.append(f"    for (int i = t; i < (int)sizeof({array}) / 4; i += 96)")
            self.lines.append(f"        z[{512 * k} + i] = ((int *){array})[i];")
        head = "__global__ void k(float *y, int *z) {"
        return "\n".join([head, *self.lines, "}", ""])
