"""Bulk copies and wgmma, drawn from a seed.

A copy loads bytes, or a box of a matrix, into shared memory and stores them elsewhere; its counts
are sectors of global memory. The counts of wgmma are wavefronts of the operands that it reads from
shared memory through descriptors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from matrix_wgmma import Wgmma, wgmma_cases

import smemkern

from .parts import Part

COPIES = 40  # of each kind
PRODUCTS = 60
WINDOW = 8192

COUNTERS = {
    "wgmma wavefronts": {"sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum": 1},
    "bulk load sectors": {"l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum": 1},
    "bulk store sectors": {"l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum": 1},
}


def counts(trace: smemkern.Trace) -> dict[str, int]:
    bulk = [row for row in trace.global_ if row.op == "bulk"]
    return {
        "wgmma wavefronts": sum(r.wavefronts for r in trace.shared if r.op == "matrix"),
        "bulk load sectors": sum(row.sectors for row in bulk if row.direction == "read"),
        "bulk store sectors": sum(row.sectors for row in bulk if row.direction == "write"),
    }


class Call(Protocol):
    def launch(self) -> tuple[smemkern.Kernel, int, list[Any]]:
        """(kernel, threads of its only block, arguments)."""


PTX = """
.version 8.4
.target sm_90a
.address_size 64
.visible .entry copy({parameters})
{{
    .reg .pred %done; .reg .b32 %tile, %bar, %bytes, %x, %y, %u, %v; .reg .b64 %from, %to;
    .shared .align 1024 .b8 window[{window}];
    .shared .align 8 .b64 arrived;
    mov.u32 %tile, window;
    mov.u32 %bar, arrived;
    ld.param.u32 %bytes, [bytes];
    ld.param.u32 %x, [x];
    ld.param.u32 %y, [y];
    ld.param.u32 %u, [u];
    ld.param.u32 %v, [v];
    {addresses}
    mbarrier.init.shared.b64 [%bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %bytes;
    {load}
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0;
    @!%done bra AGAIN;
    {store}
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}}
"""
PLACES = ", ".join(f".param .u32 {name}" for name in ("bytes", "x", "y", "u", "v"))
BULK = PTX.format(
    parameters=".param .u64 from, .param .u64 to, " + PLACES,
    window=WINDOW,
    addresses="""ld.param.u64 %from, [from];
    ld.param.u64 %to, [to];
    cvta.to.global.u64 %from, %from;
    cvta.to.global.u64 %to, %to;
    {.reg .b64 %at; cvt.u64.u32 %at, %x; add.u64 %from, %from, %at;
    cvt.u64.u32 %at, %u; add.u64 %to, %to, %at;}""",
    load="""cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
        [%tile], [%from], %bytes, [%bar];""",
    store="cp.async.bulk.global.shared::cta.bulk_group [%to], [%tile], %bytes;",
)
TENSOR = PTX.format(
    parameters=".param .align 64 .b8 from[128], .param .align 64 .b8 to[128], " + PLACES,
    window=WINDOW,
    addresses="mov.b64 %from, from; mov.b64 %to, to; cvta.param.u64 %from, %from; "
    "cvta.param.u64 %to, %to;",
    load="""cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%tile], [%from, {%x, %y}], [%bar];""",
    store="cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%to, {%u, %v}], [%tile];",
)


@cache
def kernel(ptx: str, name: str) -> smemkern.Kernel:
    return smemkern.Kernel(ptx, name)


@dataclass(frozen=True)
class Bulk:
    bytes: int
    source: int
    target: int

    def launch(self) -> tuple[smemkern.Kernel, int, list[Any]]:
        given, out = np.zeros((2, 2 * WINDOW), np.uint8)
        places = [self.bytes, self.source, 0, self.target, 0]
        return kernel(BULK, "copy"), 1, [given, out, *places]

    def __str__(self) -> str:
        return f"bulk {self.bytes} from {self.source} to {self.target}"


@dataclass(frozen=True)
class Tensor:
    shape: tuple[int, int]  # of float32
    box: tuple[int, int]
    source: tuple[int, int]  # row, column
    target: tuple[int, int]

    def launch(self) -> tuple[smemkern.Kernel, int, list[Any]]:
        maps = [smemkern.TensorMap(np.zeros(self.shape, np.float32), self.box) for _ in range(2)]
        places = [4 * self.box[0] * self.box[1], *self.source[::-1], *self.target[::-1]]
        return kernel(TENSOR, "copy"), 1, [*maps, *places]

    def __str__(self) -> str:
        shape, box = (f"{a}x{b}" for a, b in (self.shape, self.box))
        return f"box {box} of {shape} from {self.source} to {self.target}"


@dataclass(frozen=True)
class Product:
    form: Wgmma

    def launch(self) -> tuple[smemkern.Kernel, int, list[Any]]:
        out = np.zeros((self.form.d_count, 128), np.uint32)
        inputs = self.form.inputs("near")
        arrays = [*inputs[:3], out, *inputs[3:]]
        return smemkern.Kernel(self.form.ptx(), "matrix"), 128, arrays

    def __str__(self) -> str:
        return str(self.form)


def calls() -> Iterator[Call]:
    rng = np.random.default_rng(1)
    for _ in range(COPIES):
        pieces = int(rng.integers(1, WINDOW // 16)) >> int(rng.integers(0, 7))
        source, target = (16 * rng.integers(0, WINDOW // 16, 2)).tolist()
        yield Bulk(16 * max(pieces, 1), source, target)
    for _ in range(COPIES):
        shape = (int(rng.integers(1, 70)), 4 * int(rng.integers(1, 50)))
        box = (int(rng.integers(1, 17)), 4 * int(rng.integers(1, 17)))
        # Loads may begin before the start of the matrix; loads and stores may end past its end.
        source = (int(rng.integers(-8, shape[0])), 4 * int(rng.integers(-4, shape[1] // 4)))
        target = (int(rng.integers(0, shape[0])), 4 * int(rng.integers(0, shape[1] // 4)))
        yield Tensor(shape, box, source, target)
    every = wgmma_cases()
    for k in np.sort(rng.permutation(len(every))[:PRODUCTS]):
        yield Product(every[k])


def run(call: Call, device: str) -> None:
    k, threads, args = call.launch()
    k(1, threads, *args, device=device)


def predicted(call: Call) -> dict[str, int]:
    k, threads, args = call.launch()
    return counts(smemkern.trace(k, 1, threads, *args, hazards=False))


ENGINE = Part(
    calls=calls,
    name=str,
    group=lambda call: type(call).__name__.lower(),
    run=run,
    launches=lambda call: 1,
    predicted=predicted,
    counters=COUNTERS,
)
