"""Shuffles from lanes that do not take part, against CUDA's description of the source lane."""

from __future__ import annotations

import random
import secrets

import numpy as np
import pytest

import smemkern

KERNEL = """.version VERSION
.target TARGET
.address_size 64
.visible .entry k(.param .u64 x)
{
    .reg .pred %p;
    .reg .b32 %t, %lane, %value, %mask;
    .reg .b64 %to;
    ld.param.u64 %to, [x];
    mov.u32 %t, %tid.x;
    mov.u32 %lane, %laneid;
    mad.wide.u32 %to, %t, 4, %to;
    mov.u32 %value, 0;
    BODY
END:
    st.global.u32 [%to], %value;
    ret;
}
"""
LEAVES = ("ret", "bra END")  # lanes that do not take part exit, or wait for nothing at the end


def hazards(body: str, threads: int, version: str = "8.3", target: str = "sm_90"):
    text = KERNEL.replace("BODY", body).replace("VERSION", version).replace("TARGET", target)
    kernel = smemkern.Kernel(text, "k")
    trace = smemkern.trace(kernel, 1, threads, np.zeros(threads, "u4"))
    assert all(row.kind == "shuffle-outside" for row in trace.benign)
    return [*trace.hazards, *trace.benign]


def source(mode: str, lane: int, delta: int, width: int) -> int:
    """The lane that __shfl_*_sync(mask, value, delta, width) reads."""
    first = lane // width * width
    if mode == "down":
        return lane + delta if lane - first + delta < width else lane
    if mode == "up":
        return lane - delta if lane - first >= delta else lane
    if mode == "bfly":
        return lane ^ delta if (lane ^ delta) < first + width else lane
    return first + delta % width


@pytest.mark.parametrize("mode", ["down", "up", "bfly", "idx"])
@pytest.mark.parametrize("leave", LEAVES)
def test_absent_lanes(mode, leave):
    seed = secrets.randbits(32)
    rng = random.Random(seed)
    for _ in range(12):
        threads, width = rng.randint(1, 64), rng.choice([2, 4, 8, 16, 32])
        delta, mask = rng.randrange(32), rng.choice([0xFFFFFFFF, rng.getrandbits(32) | 1])
        stay = rng.choice([0xFFFFFFFF, rng.getrandbits(32)])
        clamp = (32 - width) << 8 | (0 if mode == "up" else 31)
        # Only lanes of `mask` may shuffle; those of `stay` do. The others of `mask` have to exit.
        runs = mask & stay if leave == "ret" else mask
        body = f"""
        shr.u32 %value, {runs}, %lane; and.b32 %value, %value, 1;
        setp.eq.u32 %p, %value, 0;
        @%p {leave};
        shfl.sync.{mode}.b32 %value, %t, {delta}, {clamp}, {mask};"""
        expected: dict[str, list[tuple[int, int, str]]] = {}
        for t in range(threads):
            lane, present = t % 32, min(32, threads - t // 32 * 32)
            read = source(mode, lane, delta, width)
            if not runs >> lane & 1 or (runs >> read & 1 and read < present):
                continue
            reason = "has exited" if leave == "ret" else "does not take part"
            reason = reason if read < present else "the block does not have"
            kind = "shuffle" if mask >> read & 1 else "shuffle-outside"
            reason = reason if mask >> read & 1 else "is not in the mask"
            expected.setdefault(kind, []).append((t, read, reason))
        found = hazards(body, threads)
        case = f"seed {seed}: {threads} threads, width {width}, {body}"
        counts = {kind: len(lanes) for kind, lanes in expected.items()}
        assert {row.kind: row.count for row in found} == counts, case
        for row in found:
            t, read, reason = expected[row.kind][0]
            assert row.threads == ((t, 0, 0),), case
            assert f"(lane {t % 32}) shuffles from lane {read} of its warp, which " in row.message
            assert reason in row.message, case


HALVES = """
    setp.lt.u32 %p, %lane, 16;
    selp.b32 %mask, 0xffff, 0xffff0000, %p;
    shfl.sync.bfly.b32 %value, %t, DELTA, 31, %mask;"""


@pytest.mark.parametrize(("delta", "count"), [(8, 0), (16, 32)])
def test_another_group_of_lanes(delta, count):
    """Lanes outside the reader's own mask do not take part, even if they run the instruction."""
    found = hazards(HALVES.replace("DELTA", str(delta)), 32)
    assert {row.kind: row.count for row in found} == ({"shuffle-outside": count} if count else {})


def test_lanes_that_arrive_by_two_instructions():
    body = """
    setp.lt.u32 %p, %lane, 16;
    @%p bra LOW;
    shfl.sync.bfly.b32 %value, %t, 16, 31, 0xffffffff;
    bra END;
LOW:
    shfl.sync.bfly.b32 %value, %t, 16, 31, 0xffffffff;"""
    assert hazards(body, 32) == []


@pytest.mark.parametrize(("lanes", "count"), [(16, 8), (32, 0)])
def test_shuffles_without_sync(lanes, count):
    """They read lanes that run them at the same time."""
    body = f"""
    setp.ge.u32 %p, %lane, {lanes};
    @%p bra END;
    shfl.down.b32 %value, %t, 8, 31;"""
    found = hazards(body, 32, version="6.0", target="sm_60")
    assert [row.count for row in found] == ([count] if count else [])


def test_a_reduction_in_a_small_block_raises():
    source = """extern "C" __global__ void k(float *x) {
        float sum = x[threadIdx.x];
        for (int d = 16; d; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
        if (threadIdx.x == 0) x[0] = sum;
    }"""
    kernel = smemkern.Kernel(source, "k", check=True)
    x = np.ones(32, "f4")
    kernel(1, 32, x)
    assert x[0] == 32
    with pytest.raises(
        smemkern.HazardError, match=r"kernel.cu:3: .* shuffles from lane 16 .* undefined"
    ):
        kernel(1, 16, np.ones(16, "f4"))


def test_a_reduction_by_half_a_warp_does_not_raise():
    """Its upper lanes read lanes outside the mask, and nothing uses what they read."""
    source = """extern "C" __global__ void k(float *x) {
        float sum = x[threadIdx.x] + x[threadIdx.x + 16];
        if (threadIdx.x < 16)
            for (int d = 8; d; d /= 2) sum += __shfl_down_sync(0xffff, sum, d);
        if (threadIdx.x == 0) x[0] = sum;
    }"""
    x = np.ones(48, "f4")
    smemkern.Kernel(source, "k", check=True)(1, 32, x, device="emu")
    assert x[0] == 32
    trace = smemkern.trace(smemkern.Kernel(source, "k"), 1, 32, np.ones(48, "f4"))
    assert [row.kind for row in trace.benign] == ["shuffle-outside"]
