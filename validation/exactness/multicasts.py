"""Copies to several blocks of a cluster, drawn from a seed: of bytes, and of boxes of a matrix.

Each block counts the sectors that it receives, so the counts are those of all of its receivers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import smemkern

from .engine import COUNTERS, ENGINE, counts, kernel
from .parts import Part

BYTES, BOXES = 40, 120
WINDOW = 16384
SWIZZLES = {32: "32B", 64: "64B", 128: "128B"}

PTX = """
.version 8.4
.target sm_90a
.address_size 64
.visible .entry copy({source}, .param .u32 bytes, .param .u32 x, .param .u32 y, .param .u32 mask)
{{
    .reg .pred %receives, %first, %done; .reg .b16 %mask;
    .reg .b32 %tile, %bar, %bytes, %x, %y, %ranks, %rank, %bit; .reg .b64 %from;
    .shared .align 1024 .b8 window[{window}];
    .shared .align 8 .b64 arrived;
    mov.u32 %tile, window;
    mov.u32 %bar, arrived;
    ld.param.u32 %bytes, [bytes];
    ld.param.u32 %x, [x];
    ld.param.u32 %y, [y];
    ld.param.u32 %ranks, [mask];
    {address}
    mov.u32 %rank, %cluster_ctarank;
    setp.eq.u32 %first, %rank, 0;
    shr.u32 %bit, %ranks, %rank;
    and.b32 %bit, %bit, 1;
    setp.ne.u32 %receives, %bit, 0;
    cvt.u16.u32 %mask, %ranks;
    mbarrier.init.shared.b64 [%bar], 1;
    fence.mbarrier_init.release.cluster;
    @%receives mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %bytes;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    @%first cp.async.bulk.{load};
    @!%receives bra DONE;
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0;
    @!%done bra AGAIN;
DONE:
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    ret;
}}
"""
ARRIVES = "mbarrier::complete_tx::bytes.multicast::cluster"
OF_BYTES = PTX.format(
    window=WINDOW,
    source=".param .u64 from",
    address="ld.param.u64 %from, [from]; cvta.to.global.u64 %from, %from; "
    "{.reg .b64 %at; cvt.u64.u32 %at, %x; add.u64 %from, %from, %at;}",
    load=f"shared::cluster.global.{ARRIVES} [%tile], [%from], %bytes, [%bar], %mask",
)
OF_BOXES = PTX.format(
    window=WINDOW,
    source=".param .align 64 .b8 from[128]",
    address="mov.b64 %from, from; cvta.param.u64 %from, %from;",
    load=f"tensor.2d.shared::cluster.global.tile.{ARRIVES} "
    "[%tile], [%from, {%x, %y}], [%bar], %mask",
)


@dataclass(frozen=True)
class Receivers:
    blocks: int  # of the cluster
    mask: int

    def __str__(self) -> str:
        return f"to {self.mask:#x} of {self.blocks} blocks"


@dataclass(frozen=True)
class Bytes:
    bytes: int
    source: int
    to: Receivers

    def launch(self) -> tuple[smemkern.Kernel, list[Any]]:
        given = np.zeros(2 * WINDOW, np.uint8)
        return kernel(OF_BYTES, "copy"), [given, self.bytes, self.source, 0, self.to.mask]

    def __str__(self) -> str:
        return f"bulk {self.bytes} from {self.source} {self.to}"


@dataclass(frozen=True)
class Box:
    dtype: str
    shape: tuple[int, int]
    pitch: int  # elements
    box: tuple[int, int]
    source: tuple[int, int]  # row, column
    swizzle: str | None
    to: Receivers

    def launch(self) -> tuple[smemkern.Kernel, list[Any]]:
        matrix = np.zeros((self.shape[0], self.pitch), self.dtype)[:, : self.shape[1]]
        box = smemkern.TensorMap(matrix, self.box, swizzle=self.swizzle)
        size = matrix.itemsize * self.box[0] * self.box[1]
        return kernel(OF_BOXES, "copy"), [box, size, *self.source[::-1], self.to.mask]

    def __str__(self) -> str:
        shape, box = (f"{a}x{b}" for a, b in (self.shape, self.box))
        swizzle = f", {self.swizzle} swizzle" if self.swizzle else ""
        where = f"{self.dtype} {shape}, pitch {self.pitch}, from {self.source}"
        return f"box {box} of {where}{swizzle} {self.to}"


def calls() -> Iterator[Bytes | Box]:
    rng = np.random.default_rng(3)

    def receivers() -> Receivers:
        blocks = int(rng.choice((2, 4, 8)))
        return Receivers(blocks, int(rng.integers(1, 1 << blocks)))

    for _ in range(BYTES):
        pieces = max(int(rng.integers(1, WINDOW // 16)) >> int(rng.integers(0, 10)), 1)
        yield Bytes(16 * pieces, 16 * int(rng.integers(0, WINDOW // 16)), receivers())
    for _ in range(BOXES):
        size = int(rng.choice((2, 4)))
        span = int(rng.choice([*SWIZZLES]))
        shape = (int(rng.integers(1, 90)), int(rng.integers(1, 160)))
        pitch = -(-shape[1] * size // 16) * 16 // size + int(rng.integers(0, 5)) * 16 // size
        box = (int(rng.integers(1, 65)), span // size)
        # Boxes begin before the matrix, in it, and end past it, at any 16 bytes.
        column = 16 // size * int(rng.integers(-3, -(-shape[1] * size // 16)))
        source = (int(rng.integers(-8, shape[0])), column)
        swizzle = SWIZZLES[span] if rng.integers(2) else None
        yield Box(f"f{size}", shape, pitch, box, source, swizzle, receivers())


def run(call: Bytes | Box, device: str) -> None:
    k, args = call.launch()
    k(call.to.blocks, 1, *args, device=device, cluster=call.to.blocks)


def predicted(call: Bytes | Box) -> dict[str, int]:
    k, args = call.launch()
    blocks = call.to.blocks
    said = counts(smemkern.trace(k, blocks, 1, *args, cluster=blocks, hazards=False))
    return {what: said[what] for what in MULTICASTS.counters}


MULTICASTS: Part = ENGINE._replace(
    calls=calls,
    group=lambda call: type(call).__name__.lower(),
    run=run,
    predicted=predicted,
    counters={"bulk load sectors": COUNTERS["bulk load sectors"]},
)
