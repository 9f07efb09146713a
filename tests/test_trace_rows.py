"""What a trace says of each line: worst requests, callers, bytes, operations; partial traces."""

import numpy as np
import pytest

import smemkern

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<6>;
    .reg .pred %p;
    .reg .f32 %f<4>;
    .shared .align 16 .b8 tile[8192];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    .loc 1 10 3
    .loc 2 20 5, function_name $L0, inlined_at 1 10 3
    .loc 3 30 7, function_name $L0, inlined_at 2 20 5
    mov.u32 %r3, tile;
    mad.lo.s32 %r3, %r1, 128, %r3;
    st.shared.u32 [%r3], %r1;
    .loc 1 11 1
    setp.lt.u32 %p, %r1, 8;
    mov.f32 %f1, 0f3F800000;
    @%p fma.rn.f32 %f2, %f1, %f1, %f1;
    @%p st.shared.f32 [%r3], %f2;
    mul.wide.u32 %rd2, %r2, 128;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd2, %rd3;
    add.s64 %rd2, %rd2, %rd1;
    st.global.u32 [%rd2], %r2;
    ret;
}
.file 1 "main.cu"
.file 2 "middle.cuh"
.file 3 "deep.cuh"
"""


def run(blocks=None, grid=4, **kw):
    out = np.full(32 * 64, -1, np.int32)
    return smemkern.trace(smemkern.Kernel(PTX, "k"), grid, 32, out, blocks=blocks, **kw), out


def test_callers_of_inlined_code():
    t, _ = run()
    deep, main = t.shared
    assert (deep.file, deep.line) == ("deep.cuh", 30)
    assert deep.callers == (("middle.cuh", 20), ("main.cu", 10))
    assert (main.file, main.line, main.callers) == ("main.cu", 11, ())
    assert "deep.cuh:30 < middle.cuh:20 < main.cu:10" in repr(t)


def test_the_worst_request_names_its_block_and_warp():
    ptx = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b32 %x, %y, %z, %n, %i, %a; .reg .pred %p<2>; .shared .b32 tile[1024];
    mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z;
    mad.lo.u32 %n, %y, 2, %x; mad.lo.u32 %n, %z, 6, %n; setp.eq.u32 %p0, %n, 19;
    mov.u32 %i, %tid.x; setp.ge.and.u32 %p0, %i, 32, %p0;
    and.b32 %i, %i, 31; selp.u32 %n, 128, 4, %p0; mov.u32 %a, tile; mad.lo.u32 %a, %i, %n, %a;
    ld.shared.u32 %x, [%a];
    ret;
}
"""
    t = smemkern.trace(smemkern.Kernel(ptx, "k"), (2, 3, 4), 64, np.zeros(1, "u4"), hazards=False)
    worst = t.shared[0].worst_request
    assert (worst.cost, worst.block, worst.warp) == (32, (1, 0, 3), 1)


def test_worst_request():
    t, _ = run()
    deep, main = (row.worst_request for row in t.shared)
    assert deep.cost == 32
    assert deep.active.all()
    np.testing.assert_array_equal(deep.addresses, 128 * np.arange(32))
    assert (deep.banks == 0).all()
    assert (deep.op, deep.width, deep.block, deep.warp) == ("store", 4, (0, 0, 0), 0)
    [(_group, bank, words)] = deep.conflicts
    assert bank == 0
    assert len(words) == 32
    assert "bank 0, 32 ways" in repr(deep)
    assert main.active.sum() == main.cost == 8
    assert (main.banks[8:] == -1).all()
    assert "worst_request" not in repr(t.shared[0])


@pytest.mark.parametrize("width", [8, 16])
def test_groups_of_wide_requests_add_up_to_the_cost(width, rng):
    """Words that a request's groups wait for, against the counter."""
    a = rng.standard_normal((64, 64))
    for variant in ("conflicted", "vectorized", "register_tiled"):
        for row in smemkern.trace("gemm", a, a, variant=variant).shared:
            request = row.worst_request
            parts = [
                request.turns[group].max() + 1
                for group in map(list, request.groups)
                if request.active[group].any()
            ]
            assert sum(parts) == row.worst == request.cost


def test_bytes_and_operations():
    t, _ = run()
    assert t.flops == 4 * 8 * 2  # only lanes whose guard holds
    assert t.thread_instructions["fma.rn.f32"] == 4 * 8
    assert t.instructions["fma.rn.f32"] == 4
    moved = t.bytes_moved
    assert moved["shared_written"] == 4 * (32 + 8) * 4
    assert moved["shared_read"] == moved["global_read"] == 0
    assert moved["global_written"] == 4 * 128
    assert t.arithmetic_intensity == 64 / 512


def test_gemm_operations(rng):
    a, b = rng.standard_normal((2, 64, 64)).astype(np.float32)
    t = smemkern.trace("gemm", a, b, variant="tiled")
    assert t.flops >= 2 * 64**3
    assert t.flops < 2.1 * 64**3 + 10 * 64**2
    assert t.launch.variant == "tiled"
    assert t.launch.grids == ((4, 1, 1),)
    assert t.launch.shared_bytes > 0


def totals(t):
    return {
        (row.file, row.line, row.op, row.width, row.callers): np.array(
            [row.requests, row[4], row.ideal, row.bytes]
        )
        for row in (*t.shared, *t.global_)
    }, t.instructions


@pytest.mark.parametrize("variant", ["register_tiled", "conflicted", "pipelined"])
def test_the_blocks_of_a_partition_add_up(rng, variant):
    a = rng.standard_normal((3, 150, 70)).astype(np.float32)
    b = rng.standard_normal((3, 70, 130)).astype(np.float32)

    def traced(blocks=None):
        return smemkern.trace("gemm", a, b, variant=variant, blocks=blocks, hazards=False)

    whole = traced()
    n = whole.grid_blocks
    assert whole.blocks == n > 3
    assert whole.coverage is None
    parts = rng.integers(0, 3, n)
    parts[:3] = 0, 1, 2
    traces = [traced(np.flatnonzero(parts == part)) for part in range(3)]
    assert sum(t.blocks for t in traces) == n
    sums, opcodes = {}, {}
    for t in traces:
        assert t.result is None
        assert t.coverage == f"traced {t.blocks} of {n} blocks"
        sites, instructions = totals(t)
        for key, counts in sites.items():
            sums[key] = sums.get(key, 0) + counts
        for opcode, count in instructions.items():
            opcodes[opcode] = opcodes.get(opcode, 0) + count
    expected, instructions = totals(whole)
    assert expected.keys() == sums.keys()
    for key, counts in expected.items():
        np.testing.assert_array_equal(counts, sums[key])
    assert opcodes == instructions
    assert sum(t.flops for t in traces) == whole.flops
    assert sum(t.barriers for t in traces) == whole.barriers


@pytest.mark.parametrize(
    ("blocks", "ran"),
    [
        (2, [0, 1]),
        (99, range(12)),
        (slice(1, None, 5), [1, 6, 11]),
        (slice(None, None, -6), [5, 11]),
        (range(3, 5), [3, 4]),
        ([7, 2, 7], [2, 7]),
        ((1, 0, 0), [1]),
        (np.array([3]), [3]),
    ],
)
def test_which_blocks_run(blocks, ran):
    t, out = run(blocks, grid=12)
    written = np.flatnonzero((out.reshape(-1, 32) >= 0).all(1))
    np.testing.assert_array_equal(written, list(ran))
    assert t.blocks == len(ran)
    assert t.grid_blocks == 12


@pytest.mark.parametrize("blocks", [0, -1, [], [4], [-1], (4, 0, 0), (0, 0), slice(4, 9)])
def test_blocks_that_do_not_exist(blocks):
    with pytest.raises(ValueError, match="blocks"):
        run(blocks)
    with pytest.raises(TypeError, match="blocks"):
        run(["first"])


def test_worst_requests_do_not_depend_on_the_run(rng):
    a = rng.standard_normal((128, 128)).astype(np.float32)
    first, again = (smemkern.trace("gemm", a, a, variant="register_tiled") for _ in range(2))
    for x, y in zip(first.shared, again.shared, strict=True):
        assert repr(x.worst_request) == repr(y.worst_request)
        np.testing.assert_array_equal(x.worst_request.addresses, y.worst_request.addresses)


def test_to_pandas():
    pytest.importorskip("pandas")
    t, _ = run()
    frame = t.to_pandas()
    assert list(frame["space"]) == ["shared", "shared", "global"]
    assert frame["cost"].sum() == t.shared_wavefronts + 16
    assert len(smemkern.trace("gemm", np.ones((0, 3)), np.ones((3, 0))).to_pandas()) == 0


def test_source_of_a_kernel():
    assert smemkern.Kernel(PTX, "k").source == PTX
