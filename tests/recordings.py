"""Writes recordings of steps that a test makes up, and keeps the states that they should have.

This is an encoder of its own: a dictionary of registers and arrays of words, copied after each
step, beside the columns that the format wants.
"""

import json
import struct

import numpy as np

NONE = 0xFFFFFFFF
OPERATIONS = ["load", "store", "atomic", "ldmatrix"]
SPACES = ["generic", "global", "shared", "local"]
EVENTS = ["barrier_arrive", "barrier_complete", "exit"]
TYPES = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32}
_U8 = "delta_kind access_operation access_space access_width access_kind write_lane event_kind"
_U8 += " event_flags waves initial_kind memory_lane"
_U16 = "delta_warp access_cost access_ideal"
_U32 = "step_warp step_instruction step_active step_executed first_delta first_access first_write"
_U32 += " first_event delta_register delta_at access_memory access_active access_at access_waves"
_U32 += " access_words write_memory write_word write_value write_warp write_step event_warp"
_U32 += " event_lanes event_object words initial_warp initial_register initial_at memory_words"
_U32 += " memory_warp memory_instruction"


class Recorder:
    """Steps, one after the other. `state` has what a reader should find before each step."""

    def __init__(self, warps, registers, shared_bytes=4096, first=0, keep=True):
        self.columns = {name: [] for name in f"{_U8} {_U16} {_U32}".split()}
        self.registers = registers  # (name, type, bytes)
        self.values = {}  # (warp, register): 32 integers
        self.shared = np.zeros(shared_bytes // 4, np.uint32)
        self.writers = np.full((shared_bytes // 4, 3), -1, np.int64)  # warp, lane, step
        self.keep, self.states = keep, []
        self.header = {
            "format": 1, "first": first, "truncated": None, "slice": 8, "kernel": "k", "name": "k",
            "op": None, "variant": None, "title": "a test",
            "launches": [{"entry": "k", "grid": [1, 1, 1], "block": [32, warps, 1],
                          "cluster": [1, 1, 1], "shared_bytes": shared_bytes}],
            "warps": [{"block": 0, "warp": w, "lanes": NONE, "recorded": True}
                      for w in range(warps)],
            "blocks": [{"launch": 0, "index": [0, 0, 0], "number": 0, "shared": 0}],
            "memories": [{"kind": "shared", "block": 0, "bytes": shared_bytes, "at": 0,
                          "words": shared_bytes // 4}],
            "shared": [], "first_array": 16, "arrays": [], "functions": [], "instructions": [],
            "registers": [{"name": n, "type": t, "size": s, "slot": i}
                          for i, (n, t, s) in enumerate(registers)],
            "files": [], "ptx": "", "locals": [], "operations": OPERATIONS, "spaces": SPACES,
            "event_kinds": EVENTS, "hazards": [], "fault": None, "explanations": [], "end": [],
        }  # fmt: skip

    def instruction(self, text, line, file=0, reads=(), writes=()):
        opcode = text.split()[0]
        at = len(self.header["instructions"])
        self.header["instructions"].append(
            {"text": text, "opcode": opcode, "ptx_line": at + 1, "file": file, "line": line,
             "column": 1, "callers": [], "function": 0, "guard": None, "negated": False,
             "reads": list(reads), "writes": list(writes), "target": None}
        )  # fmt: skip
        return at

    def step(self, warp, instruction, active=NONE, executed=None):
        self._note_state()
        c = self.columns
        self._mark()
        c["step_warp"].append(warp)
        c["step_instruction"].append(instruction)
        c["step_active"].append(active)
        c["step_executed"].append(active if executed is None else executed)

    def delta(self, register, values, warp=None):
        c, size = self.columns, self.registers[register][2]
        warp = c["step_warp"][-1] if warp is None else warp
        values = [int(v) % (1 << 8 * max(size, 1)) for v in values]
        kind, at = self._vector(values, size)
        for name, value in zip(
            ("delta_register", "delta_warp", "delta_kind", "delta_at"),
            (register, warp, kind, at),
            strict=True,
        ):
            c[name].append(value)
        self.values[warp, register] = values

    def access(self, operation, addresses, width=4, active=NONE, cost=0, ideal=0, waves=None,
               memory=0, space="shared", words=NONE):  # fmt: skip
        c = self.columns
        size = 8 if memory == NONE else 4
        kind, at = self._vector([int(a) for a in addresses], size)
        waves_at = NONE
        if waves is not None:
            waves_at = len(c["waves"])
            c["waves"] += [int(w) for w in waves]
        row = (OPERATIONS.index(operation), memory, SPACES.index(space), width, active, kind, at)
        row += (cost, ideal, waves_at, words)
        names = "operation memory space width active kind at cost ideal waves words".split()
        for name, value in zip(names, row, strict=True):
            c[f"access_{name}"].append(value)

    def write(self, word, value, lane, warp=None, step=None):
        c = self.columns
        warp = c["step_warp"][-1] if warp is None else warp
        step = len(c["step_warp"]) - 1 if step is None else step
        row = (0, word, value, warp, lane, step)
        names = "memory word value warp lane step".split()
        for name, one in zip(names, row, strict=True):
            c[f"write_{name}"].append(int(one))
        self.shared[word] = value
        self.writers[word] = warp, lane, step

    def event(self, kind, lanes, object_=0, flags=0, warp=None):
        c = self.columns
        warp = c["step_warp"][-1] if warp is None else warp
        row = (EVENTS.index(kind), warp, lanes, object_, flags)
        for name, value in zip("kind warp lanes object flags".split(), row, strict=True):
            c[f"event_{name}"].append(value)

    def initial(self, warp, register, values):
        """A value from before the window. Call it before the first step."""
        kind, at = self._vector(values, self.registers[register][2])
        c = self.columns
        for name, value in zip(
            ("warp", "register", "kind", "at"), (warp, register, kind, at), strict=True
        ):
            c[f"initial_{name}"].append(value)
        self.values[warp, register] = list(values)

    def initial_word(self, word, value, warp, lane):
        self.shared[word] = value
        self.writers[word] = warp, lane, -1

    def bytes(self):
        self._note_state()
        self._mark()
        c = self.columns
        start = self._start
        c["memory_words"] = start[0]
        c["memory_warp"] = np.where(start[1][:, 0] < 0, NONE, start[1][:, 0])
        c["memory_lane"] = np.maximum(start[1][:, 1], 0)
        c["memory_instruction"] = np.full(len(start[0]), NONE)
        data, described = b"", {}
        for name, values in c.items():
            kind = "u8" if name in _U8.split() else "u16" if name in _U16.split() else "u32"
            raw = np.asarray(values, np.int64).astype(TYPES[kind]).tobytes()
            described[name] = {"type": kind, "at": len(data), "count": len(values)}
            data += raw + bytes(-len(raw) % 8)
        n = len(c["step_warp"])
        header = self.header | {"count": n, "total": n, "sections": described}
        text = json.dumps(header).encode()
        text += b" " * (-(12 + len(text)) % 8)
        return b"SMKREC1\n" + struct.pack("<I", len(text)) + text + data

    def _mark(self):
        c = self.columns
        for name, of in (("delta", "delta_at"), ("access", "access_at"), ("write", "write_word"),
                         ("event", "event_kind")):  # fmt: skip
            c[f"first_{name}"].append(len(c[of]))

    def _note_state(self):
        if not self.states and not self.columns["step_warp"]:
            self._start = self.shared.copy(), self.writers.copy()
        if self.keep:
            self.states.append((dict(self.values), self.shared.copy(), self.writers.copy()))

    def _vector(self, values, size):
        words = self.columns["words"]
        at = len(words)
        if size == 0:
            words.append(sum(int(bool(v)) << lane for lane, v in enumerate(values)))
            return 2, at
        mask, per = (1 << 8 * size) - 1, max(1, size // 4)
        stride = (values[1] - values[0]) & mask if size < 16 else 0
        if all((values[0] + lane * stride) & mask == values[lane] for lane in range(32)):
            _put(words, values[0], per)
            _put(words, stride, per)
            return 0, at
        for value in values:
            _put(words, value, per)
        return 1, at


def _put(words, value, per):
    words += [value >> 32 * i & NONE for i in range(per)]


def transpose(pad=0, barrier=True, hazard=False):
    """The 32 x 32 transpose by 32 warps, four steps each and a barrier."""
    cols = 32 + pad
    lines = [
        "__global__ void transpose(const float *x, float *y) {",
        f"  __shared__ float tile[32][{cols}];",
        "  int i = threadIdx.x, j = threadIdx.y;",
        "  tile[j][i] = x[32 * j + i];",
        "  __syncthreads();" if barrier else "  // no barrier",
        "  y[32 * j + i] = tile[i][j];",
        "}",
    ]
    registers = [("%r1", "u32", 4), ("%r2", "u32", 4), ("%f1", "f32", 4), ("%rd1", "u64", 8)]
    registers += [("%f2", "f32", 4), ("%p1", "pred", 0)]
    r = Recorder(32, registers, 32 * cols * 4, keep=False)
    h = r.header
    h["files"] = [{"name": "transpose.cu", "text": "\n".join(lines) + "\n"}]
    h["title"] = "transpose of 32 x 32"
    h["name"] = h["launches"][0]["entry"] = "transpose"
    h["shared"] = [{"launch": 0, "name": "tile", "offset": 0, "bytes": 128 * cols, "type": "b8",
                    "dynamic": False, "element": 4, "cols": cols, "accessed": "f32",
                    "layout": "Pad each row of tile by 1 element, tile[32][33]: 1 wavefront in "
                    "place of 32, 128 bytes more." if not pad else None}]  # fmt: skip
    h["arrays"] = [{"name": n, "dtype": "float32", "shape": [32, 32], "strides": [128, 4],
                    "bytes": 4096, "offset": 0, "access": "in"} for n in "xy"]  # fmt: skip
    i = r.instruction
    code = [
        i("mov.u32 %r1, %tid.x;", 3, writes=[0]), i("mov.u32 %r2, %tid.y;", 3, writes=[1]),
        i("ld.global.f32 %f1, [%rd1];", 4, reads=[3], writes=[2]),
        i("st.shared.f32 [%r1], %f1;", 4, reads=[0, 2]), i("bar.sync 0;", 5),
        i("ld.shared.f32 %f2, [%r1];", 6, reads=[0], writes=[4]),
        i("st.global.f32 [%rd1], %f2;", 6, reads=[3, 4]), i("ret;", 7),
    ]  # fmt: skip
    lanes = np.arange(32)
    x = np.random.default_rng(1).standard_normal((32, 32)).astype(np.float32)
    bits = x.view(np.uint32)
    tile = np.zeros((32, cols), np.uint32)
    for w in range(32):
        r.step(w, code[0])
        r.delta(0, lanes)
        r.step(w, code[1])
        r.delta(1, [w] * 32)
        r.step(w, code[2])
        r.access("load", (16 << 40) + 128 * w + 4 * lanes, memory=NONE, space="global", cost=4,
                 ideal=4)  # fmt: skip
        r.delta(2, bits[w])
        r.step(w, code[3])
        r.access("store", (w * cols + lanes) * 4, cost=1, ideal=1)
        for lane in lanes:
            r.write(w * cols + lane, bits[w, lane], lane)
        tile[w, :32] = bits[w]
        if barrier:
            r.step(w, code[4])
            r.event("barrier_arrive", NONE)
            if w == 31:
                r.event("barrier_complete", 0)
    h["explanations"] = [
        {"text": f"Lanes 0 to 31 read rows 0 to 31 of column {w} of tile: words {w}, {w + 32}, "
         f"... {w + 992}. Rows are 32 words apart, so all are in bank {w}.", "array": 0}
        for w in range(32)
    ]  # fmt: skip
    for w in range(32):
        r.step(w, code[5])
        waves = np.zeros(32) if pad else lanes
        r.access("load", (lanes * cols + w) * 4, cost=1 if pad else 32, ideal=1, waves=waves,
                 words=NONE if pad else w)  # fmt: skip
        r.delta(4, tile[:, w])
        r.step(w, code[6])
        r.access("store", (17 << 40) + 128 * w + 4 * lanes, memory=NONE, space="global", cost=4,
                 ideal=4)  # fmt: skip
        r.step(w, code[7])
        r.event("exit", NONE)
    if hazard:
        h["hazards"] = [{"kind": "RAW", "message": "RAW race, shared tile[32]: transpose.cu:6 "
                         "reads it, transpose.cu:4 writes it, with no barrier between them",
                         "benign": False, "cure": "Add __syncthreads() between line 4 and line 6.",
                         "parties": [_party(6, 128), _party(4, 7)]}]  # fmt: skip
    return r


def _party(line, step):
    return {"file": "transpose.cu", "line": line, "text": "", "block": [0, 0, 0],
            "thread": [0, 1, 0], "step": step}  # fmt: skip
