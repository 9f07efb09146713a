"""smemkern.replay: the state at each step, against a second implementation and against itself."""

import random
import re

import numpy as np
import pytest

import smemkern
from smemkern import mistakes
from smemkern._replay.recording import Recording

LANES = np.arange(32)
HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"
OPERATIONS = {
    "add.u32": lambda a, b: a + b,
    "sub.u32": lambda a, b: a - b,
    "mul.lo.u32": lambda a, b: a * b,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "min.u32": np.minimum,
    "max.u32": np.maximum,
}
COMPARISONS = {
    "setp.lt.u32": np.less,
    "setp.ge.u32": np.greater_equal,
    "setp.eq.u32": np.equal,
    "setp.ne.u32": np.not_equal,
}
ARITHMETIC = re.compile(
    r"(?:@!?%\w+ )?(add|sub|mul|mov)(?:\.lo|\.rn)?\.([sufb])(32|64) (%\w+), ([^,]+)(?:, ([^,]+))?"
)
ARITHMETIC_OF = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "mov": lambda value, _: value,
}
REVERSE = """__global__ void reverse(int *x) {
    __shared__ int tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = tile[63 - threadIdx.x];
}
"""
TRANSPOSE = """__global__ void transpose(const float *a, float *b, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        b[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
"""


@pytest.fixture
def seed():
    return random.randrange(1 << 32)


# ---- a second implementation of some instructions ----


class Program:
    """A random kernel: straight code with guards, and words of shared memory."""

    N_REGISTERS, N_PREDICATES, WORDS = 8, 3, 128

    def __init__(self, seed, length=60):
        self.random = random.Random(seed)
        self.code = ["mov.u32 %a, tile;", "mov.u32 %r0, %tid.x;"]  # tile is at 0
        self.run = [
            lambda s: s.set_address(np.zeros(32)),
            lambda s: s.set_register(0, s.thread.astype(np.uint32)),
        ]
        for number in range(1, self.N_REGISTERS):
            self._constant(number)
        for _ in range(length):
            self.random.choice([self._arithmetic] * 4 + [self._compare, self._store, self._load])()
        self.code.append("ret;")

    def ptx(self):
        return (
            f"{HEAD}.visible .entry k(.param .u64 p) {{\n"
            f".reg .u32 %r<{self.N_REGISTERS}>;\n.reg .pred %p<{self.N_PREDICATES}>;\n"
            f".reg .u32 %a;\n.shared .align 4 .b8 tile[{4 * self.WORDS}];\n"
            + "\n".join(self.code)
            + "\n}\n"
        )

    def _guard(self):
        if self.random.random() < 0.6:
            return "", lambda s: np.ones(32, bool)
        number, negated = self.random.randrange(self.N_PREDICATES), self.random.random() < 0.5
        text = f"@{'!' if negated else ''}%p{number} "
        return text, lambda s: s.predicates[number] != negated

    def _add(self, text, run):
        guard, lanes = self._guard()
        self.code.append(guard + text)
        self.run.append(lambda s: run(s, lanes(s)))

    def _any(self):
        return self.random.randrange(self.N_REGISTERS)

    def _constant(self, number):
        value = self.random.randrange(1 << 32)
        self.code.append(f"mov.u32 %r{number}, {value};")
        self.run.append(lambda s: s.set_register(number, np.full(32, value, np.uint32)))

    def _arithmetic(self):
        name, apply = self.random.choice(list(OPERATIONS.items()))
        d, a, b = self._any(), self._any(), self._any()
        self._add(
            f"{name} %r{d}, %r{a}, %r{b};",
            lambda s, lanes: s.set_register(d, apply(s.registers[a], s.registers[b]), lanes),
        )

    def _compare(self):
        name, apply = self.random.choice(list(COMPARISONS.items()))
        d, a, b = self.random.randrange(self.N_PREDICATES), self._any(), self._any()
        self._add(
            f"{name} %p{d}, %r{a}, %r{b};",
            lambda s, lanes: s.set_predicate(d, apply(s.registers[a], s.registers[b]), lanes),
        )

    def _address(self):
        """%a = 4 * (a register modulo WORDS)"""
        a = self._any()
        self.code.append(f"and.b32 %a, %r{a}, {self.WORDS - 1};")
        self.run.append(lambda s: s.set_address(s.registers[a] & (self.WORDS - 1)))
        self.code.append("shl.b32 %a, %a, 2;")
        self.run.append(lambda s: s.set_address(s.address * 4))

    def _store(self):
        self._address()
        b = self._any()
        self._add(f"st.shared.u32 [%a], %r{b};", lambda s, lanes: s.store(s.registers[b], lanes))

    def _load(self):
        self._address()
        d = self._any()
        self._add(f"ld.shared.u32 %r{d}, [%a];", lambda s, lanes: s.load(d, lanes))


class State:
    """A warp of the second implementation. Shared memory belongs to all warps."""

    def __init__(self, warp, shared):
        self.warp, self.shared = warp, shared
        self.thread = 32 * warp + LANES
        self.registers = {}
        self.predicates = [np.zeros(32, bool) for _ in range(Program.N_PREDICATES)]
        self.known_predicates = set()
        self.address = None

    def set_register(self, number, value, lanes=True):
        before = self.registers.get(number, np.zeros(32, np.uint32))
        self.registers[number] = np.where(lanes, value, before).astype(np.uint32)

    def set_predicate(self, number, value, lanes):
        self.known_predicates.add(number)
        self.predicates[number] = np.where(lanes, value, self.predicates[number])

    def set_address(self, value):
        self.address = value.astype(np.uint32)

    def store(self, value, lanes):
        for lane in np.flatnonzero(lanes):
            word = int(self.address[lane]) // 4
            self.shared[word] = (int(value[lane]), self.warp, int(lane))

    def load(self, number, lanes):
        words = [self.shared.get(int(a) // 4, (0x7FF77FF7,))[0] for a in self.address]
        self.set_register(number, np.array(words, np.uint32), lanes)


def check_state(replay, step, states, shared):
    replay.seek(step)
    for state in states:
        for number, value in state.registers.items():
            found = replay.register(f"%r{number}", warp=state.warp)
            np.testing.assert_array_equal(found.view(np.uint32), value)
        for number in state.known_predicates:
            found = replay.register(f"%p{number}", warp=state.warp)
            np.testing.assert_array_equal(found, state.predicates[number])
    words = replay.shared()
    expected = [shared.get(k, (0x7FF77FF7,))[0] for k in range(Program.WORDS)]
    np.testing.assert_array_equal(words, np.array(expected, np.uint32))
    for word, writer in enumerate(replay.writers()):
        assert (writer and writer[:2]) == (shared[word][1:] if word in shared else None)


def predicates_start_false(program):
    """The emulator's uninitialized predicates are not false: sets them first."""
    for number in range(Program.N_PREDICATES):
        program.code.insert(number, f"setp.ne.u32 %p{number}, 0, 0;")
        program.run.insert(
            number, lambda s, n=number: s.set_predicate(n, np.zeros(32, bool), np.ones(32, bool))
        )


@pytest.mark.parametrize("steps", [100_000, 37])
def test_every_state_is_that_of_a_second_implementation(seed, steps):
    print("seed", seed)
    program = Program(seed)
    predicates_start_false(program)
    warps = 1 + seed % 3
    kernel = smemkern.Kernel(program.ptx())
    replay = smemkern.replay(kernel, 1, 32 * warps, None, steps=steps, equal_writes=True)
    shared: dict = {}
    states = [State(warp, shared) for warp in range(warps)]
    positions = [0] * warps
    assert replay.total == warps * (len(program.run) + 1)
    for step in range(replay.total):
        if step % 3 == 0:
            check_state(replay, step, states, shared)
        replay.seek(step)
        warp = replay.header["warps"][replay.warp]["warp"]
        number = replay.instruction["ptx_line"] - replay.header["instructions"][0]["ptx_line"]
        assert number == positions[warp]
        positions[warp] += 1
        if number < len(program.run):
            program.run[number](states[warp])
    check_state(replay, replay.total, states, shared)
    for step in random.Random(seed).sample(range(replay.total), 5):
        replay.seek(step)  # backwards, too


# ---- a recording against itself and against a trace ----


def stepped(replay):
    """(registers, shared memory, writers) of all warps at the current step, as plain data."""
    found = []
    for warp in range(len(replay.header["warps"])):
        numbers = range(len(replay.header["registers"]))
        values = {n: replay.register(n, warp=warp) for n in numbers}
        key = (tuple(block_of(replay, warp)), replay.header["warps"][warp]["warp"])
        found.append((key, {n: v.tobytes() for n, v in values.items() if v is not None}))
    return sorted(found), [replay.shared(k).tobytes() for k in range(len(replay.header["blocks"]))]


def block_of(replay, warp):
    return replay.header["blocks"][replay.header["warps"][warp]["block"]]["index"]


def transpose_arguments(n=64):
    rng = np.random.default_rng()
    return rng.random((n, n), np.float32), np.zeros((n, n), np.float32), n


def test_windows_agree_with_the_whole(seed):
    print("seed", seed)
    arguments = ((2, 2), (32, 8), *transpose_arguments())
    whole = smemkern.replay(TRANSPOSE, *arguments)
    cut = smemkern.replay(TRANSPOSE, *arguments, steps=60)
    assert cut.count == 60
    assert cut.header["truncated"] == "steps"
    for step in random.Random(seed).choices(range(whole.total + 1), k=12):
        ours, theirs = stepped(whole.seek(step)), stepped(cut.seek(step))
        assert ours[1] == theirs[1]
        for (key, registers), (other, their_registers) in zip(ours[0], theirs[0], strict=False):
            if key == other:
                assert their_registers.items() <= registers.items()
        if step < whole.total:
            assert whole.instruction["text"] == cut.instruction["text"]


def test_recordings_are_deterministic():
    arguments = ((2, 2), (32, 8), *transpose_arguments())
    first = smemkern.replay(TRANSPOSE, *arguments, blocks=4)
    assert first.recording == smemkern.replay(TRANSPOSE, *arguments, blocks=4).recording
    assert len(first.header["blocks"]) == 4


def loads_of(replay):
    """(step, access, registers) of the loads of whole words from shared memory."""
    columns, header = replay.columns, replay.header
    for step in replay.steps:
        of = header["instructions"][columns["step_instruction"][step - replay.first]]
        if of["opcode"] != "ld":
            continue
        for access in replay.accesses_of(step):
            if access.space == "shared" and access.op == "load":
                sizes = [header["registers"][n]["size"] for n in of["writes"]]
                if sizes and sum(sizes) == access.width and min(sizes) >= 4:
                    yield step, access, of["writes"]


@pytest.mark.parametrize(
    ("op", "variant", "shapes"),
    [
        ("gemm", "tiled", [(40, 33), (33, 47)]),
        ("gemm", "swizzle", [(64, 32), (32, 64)]),
        ("gemm", "pipelined", [(64, 64), (64, 64)]),
        ("gemm", "vectorized", [(64, 32), (32, 64)]),
        ("gemm", "mma_fp16", [(64, 64), (64, 64)]),
        ("gemm", "fp16", [(64, 64), (64, 64)]),
        ("gemm", "skinny", [(64, 64), (64, 2)]),
        ("gemm", "tma", [(64, 32), (32, 64)]),
        ("transpose", "tiled", [(64, 64)]),
        ("transpose", "padded", [(70, 65)]),
        ("transpose", "tma", [(64, 64)]),
    ],
)
def test_variants(op, variant, shapes, drawn):
    half = np.float16 if "fp16" in variant else np.float32
    arrays = [drawn.random(shape, np.float32).astype(half) for shape in shapes]
    trace = smemkern.trace(op, *arrays, variant=variant)
    replay = trace.replay(blocks=trace.grid_blocks)
    columns = replay.columns
    assert replay.count == replay.total
    shared = columns["access_space"] == replay.header["spaces"].index("shared")
    for column, field in (("access_cost", "wavefronts"), ("access_ideal", "ideal")):
        counted = sum(getattr(row, field) for row in trace.shared)
        assert int(columns[column][shared].sum()) == counted
    in_global = columns["access_space"] == replay.header["spaces"].index("global")
    assert int(columns["access_cost"][in_global].sum()) == sum(r.sectors for r in trace.global_)
    loads = check_loads(replay, limit=400)
    assert loads > 0 or "fp16" in variant or variant == "skinny"
    result = next(k for k, m in enumerate(replay.header["arrays"]) if m["name"] == "the result")
    data = replay.seek(replay.total).memory(result).view(np.uint8)[: trace.result.nbytes]
    np.testing.assert_array_equal(data.view(trace.result.dtype), trace.result.ravel())


def operand(replay, name, warp, step, dtype):
    """A source operand by lane: a register of the function that the step runs, or an integer."""
    if re.fullmatch(r"-?[0-9]+", name):
        return np.full(32, int(name), np.int64).astype(dtype) if dtype.kind == "u" else None
    of = replay.header["instructions"][replay.columns["step_instruction"][step - replay.first]]
    function = replay.header["functions"][of["function"]]
    first = function["first_register"]
    for number in range(first, first + function["registers"]):
        if replay.header["registers"][number]["name"] == name:
            value = replay.register(number, warp, step)
            return None if value is None or value.dtype == bool else value.view(dtype)
    return None


def check_arithmetic(replay, limit):
    """Sums, products and moves of the recording are what NumPy computes of their operands."""
    columns, checked = replay.columns, 0
    for step in random.sample(replay.steps, min(limit, replay.count)):
        of = replay.header["instructions"][columns["step_instruction"][step - replay.first]]
        found = ARITHMETIC.fullmatch(of["text"])
        if not found:
            continue
        name, kind, bits, _d, a, b = found.groups()
        dtype = np.dtype(f"{'f' if kind == 'f' else 'u'}{int(bits) // 8}")
        warp = int(columns["step_warp"][step - replay.first])
        left = operand(replay, a, warp, step, dtype)
        right = left if b is None else operand(replay, b, warp, step, dtype)
        if left is None or right is None:
            continue
        with np.errstate(all="ignore"):
            value = ARITHMETIC_OF[name](left, right)
        lanes = int(columns["step_executed"][step - replay.first]) >> LANES & 1 == 1
        ours = replay.register(of["writes"][0], warp, step + 1).view(dtype)
        np.testing.assert_array_equal(ours[lanes], value[lanes])
        checked += 1
    return checked


def check_loads(replay, limit):
    """What a load reads is what the recording says is there: also of asynchronous copies."""
    every = list(loads_of(replay))
    for step, access, registers in random.sample(every, min(limit, len(every))):
        words = replay.memory(access.memory, step)
        warp = int(replay.columns["step_warp"][step - replay.first])
        at = (access.addresses[access.active] // 4).astype(int)
        place = 0
        for number in registers:
            value = replay.register(number, warp, step + 1)[access.active]
            for _half in range(value.dtype.itemsize // 4):
                mine = np.ascontiguousarray(value).view(np.uint32).reshape(at.size, -1)[:, _half]
                np.testing.assert_array_equal(mine, words[at + place])
                place += 1
    return len(every)


def test_wavefront_index_is_a_schedule(seed):
    """A bank serves one word in a wavefront, and no wavefront below the cost is empty."""
    print("seed", seed)
    rng = np.random.default_rng(seed)
    shift = int(rng.integers(0, 6))
    source = TRANSPOSE.replace("tile[32][32]", f"tile[32][{32 + shift}]")
    replay = smemkern.replay(source, (2, 2), (32, 8), *transpose_arguments())
    checked = 0
    for step in replay.steps:
        for access in replay.accesses_of(step):
            if access.space != "shared":
                continue
            served: dict = {}
            for lane in np.flatnonzero(access.active):
                wave, word = int(access.wavefront_index[lane]), int(access.addresses[lane]) // 4
                assert served.setdefault((wave, word % 32), word) == word
            assert {wave for wave, _ in served} == set(range(access.wavefronts))
            checked += 1
    assert checked > 50


# ---- hazards ----


def test_hazard_names_the_steps_of_its_accesses():
    replay = smemkern.replay(REVERSE, 1, 64, np.arange(64, dtype="i4"))
    (hazard,) = replay.hazards
    read, write = hazard.steps
    assert hazard.kind == "RAW"
    for step, op in ((read, "load"), (write, "store")):
        (access,) = (a for a in replay.accesses_of(step) if a.space == "shared")
        assert access.op == op
        assert replay.header["hazards"][0]["offset"] in access.addresses
    assert replay.run_to(hazard=0)
    assert replay.step == min(read, write)
    assert replay.run_to(hazard=0)
    assert replay.step == max(read, write)
    assert not replay.run_to(hazard=0)
    assert replay.run_to(hazard=0, back=True)
    assert replay.step == min(read, write)


def drawn_race(rng):
    """Warps that copy and exchange elements; some waits are missing."""
    lines = ["__shared__ int s[128], u[128];", "const int t = threadIdx.x;", "s[t] = t;"]
    steps = [
        "__syncthreads();",
        "s[t] += u[t ^ {n}];",
        "u[(t + {n}) % 128] = s[t];",
        "for (int k = 0; k < {n}; k++) y[t] += s[(t + k) % 128];",
        "if (t / 32 == {n} % 4) s[t] = y[t];",
        "atomicAdd(&s[{n}], t);",
        "if (t % 32 == 0) for (int k = 0; k < {n} * 40; k++) u[t] += s[k % 128];",
        "__pipeline_memcpy_async(&s[t], &y[t], 4); __pipeline_commit();",
        "__pipeline_wait_prior(0);",
    ]
    lines += [str(rng.choice(steps)).replace("{n}", str(rng.integers(1, 60))) for _ in range(9)]
    body = "\n".join((*lines, "y[t] = s[t] + u[127 - t];"))
    return f"#include <cuda_pipeline.h>\n__global__ void k(int *y) {{\n{body}\n}}"


@pytest.mark.parametrize("attempt", range(12))
def test_the_same_hazards_as_check(attempt, monkeypatch, drawn):
    """Those of a fault depend on the order in which warps run, which must be the same."""
    monkeypatch.setenv("SMEMKERN_EMU_THREADS", "1")  # the order of the blocks
    source = drawn_race(drawn)
    kernel = smemkern.Kernel(source)
    trace = smemkern.trace(kernel, 2, 128, np.zeros(128, "i4"))
    replay = smemkern.replay(kernel, 2, 128, np.zeros(128, "i4"), blocks=2)
    assert hazards_of(replay) == hazards_of(trace), source


@pytest.mark.parametrize("row", mistakes.rows(), ids=lambda row: row.name)
def test_the_same_mistakes_as_check(row):
    call = (smemkern.Kernel(row.ptx, row.name), row.grid, row.block)
    trace = smemkern.trace(*call, *row.arguments(), shared_bytes=row.shared_bytes)
    replay = smemkern.replay(*call, *row.arguments(), shared_bytes=row.shared_bytes, blocks=16)
    assert hazards_of(trace) and hazards_of(replay) == hazards_of(trace)


def hazards_of(found):
    return sorted((h.kind, h.message) for h in found.hazards if not getattr(h, "benign", False))


def test_hazard_outside_the_window():
    x = np.arange(64, dtype="i4")
    whole = smemkern.replay(REVERSE, 1, 64, x)
    cut = smemkern.replay(REVERSE, 1, 64, x, steps=5)
    assert cut.hazards[0].steps == (None, None)
    assert cut.run_to(hazard=0)
    assert cut.step in whole.hazards[0].steps


def test_fault_is_a_step():
    source = "__global__ void k(int *x) { x[threadIdx.x] = 1; x[1000 + threadIdx.x] = 2; }"
    replay = smemkern.replay(source, 1, 32, np.zeros(64, "i4"))
    fault = replay.header["fault"]
    assert "out" in replay.hazards[0].kind
    assert fault["step"] == replay.total - 1
    assert replay.seek(fault["step"]).instruction["opcode"] == "st"


# ---- functions, and operations that others complete ----

CALLS = """__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__global__ void k(int *x) {
    __shared__ int s[64];
    s[threadIdx.x] = fib(threadIdx.x % 6);
    x[threadIdx.x] = __syncthreads_count(threadIdx.x % 3 == 0) + s[threadIdx.x ^ 1];
}
"""


def test_calls_and_barriers_with_results(seed):
    print("seed", seed)
    replay = smemkern.replay(CALLS, 1, 64, np.zeros(64, "i4"))
    assert len(replay.header["functions"]) == 2
    assert check_arithmetic(replay, 1000) > 40
    barrier = next(s for s in reversed(replay.steps) if "bar.red" in text_of(replay, s))
    writes = instruction_of(replay, barrier)["writes"]
    for warp in range(2):
        np.testing.assert_array_equal(replay.register(writes[0], warp, barrier + 1), 22)
    replay.seek(replay.total)
    numbers = [0, 1, 1, 2, 3, 5]
    expected = [numbers[(t ^ 1) % 6] + 22 for t in range(64)]
    np.testing.assert_array_equal(replay.memory(0).view("i4"), expected)
    cut = smemkern.replay(CALLS, 1, 64, np.zeros(64, "i4"), steps=50)
    for step in random.Random(seed).sample(range(replay.total), 10):
        assert stepped(cut.seek(step))[1] == stepped(replay.seek(step))[1]


def instruction_of(replay, step):
    return replay.header["instructions"][replay.columns["step_instruction"][step - replay.first]]


def text_of(replay, step):
    return instruction_of(replay, step)["text"]


CLUSTER = """#include <cooperative_groups.h>
__global__ void __cluster_dims__(2, 1, 1) k(int *x) {
    __shared__ int s[128];
    cooperative_groups::cluster_group c = cooperative_groups::this_cluster();
    s[threadIdx.x] = 1000 * blockIdx.x + threadIdx.x;
    c.sync();
    int *other = c.map_shared_rank(s, c.block_rank() ^ 1);
    int v = other[33 * threadIdx.x % 128];
    c.sync();
    other[threadIdx.x] = v;
    atomicAdd(&other[127], 1);
    c.sync();
    x[128 * blockIdx.x + threadIdx.x] = s[threadIdx.x];
}
"""


def test_shared_memory_of_a_cluster(nvrtc):
    kernel = smemkern.Kernel(CLUSTER, options=("-arch=compute_90",))
    x = np.zeros(256, "i4")
    replay = smemkern.replay(kernel, 2, 128, x)
    trace = smemkern.trace(kernel, 2, 128, x)
    shared = replay.columns["access_space"] == replay.header["spaces"].index("shared")
    wavefronts = sum(row.wavefronts for row in trace.shared)
    assert int(replay.columns["access_cost"][shared].sum()) == wavefronts
    remote = [a for step in replay.steps for a in replay.accesses_of(step) if a.space == "shared"]
    for access in remote:
        waves = set(access.wavefront_index[access.active].tolist())
        assert access.op == "atomic" or waves == set(range(access.wavefronts))
    replay.seek(replay.total)
    warps = replay.header["warps"]
    for block, at in enumerate(replay.header["blocks"]):
        mine = x.reshape(2, 128)[at["index"][0]]
        np.testing.assert_array_equal(replay.shared(block).view("i4"), mine)
        writers = replay.writers(block)
        assert all(warps[writer.warp]["block"] != block for writer in writers)


def test_divergent_shuffle():
    """Two sides of a branch meet in a shuffle: the second one completes the first one's."""
    ptx = f"""{HEAD}.visible .entry k(.param .u64 p) {{
        .reg .u32 %r<9>; .reg .pred %p<3>;
        mov.u32 %r1, %laneid;
        setp.lt.u32 %p1, %r1, 16;
        mul.lo.u32 %r2, %r1, 10;
        @%p1 bra A;
        shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1;
        bra B;
        A: shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1;
        B: add.u32 %r4, %r3, 1;
        ret; }}"""
    replay = smemkern.replay(ptx, 1, 32, None).seek(0)
    replay.seek(replay.total - 1)
    np.testing.assert_array_equal(replay.register("%r3"), 10 * (LANES ^ 16))
    np.testing.assert_array_equal(replay.register("%r4"), 10 * (LANES ^ 16) + 1)
    first = next(s for s in replay.steps if "shfl" in text_of(replay, s))
    replay.seek(first + 1)
    waiting = replay.lanes["waits"] == "lanes"
    assert waiting.sum() == 16


# ---- moving ----


def test_moving_by_lines_and_conflicts():
    a, b, n = transpose_arguments()
    replay = smemkern.replay(TRANSPOSE, (2, 2), (32, 8), a, b, n)
    assert replay.run_to(line=5)
    warp, before = replay.warp, replay.step
    np.testing.assert_array_equal(replay.writer(replay.header["blocks"][0]["shared"], 0), None)
    assert replay.next_line(warp=warp)
    assert replay.position[1] != 5
    assert replay.next_line(back=True, warp=warp)
    assert replay.position[1] == 5
    assert before <= replay.step
    assert replay.run_to(conflict=32)
    assert replay.accesses[0].wavefronts == 32
    assert "bank" in replay.accesses[0].explanation
    np.testing.assert_array_equal(replay.shared(name="tile"), a[:32, :32])
    assert replay.run_to(barrier=True, back=True)
    assert any(event.kind == "barrier_complete" for event in replay.events)
    waiting = set(replay.lanes["waits"])
    assert waiting == {""}  # of the warp that completes it
    others = [w for w in range(8) if w != replay.warp]
    replay.warp = others[0]
    assert set(replay.lanes["waits"]) == {"barrier 0"}
    assert not replay.run_to(conflict=33)


def test_navigation_crosses_windows():
    arguments = ((2, 2), (32, 8), *transpose_arguments())
    whole = smemkern.replay(TRANSPOSE, *arguments)
    cut = smemkern.replay(TRANSPOSE, *arguments, steps=25)
    for kind in ({"conflict": 2}, {"line": 10}, {"barrier": True}):
        whole.seek(0), cut.seek(0)
        steps = []
        while whole.run_to(**kind):
            steps.append(whole.step)
            assert cut.run_to(**kind)
            assert cut.step == whole.step
        assert not cut.run_to(**kind)
        assert steps
        whole.seek(whole.total), cut.seek(cut.total)
        for step in reversed(steps):
            assert cut.run_to(**kind, back=True)
            assert cut.step == step


# ---- limits and errors ----


def test_memory_stays_within_the_limit():
    arguments = ((2, 2), (32, 8), *transpose_arguments())
    whole = smemkern.replay(TRANSPOSE, *arguments)
    limit = len(whole.recording) * 2 // 3
    cut = smemkern.replay(TRANSPOSE, *arguments, max_bytes=limit)
    assert cut.header["truncated"] == "bytes"
    assert 0 < cut.count < whole.count
    sections = sum(len(column) * column.itemsize for column in cut.columns.values())
    assert sections <= limit
    for step in range(0, whole.total + 1, 29):
        assert stepped(cut.seek(step))[1] == stepped(whole.seek(step))[1]


def test_warps_and_blocks():
    a, b, n = transpose_arguments()
    whole = smemkern.replay(TRANSPOSE, (2, 2), (32, 8), a, b, n)
    some = smemkern.replay(TRANSPOSE, (2, 2), (32, 8), a, b, n, warps=[1, 3])
    numbers = {some.header["warps"][w]["warp"] for w in some.columns["step_warp"]}
    assert numbers == {1, 3}
    assert some.total == whole.total // 4
    some.run_to(conflict=2)
    np.testing.assert_array_equal(some.shared(name="tile"), a[:32, :32])
    other = smemkern.replay(TRANSPOSE, (2, 2), (32, 8), a, b, n, blocks=(1, 0, 0))
    assert other.header["blocks"][0]["index"] == [1, 0, 0]
    assert not b.any()  # a replay changes no array


def test_trace_replays_the_arguments_as_they_were():
    x = np.arange(64, dtype="i4")
    trace = smemkern.trace(REVERSE, 1, 64, x, blocks=1)
    assert not np.array_equal(x, np.arange(64))
    replay = trace.replay()
    np.testing.assert_array_equal(replay.memory(0), np.arange(64))
    assert replay.header["arrays"][0]["shape"] == [64]
    large = np.zeros(20 << 20, "i4")
    trace = smemkern.trace(REVERSE, 1, 64, large)
    with pytest.raises(ValueError, match="smemkern.replay"):
        trace.replay()


def test_printf_is_not_shown(capsys):
    source = """#include <cstdio>
__global__ void k(int *x) { printf("thread %d", threadIdx.x); x[0] = 1; }"""
    calls = []
    x = np.zeros(1, "i4")
    replay = smemkern.replay(source, 1, 1, x, progress=lambda *done: calls.append(done))
    assert replay.total > 5
    assert capsys.readouterr().out == ""
    assert calls[-1] == (1, 1)


def test_arrays_that_share_memory_still_do():
    source = "__global__ void k(int *x, const int *y) { x[threadIdx.x] += y[threadIdx.x]; }"
    x = np.arange(64, dtype="i4")
    replay = smemkern.replay(source, 1, 32, x[:32], x[16:48])
    assert len(replay.header["arrays"]) == 1


def test_register_types_by_use():
    a, b, n = transpose_arguments()
    replay = smemkern.replay(TRANSPOSE, (2, 2), (32, 8), a, b, n)
    assert replay.run_to(conflict=2)
    loaded = replay.instruction["writes"]
    warp = replay.warp
    replay.forward()
    value = replay.register(loaded[0], warp=warp)
    assert value.dtype == np.float32
    np.testing.assert_array_equal(value, a[:32, :32][:, warp])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first": -1}, "first should be"),
        ({"first": 10_000}, "the run has 32 steps"),
        ({"steps": 0}, "steps should be"),
        ({"max_bytes": 0}, "max_bytes should be"),
        ({"blocks": [7]}, "the grid has 1 blocks"),
        ({"warps": [32]}, "warps 0 to 31"),
        ({"warps": []}, "one has to be chosen"),
        ({"device": "cuda"}, "emu"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        smemkern.replay(REVERSE, 1, 64, np.arange(64, dtype="i4"), **options)


def test_bad_moves():
    replay = smemkern.replay(REVERSE, 1, 64, np.arange(64, dtype="i4"))
    with pytest.raises(IndexError, match="the run has 32"):
        replay.seek(33)
    with pytest.raises(TypeError, match="takes one of"):
        replay.run_to(line=3, conflict=2)
    with pytest.raises(IndexError, match="no hazard 5"):
        replay.run_to(hazard=5)
    with pytest.raises(KeyError, match="no register %q1"):
        replay.register("%q1")
    with pytest.raises(KeyError, match="there are: tile"):
        replay.shared(name="other")


@pytest.mark.parametrize("cut", [0, 5, 11, 40, 2000, -8])
def test_cut_recordings(cut):
    data = smemkern.replay(REVERSE, 1, 64, np.arange(64, dtype="i4")).recording
    with pytest.raises(ValueError, match="recording"):
        Recording(data[:cut])


def test_one_step_over_the_limit():
    x = np.arange(64, dtype="i4")
    with pytest.raises(MemoryError, match="max_bytes=100 has no room for step 0"):
        smemkern.replay(REVERSE, 1, 64, x, max_bytes=100)
