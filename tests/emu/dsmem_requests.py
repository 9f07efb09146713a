"""Kernels whose first block accesses the shared memory of the blocks of its cluster.

Block 0 runs one instruction `repeats` times, by one warp, on addresses and ranks from a table. So
the counts of a launch with 64 repeats, less those of a launch with none, are 64 times the counts
of the instruction. tests/emu/dsmem_h200.json has what Nsight Compute counted
(validation/dsmem.py).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

WINDOW = 16384
REPEATS = 64
KEY = 0x1E3779B9

ASYNC = "shared::cluster.mbarrier::complete_tx::bytes"
# name: bytes per lane, instruction, its results
INSTRUCTIONS = {
    "ld8": (1, "ld.shared::cluster.u8 %h0, [%a];", ["%h0"]),
    "ld32": (4, "ld.shared::cluster.u32 %v0, [%a];", ["%v0"]),
    "ld64": (8, "ld.shared::cluster.u64 %w0, [%a];", ["%w0"]),
    "ldv2": (8, "ld.shared::cluster.v2.u32 {%v0, %v1}, [%a];", ["%v0", "%v1"]),
    "ld128": (
        16,
        "ld.shared::cluster.v4.u32 {%v0, %v1, %v2, %v3}, [%a];",
        ["%v0", "%v1", "%v2", "%v3"],
    ),
    "st32": (4, "st.shared::cluster.u32 [%a], %v0;", []),
    "st64": (8, "st.shared::cluster.u64 [%a], %w0;", []),
    "st128": (16, "st.shared::cluster.v4.u32 [%a], {%v0, %v1, %v2, %v3};", []),
    "atom_add32": (4, "atom.shared::cluster.add.u32 %v0, [%a], %key;", ["%v0"]),
    "red_add32": (4, "red.shared::cluster.add.u32 [%a], %key;", []),
    "red_one32": (4, "red.shared::cluster.add.u32 [%a], 1;", []),
    "atom_cas32": (4, "atom.shared::cluster.cas.b32 %v0, [%a], %key, %v1;", ["%v0"]),
    "atom_exch64": (8, "atom.shared::cluster.exch.b64 %w0, [%a], %w1;", ["%w0"]),
    "atom_exch32": (4, "atom.shared::cluster.exch.b32 %v0, [%a], %key;", ["%v0"]),
    "atom_min32": (4, "atom.shared::cluster.min.u32 %v0, [%a], %key;", ["%v0"]),
    "atom_cas64": (8, "atom.shared::cluster.cas.b64 %w0, [%a], %w0, %w1;", ["%w0"]),
    "atom_add64": (8, "atom.shared::cluster.add.u64 %w0, [%a], %w1;", ["%w0"]),
    "red_add_f32": (4, "red.shared::cluster.add.f32 [%a], 0f3F800000;", []),
    "st_async32": (4, f"st.async.weak.{ASYNC}.u32 [%a], %v0, [%bar];", []),
    "st_async64": (8, f"st.async.weak.{ASYNC}.u64 [%a], %w0, [%bar];", []),
    "st_async128": (16, f"st.async.weak.{ASYNC}.v4.u32 [%a], {{%v0, %v1, %v2, %v3}}, [%bar];", []),
    "red_async32": (4, f"red.async.relaxed.cluster.{ASYNC}.add.u32 [%a], %v0, [%bar];", []),
}
IN_FOURS = ("ld32", "ld64", "ld128", "st32", "st128", "red_add32", "st_async32", "st_async128")
NO_LANE = -1  # rank of a lane that does not access


@dataclass(frozen=True)
class Case:
    instruction: str
    blocks: int  # of the cluster
    pattern: str
    offsets: tuple[int, ...]  # by lane
    ranks: tuple[int, ...]  # NO_LANE: the lane does not execute the instruction

    def __str__(self) -> str:
        return f"{self.instruction}_c{self.blocks} {self.pattern}"

    @property
    def is_async(self) -> bool:
        return "async" in self.instruction

    @property
    def is_atomic(self) -> bool:
        return not self.is_async and self.instruction.startswith(("atom", "red"))

    @property
    def active_ranks(self) -> list[int]:
        return [rank for rank in self.ranks if rank != NO_LANE]

    def arguments(self, repeats: int) -> list:
        table = np.zeros(80, np.int32)
        table[:32], table[32:64] = self.offsets, self.ranks
        if self.is_async:  # the bytes that each block receives per repeat
            width = INSTRUCTIONS[self.instruction][0]
            table[64:] = width * np.bincount(self.active_ranks, minlength=16)
        return [table, repeats, 0, KEY]


def _use(register: str) -> str:
    return {
        "v": f"xor.b32 %acc, %acc, {register};",
        "w": f"xor.b64 %wide, %wide, {register};",
        "h": f"xor.b16 %half, %half, {register};",
    }[register[1]]


def ptx(instruction: str, blocks: int) -> str:
    """`zero` is 0 only at run time, so ptxas cannot move the instruction out of the loop."""
    _, body, results = INSTRUCTIONS[instruction]
    return f""".version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 table, .param .u32 repeats, .param .u32 nothing, .param .u32 key)
 .explicitcluster .reqnctapercluster {blocks}, 1, 1
{{
    .reg .pred %more, %p; .reg .b16 %half, %h<2>;
    .reg .b32 %a, %n, %off, %rank, %zero, %acc, %key, %low, %high, %lane, %bar, %me, %bytes;
    .reg .b32 %v<4>; .reg .b64 %row, %at, %wide, %w<2>;
    .shared .align 1024 .b8 window[{WINDOW}];
    .shared .align 8 .b64 barrier;
    ld.param.u64 %row, [table]; cvta.to.global.u64 %row, %row;
    ld.param.u32 %zero, [nothing]; ld.param.u32 %n, [repeats]; ld.param.u32 %key, [key];
    mov.u32 %lane, %tid.x; mov.u32 %me, %cluster_ctarank;
    mad.wide.u32 %at, %lane, 4, %row;
    ld.global.s32 %off, [%at]; ld.global.u32 %rank, [%at+128];
    mad.wide.u32 %at, %me, 4, %row; ld.global.u32 %bytes, [%at+256];
    mov.u32 %acc, 0; mov.u64 %wide, 0; mov.u16 %half, 0;
    add.u32 %v0, %lane, %key; add.u32 %v1, %v0, 1; add.u32 %v2, %v0, 2; add.u32 %v3, %v0, 3;
    cvt.u64.u32 %w0, %v0; cvt.u64.u32 %w1, %v1; cvt.u16.u32 %h0, %v0;
    mov.u32 %bar, barrier;
    setp.ne.u32 %p, %lane, 0;
    @%p bra READY;
    mbarrier.init.shared.b64 [%bar], 1;
    fence.mbarrier_init.release.cluster;
    mul.lo.u32 %bytes, %bytes, %n;
    mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %bytes;
READY:
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.ne.u32 %p, %me, 0;
    setp.eq.or.u32 %p, %n, 0, %p;
    setp.lt.or.s32 %p, %rank, 0, %p;
    @%p bra SKIP;
    mov.u32 %a, window; add.u32 %a, %a, %off;
    mapa.shared::cluster.u32 %a, %a, %rank;
    mapa.shared::cluster.u32 %bar, %bar, %rank;
LOOP:
    {body}
    {" ".join(map(_use, results))}
    add.u32 %a, %a, %zero;
    sub.u32 %n, %n, 1; setp.ne.u32 %more, %n, 0;
    @%more bra LOOP;
SKIP:
    bar.warp.sync 0xffffffff;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %bar, barrier;
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p, [%bar], 0;
    @!%p bra AGAIN;
    mov.b64 {{%low, %high}}, %wide; xor.b32 %acc, %acc, %low; xor.b32 %acc, %acc, %high;
    cvt.u32.u16 %low, %half; xor.b32 %acc, %acc, %low;
    setp.eq.u32 %p, %acc, %key;
    @!%p bra END;
    st.global.u32 [%at], %acc;
END:
    ret;
}}
"""


def cases() -> list[Case]:
    return [*fixed_cases(), *random_cases()]


def fixed_cases() -> Iterator[Case]:
    lanes = range(32)
    for name, (width, _, _) in INSTRUCTIONS.items():
        for blocks in (2, 4) if name in IN_FOURS else (2,):
            unit = tuple(width * lane for lane in lanes)
            patterns = {
                "unit": (unit, (1,) * 32),
                "column": (tuple(128 * lane for lane in lanes), (1,) * 32),
                "broadcast": ((0,) * 32, (1,) * 32),
                "half_ranks": (unit, tuple(int(lane < 16) for lane in lanes)),
                "alternate": (unit, tuple(lane % blocks for lane in lanes)),
            }
            for pattern, (offsets, ranks) in patterns.items():
                if blocks == 2 or pattern in ("half_ranks", "alternate"):
                    yield Case(name, blocks, pattern, offsets, ranks)


MAIN = ("ld32", "ld64", "ld128", "st32", "st64", "st128", "st_async64")
MAIN = (*MAIN, "atom_add32", "atom_cas32", "atom_exch64")
ROUNDS = 14
CLUSTERS = (2, 4, 8)
LANES = range(32)


def random_cases() -> Iterator[Case]:
    """Round by round, so that the first rounds alone have all kinds."""
    for number in range(ROUNDS):
        draw = random.Random(number)
        for name in INSTRUCTIONS:
            for blocks in CLUSTERS if name in MAIN else (draw.choice(CLUSTERS),):
                yield _random_case(draw, name, blocks, number)


def _random_case(draw: random.Random, name: str, blocks: int, number: int) -> Case:
    width = INSTRUCTIONS[name][0]
    stride = draw.choice((2, 3, 4, 5, 8, 16, 32))
    items = {
        "unit": list(LANES),
        "stride": [stride * lane for lane in LANES],
        "same": [0] * 32,
        "pairs": [lane // 2 for lane in LANES],
        "permuted": draw.sample(LANES, 32),
        "few": draw.choices(range(4), k=32),
        "words32": draw.choices(LANES, k=32),
        "words1024": draw.choices(range(1024), k=32),
    }
    ranks = {
        "one": [1] * 32,
        "cyclic": [lane % blocks for lane in LANES],
        "runs": [lane * blocks // 32 for lane in LANES],
        "random": draw.choices(range(blocks), k=32),
        "others": draw.choices(range(1, blocks), k=32),
    }
    share = draw.random()
    first = draw.randrange(32)
    masks = {
        "all": [True] * 32,
        "random": [draw.random() < share for _ in LANES],
        "from": [lane >= first for lane in LANES],
        "one": [lane == first for lane in LANES],
        "odd": [lane % 2 == 1 for lane in LANES],
    }
    kinds = [draw.choice(list(kind)) for kind in (items, ranks)]
    kinds.append(draw.choice(["all", "all", "random", *masks]))
    chosen = zip(masks[kinds[2]], ranks[kinds[1]], strict=True)
    return Case(
        name,
        blocks,
        f"{number} {'/'.join(kinds)}",
        tuple(width * item for item in items[kinds[0]]),
        tuple(rank if active else NO_LANE for active, rank in chosen),
    )
