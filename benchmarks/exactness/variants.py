"""The shipped variants, on whole tiles and on odd shapes: what is launched, and what is predicted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rows import parameter_sets

import smemkern

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


def calls() -> Iterator[Call]:
    shapes: dict[str, list[Any]] = {
        "gemm": GEMM_SHAPES,
        "transpose": TRANSPOSE_SHAPES,
        "probe": PROBE_SHAPES,
    }
    for op, of_op in shapes.items():
        for row in smemkern.variants(op):
            for params in parameter_sets(row):
                for dtype in row.dtypes:
                    for shape in of_op:
                        yield Call(op, row.name, params, dtype, shape)
