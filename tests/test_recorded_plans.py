"""What the planners decide is what they decided: tiles, grids, splits, copies, sums.

A plan is right if its result is, which other tests look at; that it is a good one was measured on
a GPU. So each call here has a line in recorded_plans.json: what it launches, and a digest of all
of the plan. After a new row, or a change that is meant to plan otherwise,

    python tests/test_recorded_plans.py     # writes the file anew; read the difference
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import ml_dtypes  # noqa: F401 - makes "bfloat16" a dtype
import numpy as np
from numpy.lib.stride_tricks import as_strided

import smemkern

RECORD = Path(__file__).with_name("recorded_plans.json")
WRITES = "tests/test_recorded_plans.py"
SIZES = (1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 129, 200, 255, 256)
LARGE = (257, 384, 511, 512, 1000, 1024, 1536, 2047, 2048, 3001, 4096, 8192, 16384, 32768, 65536)
ROWS = ("C", "C", "padded")  # which every variant takes as they are
LAYOUTS = (*ROWS, "aligned", "crowded", "F", "F", "steps", "reversed")
READABLE = 1 << 20  # elements of an operand that may have to be copied first
BATCHES = ((), (), (), (2,), (7,), (300,), (3, 5), (70000,))
OF_BITS = {"b8": "u1", "b16": "u2", "b32": "f4", "b64": "f8", "b128": "c16"}
EACH = 9  # calls of a variant
SEED = 26  # one of those that plan the most kernels: 89
# In 2, 7 and 14 parts of K; in as many blocks as keep an H200 busy, and one more.
AT_AN_EDGE = [(1, 7360, 1536), (256, 256, 4096), (512, 512, 1792), (384, 640, 1792)]
AT_AN_EDGE += [(128, 128, 7168), (64, 64, 2048), (64, 1024, 1792), (1, 3680, 8192), (1, 3712, 8192)]


class Operand(NamedTuple):
    shape: tuple[int, ...]
    layout: str
    dtype: str
    repeated: bool  # one matrix stands for the batch

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.shape))} {self.layout}{' repeated' * self.repeated}"

    def strides(self) -> tuple[int, ...]:
        """In elements."""
        *batch, rows, cols = self.shape
        row, col = {
            "C": (cols, 1),
            "padded": (cols + cols // 16, 1),
            "aligned": (-(-cols // 64) * 64, 1),
            "crowded": (-(-cols // 32768) * 32768, 1),
            "F": (1, rows),
            "steps": (2 * cols, 2),
            "reversed": (-cols, 1),
        }[self.layout]
        matrix = max(abs(row) * rows, abs(col) * cols)
        steps = (math.prod(batch[k + 1 :]) * matrix for k in range(len(batch)))
        return (*(0 if self.repeated else step for step in steps), row, col)

    def elements(self) -> int:
        """Of memory, from the first one to the last."""
        return 1 + sum((n - 1) * abs(s) for n, s in zip(self.shape, self.strides(), strict=True))

    def array(self) -> np.ndarray:
        """At an address of 256 bytes. What is large has one element: its plan reads none."""
        itemsize, elements = np.dtype(self.dtype).itemsize, self.elements()
        room = np.zeros(256 + (elements if elements <= READABLE else 1) * itemsize, "u1")
        start = -room.ctypes.data % 256
        if self.layout == "reversed":
            start += (self.shape[-2] - 1) * self.shape[-1] * itemsize
        one = room[start : start + itemsize].view(self.dtype)
        return as_strided(one, self.shape, [s * itemsize for s in self.strides()])


class Call(NamedTuple):
    op: str
    operands: tuple[Operand, ...]
    options: dict[str, Any]

    def __str__(self) -> str:
        options = (f"{name}={value}" for name, value in self.options.items())
        return " ".join([self.op, self.operands[0].dtype, *map(str, self.operands), *options])


class Draw:
    """Draws of one row, with a seed of its own: a new row leaves the calls of the others alone."""

    def __init__(self, row: str) -> None:
        self.random = Random(f"{row} {SEED}")  # its randrange is the same in every Python

    def one_of(self, choices: Any) -> Any:
        return choices[self.random.randrange(len(choices))]

    def size(self) -> int:
        return self.one_of(SIZES if self.random.randrange(5) < 3 else LARGE)

    def operand(self, batch: tuple[int, ...], rows: int, cols: int, dtype: str) -> Operand:
        repeated = self.random.randrange(5) == 0
        found = Operand((*batch, rows, cols), self.one_of(LAYOUTS), dtype, repeated)
        readable = found.elements() <= READABLE or found.layout in ROWS
        return found if readable else found._replace(layout="C")


def calls_of(row: smemkern.Variant) -> Iterator[Call]:
    draw = Draw(f"{row.op} {row.name}")
    for _ in range(EACH if row.op == "gemm" else 3 * EACH):
        dtype, batch = draw.one_of(row.dtypes), draw.one_of(BATCHES)
        m, n, k = draw.size(), draw.size(), draw.size()
        options: dict[str, Any] = {"variant": row.name}
        if row.op == "transpose":
            yield Call("transpose", (draw.operand(batch, m, n, OF_BITS[dtype]),), options)
            continue
        if row.params and draw.random.randrange(3) == 0:
            name = draw.one_of(sorted(row.params))
            options[name] = draw.one_of(list(row.params[name].legal))
        options["alpha"] = draw.one_of((1.0, 0.5))
        pair = draw.operand(batch, m, k, dtype), draw.operand(batch, k, n, dtype)
        yield Call("gemm", pair, options)


def calls_without_a_variant() -> Iterator[Call]:
    draw = Draw("auto")
    for k in range(20 * EACH):
        dtype = draw.one_of(("float32", "float32", "float64", "float16"))
        batch = draw.one_of(BATCHES)
        m, n, inner = draw.size(), draw.size(), draw.size()
        if k % 2:
            options = (
                {"accuracy": draw.one_of(("float32", "norm", "tf32"))} if dtype == "float32" else {}
            )
            pair = draw.operand(batch, m, inner, dtype), draw.operand(batch, inner, n, dtype)
            yield Call("gemm", pair, options)
        else:
            dtype = draw.one_of(list(OF_BITS.values()))
            yield Call("transpose", (draw.operand(batch, m, n, dtype),), {})
    for dtype in OF_BITS.values():  # whose rows lie as far apart as those of one bank of a cache
        for rows, cols in ((700, 32768), (2048, 65536), (4096, 131072)):
            yield Call("transpose", (Operand((rows, cols), "C", dtype, False),), {})


def calls() -> list[Call]:
    found = []
    for row in (*smemkern.variants("gemm"), *smemkern.variants("transpose")):
        found += calls_of(row)
    found += calls_without_a_variant()
    for row in smemkern.variants("gemm"):
        for m, n, inner in AT_AN_EDGE:
            pair = (
                Operand((m, inner), "C", row.dtypes[0], False),
                Operand((inner, n), "C", row.dtypes[0], False),
            )
            found.append(Call("gemm", pair, {"variant": row.name}))
    return found


def planned(call: Call) -> list[str]:
    """A line for each kind of launch, and a digest of everything; or what is wrong."""
    arrays = tuple(operand.array() for operand in call.operands)
    try:
        plan = smemkern._core.plan(call.op, arrays, {**call.options, "device": "emu"})
    except (ValueError, TypeError, MemoryError, smemkern.Error) as error:
        return [f"{type(error).__name__}: {error}"]
    lines = [f"{plan['variant']}, workspace {plan['workspace']}"]
    for launch in plan["launches"][:4]:
        grid, block = (math.prod(launch[name]) for name in ("grid", "block"))
        split = launch["args"].get("split", 1)
        lines.append(f"{launch['entry']} {grid} x {block}" + (f" / {split}" if split > 1 else ""))
    whole = json.dumps(plan, sort_keys=True, default=str)
    return [*lines, hashlib.sha256(whole.encode()).hexdigest()[:12]]


def text(plans: dict[str, list[str]]) -> str:
    return (
        "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in plans.items()) + "\n}\n"
    )


def test_plans_are_those_recorded() -> None:
    recorded = json.loads(RECORD.read_text())
    now = {str(call): planned(call) for call in calls()}
    assert now.keys() == recorded.keys(), f"a row was added or removed? python {WRITES}"
    differs = [f"{c}: {now[c]}, was {recorded[c]}" for c in now if now[c] != recorded[c]]
    assert not differs, f"{len(differs)} of {len(now)} plans differ:\n" + "\n".join(differs[:10])


if __name__ == "__main__":
    RECORD.write_text(text({str(call): planned(call) for call in calls()}))
