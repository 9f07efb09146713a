"""The shipped variants on whole tiles and odd shapes: launches and predicted counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # noqa: F401 - makes "bfloat16" a dtype
import numpy as np

import smemkern
from rows import parameter_sets, table

from . import engine
from .parts import Part

GEMM_SHAPES = [(128, 128, 64), (67, 45, 31), (130, 66, 36)]
# For the skinny variants: few rows, and few columns.
SKINNY_SHAPES = [(1, 300, 257), (5, 136, 72), (16, 256, 264), (300, 3, 100), (40, 45, 31)]
# For variants with separate column-major kernels, or with split-K.
ORDERS = ["NT", "TN", "TT"]
ORDER_SHAPES = [(136, 72, 40), (67, 45, 31)]
SPLIT_SHAPE, SPLIT = (67, 45, 300), 2
TRANSPOSE_SHAPES = [(128, 128), (67, 45), (130, 33)]
PROBE_SHAPES = [(4096,), (5000,)]


@dataclass(frozen=True)
class Call:
    op: str
    variant: str
    params: dict[str, int]
    dtype: str
    shape: tuple[int, ...]
    order: str = "NN"  # of A and B: T is column-major

    def operands(self) -> list[np.ndarray]:
        rng = np.random.default_rng(len(self.variant))
        if self.op == "gemm":
            m, n, k = self.shape
            return [
                np.asarray(rng.standard_normal(s).astype(self.dtype), order="FC"[how == "N"])
                for s, how in zip(((m, k), (k, n)), self.order, strict=True)
            ]
        if self.op == "probe":
            return [rng.standard_normal(self.shape).astype("f4")]
        size = int(self.dtype.removeprefix("b")) // 8
        bits = rng.integers(0, 256, (*self.shape, size), dtype="u1")
        return [bits.view("c16" if size == 16 else f"u{size}")[..., 0]]

    @property
    def keywords(self) -> dict[str, Any]:
        """K is left whole unless the call says otherwise, so that counts do not follow the model
        that chooses the number of parts."""
        row = table()[self.op, self.variant]
        whole = {"split": 1} if row.rate and not row.skinny else {}
        return {"variant": self.variant, **whole, **self.params}

    def run(self, device: str) -> None:
        operands = self.operands()
        if device != "emu" and self.op != "probe":
            operands = [on_gpu(x) for x in operands]
        getattr(smemkern, self.op)(*operands, device=device, **self.keywords)

    def trace(self) -> smemkern.Trace:
        return smemkern.trace(self.op, *self.operands(), hazards=False, **self.keywords)

    def launches(self) -> int:
        plan = smemkern._core.plan(self.op, tuple(self.operands()), self.keywords)
        return len(plan["launches"])

    def __str__(self) -> str:
        params = "".join(f" {k}={v}" for k, v in self.params.items())
        shape = "x".join(map(str, self.shape)) + (f" {self.order}" if self.order != "NN" else "")
        return f"{self.op} {self.variant}{params} {self.dtype} {shape}"


def on_gpu(x: np.ndarray) -> Any:
    """A copy on the GPU with the same strides: a call on host arrays would change the layout."""
    import torch

    if x.dtype.kind in "fc":
        return torch.from_numpy(x).cuda()
    bits = torch.from_numpy(x.view(f"i{x.itemsize}")).cuda()
    return bits.view(torch.bfloat16) if x.dtype == np.dtype("bfloat16") else bits


def calls() -> Iterator[Call]:
    shapes: dict[str, list[Any]] = {
        "gemm": GEMM_SHAPES,
        "transpose": TRANSPOSE_SHAPES,
        "probe": PROBE_SHAPES,
    }
    for op, of_op in shapes.items():
        for row in smemkern.variants(op):
            about = table()[op, row.name]
            for params in parameter_sets(row):
                for dtype in row.dtypes:
                    for shape in SKINNY_SHAPES if about.skinny else of_op:
                        yield Call(op, row.name, params, dtype, shape)
            for dtype in row.dtypes if about.rate or about.wgmma or about.ozaki else ():
                for shape in ORDER_SHAPES:
                    for order in ORDERS:
                        yield Call(op, row.name, {}, dtype, shape, order)
            for dtype in row.dtypes if about.rate else ():
                yield Call(op, row.name, {"split": SPLIT}, dtype, SPLIT_SHAPE)


SASS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"

REQUESTS = "smsp__sass_inst_executed_op_{}.sum"

# The compared counts. LDGSTS, the instruction of cp.async, counts as a global load. If no lane of
# it is active, the counter shows 32 wavefronts, although no data is moved.
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
LDMATRIX = {
    "ldmatrix requests": {REQUESTS.format("ldsm"): 1},
    "ldmatrix wavefronts": {SASS.format("ldsm"): 1},
}


def shared(trace: smemkern.Trace, field: str, *ops: str) -> int:
    return sum(getattr(row, field) for row in trace.shared if row.op in ops)


def global_(trace: smemkern.Trace, field: str, *ops: str) -> int:
    return sum(getattr(row, field) for row in trace.global_ if row.op in ops)


def counts(trace: smemkern.Trace) -> dict[str, int]:
    """The predicted values of COUNTERS for a call."""
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


def predicted(call: Call) -> dict[str, int]:
    trace = call.trace()
    ldmatrix = {
        f"ldmatrix {what}": shared(trace, f"machine_{what}", "ldmatrix")
        for what in ("requests", "wavefronts")
    }
    return counts(trace) | ldmatrix | engine.counts(trace)


VARIANTS = Part(
    calls=calls,
    name=str,
    group=lambda call: f"{call.op} {call.variant}",
    run=Call.run,
    launches=Call.launches,
    predicted=predicted,
    counters={**COUNTERS, **LDMATRIX, **engine.COUNTERS},
)
