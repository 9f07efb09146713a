"""The shipped variants, on whole tiles and odd shapes: what is launched, what is predicted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import smemkern
from rows import parameter_sets

from .parts import Part

GEMM_SHAPES = [(128, 128, 64), (67, 45, 31), (130, 66, 36)]
TRANSPOSE_SHAPES = [(128, 128), (67, 45), (130, 33)]
PROBE_SHAPES = [(4096,), (5000,)]


@dataclass(frozen=True)
class Call:
    op: str
    variant: str
    params: dict[str, int]
    dtype: str
    shape: tuple[int, ...]

    def operands(self) -> list[np.ndarray]:
        rng = np.random.default_rng(len(self.variant))
        if self.op == "gemm":
            m, n, k = self.shape
            return [rng.standard_normal(s).astype(self.dtype) for s in ((m, k), (k, n))]
        if self.op == "probe":
            return [rng.standard_normal(self.shape).astype("f4")]
        size = int(self.dtype.removeprefix("b")) // 8
        bits = rng.integers(0, 256, (*self.shape, size), dtype="u1")
        return [bits.view("c16" if size == 16 else f"u{size}")[..., 0]]

    def run(self, device: str) -> None:
        getattr(smemkern, self.op)(
            *self.operands(), variant=self.variant, device=device, **self.params
        )

    def trace(self) -> smemkern.Trace:
        return smemkern.trace(self.op, *self.operands(), variant=self.variant, **self.params)

    def __str__(self) -> str:
        params = "".join(f" {k}={v}" for k, v in self.params.items())
        return f"{self.op} {self.variant}{params} {self.dtype} {'x'.join(map(str, self.shape))}"


# Their counters have not been read yet: to be taken out with the next run on a GPU.
NOT_MEASURED = (
    *("simt", "mma_tf32x3", "mma_fp16", "mma_bf16", "fp64", "skinny", "skinny_mma"),
    *("tma", "tf32", "tf32x3", "fp16x3", "fp16", "bf16"),
)


def calls() -> Iterator[Call]:
    shapes: dict[str, list[Any]] = {
        "gemm": GEMM_SHAPES,
        "transpose": TRANSPOSE_SHAPES,
        "probe": PROBE_SHAPES,
    }
    for op, of_op in shapes.items():
        for row in smemkern.variants(op):
            if op == "gemm" and row.name in NOT_MEASURED:
                continue
            for params in parameter_sets(row):
                for dtype in row.dtypes:
                    for shape in of_op:
                        yield Call(op, row.name, params, dtype, shape)


SASS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"

REQUESTS = "smsp__sass_inst_executed_op_{}.sum"

# What is compared. LDGSTS, cp.async's instruction, counts as a global load; of one none of whose
# lanes takes part the counter says 32 wavefronts, which nothing moves.
COUNTERS = {
    "shared load wavefronts": {SASS.format("ld"): 1},
    "shared store wavefronts": {SASS.format("st"): 1},
    "cp.async wavefronts": {
        SASS.format("ldgsts"): 1,
        REQUESTS.format("ldgsts"): 32,
        "smsp__inst_executed_op_ldgsts.sum": -32,
    },
    "shared load requests": {REQUESTS.format("shared_ld"): 1},
    "shared store requests": {REQUESTS.format("shared_st"): 1},
    "cp.async requests": {REQUESTS.format("ldgsts"): 1},
    "global load sectors": {GLOBAL.format("sectors", "ld"): 1},
    "global store sectors": {GLOBAL.format("sectors", "st"): 1},
    "global load requests": {GLOBAL.format("requests", "ld"): 1},
    "global store requests": {GLOBAL.format("requests", "st"): 1},
}


def shared(trace: smemkern.Trace, field: str, *ops: str) -> int:
    return sum(getattr(row, field) for row in trace.shared if row.op in ops)


def global_(trace: smemkern.Trace, field: str, *ops: str) -> int:
    return sum(getattr(row, field) for row in trace.global_ if row.op in ops)


def counts(trace: smemkern.Trace) -> dict[str, int]:
    """What COUNTERS should say of a call."""
    return {
        "shared load wavefronts": shared(trace, "machine_wavefronts", "load"),
        "shared store wavefronts": shared(trace, "machine_wavefronts", "store"),
        "cp.async wavefronts": shared(trace, "machine_wavefronts", "copy_async"),
        "shared load requests": shared(trace, "machine_requests", "load"),
        "shared store requests": shared(trace, "machine_requests", "store"),
        "cp.async requests": shared(trace, "machine_requests", "copy_async"),
        "global load sectors": global_(trace, "sectors", "load", "copy_async"),
        "global store sectors": global_(trace, "sectors", "store"),
        "global load requests": global_(trace, "requests", "load", "copy_async"),
        "global store requests": global_(trace, "requests", "store"),
    }


VARIANTS = Part(
    calls=calls,
    name=str,
    run=Call.run,
    launches=lambda call: 1,
    predicted=lambda call: counts(call.trace()),
    counters=COUNTERS,
)
