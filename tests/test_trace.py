"""What the emulator counts: the claims of the ladder, as exact integers."""

import math

import numpy as np
import pytest

import smemkern
from checks import assert_gemm, assert_same_bits

N = 64


@pytest.fixture
def ab(rng):
    return rng.standard_normal((2, N, N)).astype(np.float32)


def traced(ab, variant, **params):
    return smemkern.trace("gemm", *ab, variant=variant, **params)


@pytest.mark.parametrize("variant", ["padded", "swizzle"])
def test_no_conflicts(ab, variant):
    t = traced(ab, variant)
    assert t.shared
    assert t.conflict_factor == 1.0
    assert all(row.wavefronts == row.ideal for row in t.shared)


def test_conflicted_pays_32_wavefronts_for_a_column(ab):
    t = traced(ab, "conflicted")
    column = max(t.shared, key=lambda row: row.worst)
    assert column.worst == 32
    assert column.wavefronts == 32 * column.requests
    assert t.conflict_factor > 2


def test_padded_and_swizzle_ask_for_the_same_as_conflicted(ab):
    requests = {traced(ab, v).shared_requests for v in ("conflicted", "padded", "swizzle")}
    assert len(requests) == 1


def test_tiled_has_no_conflict_with_or_without_a_pad(ab):
    """The textbook adds the column here, where it changes nothing."""
    plain, padded = (traced(ab, "tiled", tile=32, pad=pad) for pad in (0, 1))
    assert plain.conflict_factor == padded.conflict_factor == 1.0


def test_tiled_counts(ab):
    """Each of the N^2/32 warps stores 2 words a tile and reads 2 words a step."""
    t = traced(ab, "tiled", tile=32)
    warps = N * N // 32
    stores = sum(row.requests for row in t.shared if row.op == "store")
    loads = sum(row.requests for row in t.shared if row.op == "load")
    assert stores == warps * 2 * (N // 32)
    assert loads == warps * 2 * N
    assert sum(row.requests for row in t.global_ if row.op == "store") == warps
    assert t.barriers == warps * 2 * (N // 32)


def test_coalesced_moves_fewer_sectors_than_naive(ab):
    naive, coalesced = (
        sum(row.sectors for row in traced(ab, variant).global_)
        for variant in ("naive", "coalesced")
    )
    assert coalesced * 3 < naive


def test_fused_multiply_adds(ab):
    for variant in ("naive", "tiled", "swizzle"):
        assert traced(ab, variant).instructions["fma.rn.f32"] >= N**3 // 32


def test_instructions_add_up(ab):
    t = traced(ab, "register_tiled")
    assert sum(t.instructions.values()) == t.warp_instructions > 0


def test_naive_has_no_shared_memory(ab):
    t = traced(ab, "naive")
    assert t.shared == ()
    assert math.isnan(t.conflict_factor)


def test_result_is_the_operations_own(ab, rng):
    assert_gemm(traced(ab, "swizzle").result, *ab)
    a = rng.standard_normal((40, 50))
    assert_same_bits(smemkern.trace("transpose", a).result, a.T)


@pytest.mark.parametrize("variant", ["padded", "swizzle"])
def test_transpose_without_conflicts(rng, variant):
    a = rng.standard_normal((64, 64)).astype(np.float32)
    assert smemkern.trace("transpose", a, variant=variant).conflict_factor == 1.0
    worst = max(row.worst for row in smemkern.trace("transpose", a, variant="tiled").shared)
    assert worst == 32


def test_counts_do_not_depend_on_the_run(ab):
    first, second = (repr(traced(ab, "vectorized")) for _ in range(2))
    assert first == second


def test_lines_are_those_of_the_source(ab):
    [row] = [r for r in smemkern.variants("gemm") if r.name == "conflicted"]
    lines = row.source.splitlines()
    for site in traced(ab, "conflicted").shared:
        assert site.file == "gemm_conflicted.cu"
        assert "[" in lines[site.line - 1]


def test_repr_is_a_table(ab):
    shown = repr(traced(ab, "conflicted"))
    for word in ("wavefronts", "sectors", "32.00", "warp instructions", "gemm_conflicted.cu:"):
        assert word in shown


def test_measure(ab, device):
    result, times = smemkern._measure("gemm", *ab, variant="tiled", device=device, repeat=3)
    assert_gemm(result, *ab)
    assert len(times) == 3
    assert all(0 < t < 60_000 for t in times)


def test_refused(ab):
    with pytest.raises(ValueError, match="counts on the emulator"):
        smemkern.trace("gemm", *ab, device="cuda")
    with pytest.raises(ValueError, match="no operation 'gem'"):
        smemkern.trace("gem", *ab)
    with pytest.raises(TypeError, match="Kernel"):
        smemkern.trace(3, *ab)
    with pytest.raises(ValueError, match="beta = 0"):
        smemkern._measure("gemm", *ab, out=ab[0].copy(), beta=1.0)


def test_shared_memory_of_a_block(ab):
    """Of all launches the most: static and dynamic."""
    assert traced(ab, "tiled", tile=32).launch.shared_bytes == 2 * 4 * 32 * 32
    assert traced(ab, "naive").launch.shared_bytes == 0
    ptx = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{ .reg .b32 %r; .shared .b32 s[25]; ld.shared.u32 %r, [s]; ret; }
"""
    kernel = smemkern.Kernel(ptx, "k")
    t = smemkern.trace(kernel, 1, 32, np.zeros(1, "u4"), shared_bytes=300, hazards=False)
    assert t.launch.shared_bytes == 112 + 300  # dynamic memory begins at a multiple of 16


ACCESSES = (
    "ld.shared.u32 %r4, [%r1];",
    "ld.shared.v2.u32 {%r4, %r5}, [%r1];",
    "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1];",
    "st.shared.u32 [%r1], %r0;",
    "st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0};",
    "atom.shared.add.u32 %r4, [%r1], 1;",
    "atom.shared.exch.b64 %d1, [%r1], %d0;",
    "ld.global.u32 %r4, [%d2];",
    "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d2];",
    "st.global.v2.u32 [%d2], {%r0, %r0};",
)


def at_random_places(accesses, offsets, room):
    ptx = f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 offsets, .param .u64 room)
{{
.reg .b32 %r<8>; .reg .b64 %d<4>; .shared .align 16 .b8 tile[4096];
ld.param.u64 %d0, [offsets]; ld.param.u64 %d2, [room];
mov.u32 %r0, %tid.x; mad.wide.u32 %d0, %r0, 4, %d0; ld.global.u32 %r2, [%d0];
mov.u32 %r1, tile; add.u32 %r1, %r1, %r2; mad.wide.u32 %d2, %r2, 1, %d2;
{" ".join(accesses)}
ret;
}}
"""
    t = smemkern.trace(smemkern.Kernel(ptx, "k"), 1, len(offsets), offsets, room)
    return [
        (
            row.op,
            row.width,
            row.requests,
            row.ideal,
            getattr(row, "wavefronts", None) or row.sectors,
        )
        for row in (*t.shared, *t.global_)
    ]


def test_an_access_costs_the_same_beside_others(rng):
    """Of several widths and kinds, all at the same places; each is also counted alone."""
    room = np.zeros(4096, "u1")
    for lanes in (32, 32, 32, 21):
        offsets = (16 * rng.integers(0, 255, lanes)).astype("u4")
        together = at_random_places(ACCESSES, offsets, room)
        first = at_random_places([], offsets, room)
        alone = [row for a in ACCESSES for row in at_random_places([a], offsets, room)]
        assert sorted(together) == sorted([*first, *(row for row in alone if row not in first)])
        assert len({row[4] for row in alone}) > 3
