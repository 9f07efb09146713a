"""Forms of operands: variables by name without a state space, sums, vectors, special registers,
votes without .sync, and parameters in registers."""

from __future__ import annotations

import random

import numpy as np
import pytest

import smemkern

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
LANES = np.arange(32, dtype="u4")


def kernel(body: str, before: str = "", head: str = HEAD) -> smemkern.Kernel:
    """%r0 is the thread; %o the address of its result."""
    return smemkern.Kernel(
        head + before + ".visible .entry k(.param .u64 out) {\n"
        ".reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %o, %w, %rd<9>; .reg .pred %p<5>;\n"
        "ld.param.u64 %o, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %w, %r0, 16;\n"
        f"add.u64 %o, %o, %w;\n{body}\nret; }}",
        "k",
    )


def run(body: str, before: str = "", threads: int = 32, head: str = HEAD, **options) -> np.ndarray:
    """The four words that each thread stores."""
    out = np.zeros((threads, 4), "u4")
    kernel(body, before, head)(1, threads, out, device="emu", **options)
    return out


# ---- generic addresses by name ----

VARIABLES = {
    "shared": ".shared .align 16 .b32 s[32];",
    "global": ".global .align 16 .b32 s[32];",
}


@pytest.mark.parametrize("space", VARIABLES)
def test_a_variable_by_name(space):
    """Without a state space the address is generic, whatever the variable's space."""
    out = run(
        "@%p0 ret; setp.eq.u32 %p1, %r0, 0;"
        "@%p1 st.v2.u32 [s+8], {7, 8}; bar.sync 0;"
        f"ld.{space}.u32 %r1, [s+8]; ld.u32 %r2, [s+12]; atom.add.u32 %r3, [s+8], 1;"
        f"bar.sync 0; ld.volatile.{space}.u32 %r4, s[2];"
        "st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4};".replace("@%p0 ret;", ""),
        VARIABLES[space],
    )
    assert (out[:, :2] == [7, 8]).all()
    assert sorted(out[:, 2]) == list(range(7, 39))
    assert (out[:, 3] == 39).all()


def test_constant_and_dynamic_shared_variables_by_name():
    before = ".const .b32 c[2] = {5, 6}; .extern .shared .align 16 .b32 d[];"
    body = (
        "st.u32 [d+4], %r0; ld.shared.u32 %r1, [d+4]; ld.u32 %r2, [c+4]; cvta.shared.u64 %rd1, 4;"
    )
    body += "ld.u32 %r3, [%rd1]; mov.u32 %r4, 0; st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4};"
    assert (run(body, before, threads=1, shared_bytes=64) == [0, 6, 0, 0]).all()
    with pytest.raises(
        smemkern.LaunchError, match=r"writes 4 bytes of generic memory .* past the end"
    ):
        run(body, before, threads=1, shared_bytes=4)


def test_another_space_than_the_variables():
    body = "ld.global.u32 %r1, [s]; st.global.u32 [%o], %r1;"
    with pytest.raises(smemkern.LaunchError, match="access to global memory .* shared memory"):
        run(body, ".shared .b32 s;")


# ---- sums ----


def test_sums_as_values():
    seed = random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)
    for _ in range(5):
        a, b, c = (rng.randrange(-(2**31), 2**31) for _ in range(3))
        out = run(
            f"L: add.u32 %r1, %r0+{a}, 3; mov.b64 %rd1, {{%r0+1, %r1}}; cvt.u64.u32 %rd2, %r0;"
            f"shr.u64 %rd3, %rd2+({b}), 1+2; cvt.u32.u64 %r2, %rd3; setp.lt.u32 %p1, %r0+1, 9;"
            f"mov.b64 {{%r3, %r4}}, %rd1; @%p1 mul.lo.u32 %r4, %r0+{c}-1, %r0+-5;"
            "st.global.v4.u32 [%o], {%r1, %r2, %r3+7, %r4};"
        )
        n = LANES.astype("i8")
        first = n + a + 3
        expected = [first, (n + b).astype("u8") >> np.uint64(3), n + 8]
        expected.append(np.where(n + 1 < 9, (n + c - 1) * (n - 5), first))
        for k, column in enumerate(expected):
            assert (out[:, k] == column.astype("u8").astype("u4")).all(), f"seed {seed}, {k}"


# ---- vectors of mov ----


def test_mov_of_vectors():
    out = run(
        "add.u32 %r1, %r0, 10; add.u32 %r2, %r0, 20; mov.v2.u32 {%r1, %r2}, {%r2, %r1};"
        "mov.v4.b32 {%r3, %r4, %r5, %r6}, {%r2, 7, %r1, %laneid};"
        "setp.lt.u32 %p1, %r0, 4; @%p1 mov.v2.b32 {%r3, %r4}, {%r4, %r3};"
        "st.global.v4.u32 [%o], {%r3, %r4, %r5, %r6};"
    )
    low = LANES < 4
    expected = [np.where(low, 7, LANES + 10), np.where(low, LANES + 10, 7), LANES + 20, LANES]
    assert (out == np.array(expected).T).all()


def test_mov_of_vector_registers():
    out = run(
        ".reg .v4 .b32 %v, %u; .reg .v2 .b64 %x; mov.v4.u32 %v, %ntid; mov.v4.b32 %u, %v;"
        "mov.v2.u64 %x, {5, %rd1}; cvt.u32.u64 %r1, %x.x;"
        "st.global.v4.u32 [%o], {%u.x, %u.y, %u.w, %r1};"
    )
    assert (out == [32, 1, 0, 5]).all()


def test_mov_b128():
    out = run(
        ".reg .b128 %q, %s; mov.b128 %q, {%r0, 1, %r0+2, 3}; mov.b128 %s, %q;"
        "mov.b128 {%rd1, %rd2}, %s; mov.b128 %q, {%rd2, %rd1}; mov.b128 {%r1, %r2, %r3, %r4}, %q;"
        "mov.b128 {_, %rd3}, %s; mov.b64 {%r2, _}, %rd3;"
        "st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4};"
    )
    assert (out == np.array([LANES + 2, LANES + 2, LANES, LANES * 0 + 1]).T).all()


# ---- special registers ----

SPECIAL = {
    "%tid.x": LANES,
    "%tid.w": 0,
    "%ntid.x": 32,
    "%ntid.w": 0,
    "%ctaid.x": 0,
    "%ctaid.w": 0,
    "%nctaid.y": 1,
    "%nctaid.w": 0,
    "%clusterid.w": 0,
    "%nclusterid.w": 0,
    "%cluster_ctaid.w": 0,
    "%cluster_nctaid.w": 0,
    "%laneid": LANES,
    "%warpid": 0,
    "%nsmid": 132,
    "%lanemask_eq": 1 << LANES,
    "%lanemask_lt": (1 << LANES.astype("u8")) - 1,
    "%lanemask_le": (2 << LANES.astype("u8")) - 1,
    "%lanemask_ge": 2**32 - (1 << LANES.astype("u8")),
    "%lanemask_gt": 2**32 - (2 << LANES.astype("u8")),
    "%envreg0": 0,
    "%envreg3": 0,
    "%envreg31": 0,
    "%total_smem_size": 256,  # 142 bytes; blocks take a multiple of 128
    "%dynamic_smem_size": 30,
    "%aggr_smem_size": 256 + 1024,
    "%is_explicit_cluster": 0,
}


def test_special_registers():
    body, threads = "mov.b32 %r1, {}; st.global.u32 [%o], %r1;", 32
    before = ".shared .align 4 .b8 s[100]; .extern .shared .align 4 .b8 d[];"
    for name, expected in SPECIAL.items():
        used = "mov.u32 %r2, s; mov.u32 %r2, d;"
        got = run(used + body.format(name), before, threads, shared_bytes=30)[:, 0]
        assert (got == np.array(expected, "u8").astype("u4")).all(), name


@pytest.mark.parametrize("name", ["%gridid", "%current_graph_exec"])
def test_special_registers_of_64_bits(name):
    assert not run(f"mov.u64 %rd1, {name}; st.global.u64 [%o], %rd1;").any()


@pytest.mark.parametrize("name", ["%envreg32", "%envreg", "%envregx", "%reserved_smem_offset_2"])
def test_names_that_are_no_special_register(name):
    with pytest.raises(smemkern.KernelImageError, match=f"'{name}' is not declared"):
        kernel(f"mov.u32 %r1, {name};")


def test_reserved_shared_memory():
    """Begins after the block's own, and ends after 1 KiB. Without it those bytes are no memory."""
    before = ".shared .align 4 .b8 s[96];"
    read = "mov.u32 %r1, %reserved_smem_offset_begin; mov.u32 %r2, %reserved_smem_offset_1;"
    read += "mov.u32 %r3, %reserved_smem_offset_cap; mov.u32 %r4, %reserved_smem_offset_end;"
    store = "st.shared.u32 [s], %r0; st.shared.u32 [{}], %r0;"
    store += "st.global.v4.u32 [%o], {{%r1, %r2, %r3, %r4}};"
    begin, part, cap, end = run(read + store.format("%r4+-4"), before, threads=1)[0].tolist()
    assert 96 <= begin <= part < cap <= end == begin + 1024
    with pytest.raises(smemkern.LaunchError, match="past the end of the block's shared memory"):
        run(read + store.format("%r4"), before, threads=1)
    with pytest.raises(smemkern.LaunchError, match="past the end of the block's shared memory"):
        run(f"mov.u32 %r1, {begin};" + store.format("%r1"), before, threads=1)


def test_a_tile_of_two_warps(nvrtc):
    """cooperative_groups keeps the barriers of such tiles in reserved shared memory."""
    source = """#include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(int *out) {
        __shared__ cg::block_tile_memory<256> memory;
        auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
        int sum = cg::reduce(tile, (int)threadIdx.x, cg::plus<int>());
        tile.sync();
        out[threadIdx.x] = 1000 * tile.meta_group_rank() + tile.thread_rank() + sum;
    }"""
    out = np.zeros(256, "i4")
    made = smemkern.Kernel(source, "k", options=["--std=c++17"])
    made(1, 256, out, device="emu")
    n = np.arange(256)
    sums = n.reshape(4, 64).sum(1)[n // 64]
    assert (out == 1000 * (n // 64) + n % 64 + sums).all()


# ---- votes of targets before sm_70 ----

OLD = ".version 6.0\n.target sm_60\n.address_size 64\n"


def test_votes_and_shuffles_without_sync():
    """They are for the lanes that run them together."""
    out = run(
        "setp.lt.u32 %p1, %r0, 5; setp.ge.u32 %p2, %r0, 3; vote.ballot.b32 %r1, %p1;"
        "vote.any.pred %p3, !%p1; vote.all.pred %p4, %p1; selp.u32 %r2, 1, 0, %p3;"
        "selp.u32 %r3, 1, 0, %p4; @%p1 vote.ballot.b32 %r1, !%p2; @!%p1 vote.uni.pred %p4, %p2;"
        "@!%p1 selp.u32 %r3, 2, 0, %p4; shfl.up.b32 %r4|%p3, %r0, 1, 0;"
        "@!%p3 mov.u32 %r4, 99; st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4};",
        head=OLD,
    )
    low = LANES < 5
    expected = [
        np.where(low, 0b111, 0b11111),
        LANES * 0 + 1,
        np.where(low, 0, 2),
        np.where(LANES, LANES - 1, 99),
    ]
    assert (out == np.array(expected).T).all()


# ---- parameters in registers ----

FUNCTIONS = """
.func (.reg .u32 q) plus(.reg .u32 p, .reg .b64 w) {
    .reg .b32 %t; .reg .pred %p;
    setp.lt.u32 %p, p, 4; cvt.u32.u64 %t, w; add.u32 q, p, %t;
    @%p ret;
    add.u32 q, q, 100; add.u32 p, p, 1000;
}
.func (.reg .b64 q) both(.param .b64 a, .reg .f32 b) {
    .reg .b32 %t; ld.param.b32 %t, [a+4]; mov.b64 q, {%t, b}; ret; }
.func (.reg .b16 q) half(.reg .u16 p) { mul.lo.u16 q, p, p; ret; }
"""


def test_parameters_in_registers():
    out = run(
        "cvt.u64.u32 %rd1, %r0; call (%r1), plus, (%r0, %rd1); call (%r2), plus, (3, 4);"
        "mov.b64 %rd2, {5, %r0}; call (%rd3), both, (%rd2, 0f3F800000); mov.b64 {%r3, %r4}, %rd3;"
        "cvt.u16.u32 %h1, %r0; call (%h2), half, (%h1); cvt.u32.u16 %r5, %h2;"
        "call (_), plus, (%r0, 9);"
        "shl.b32 %r5, %r5, 8; add.u32 %r3, %r3, %r5; add.u32 %r6, %r0, 0;"
        "st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4};",
        FUNCTIONS,
    )
    expected = [
        2 * LANES + np.where(LANES < 4, 0, 100),
        LANES * 0 + 7,
        LANES + (LANES * LANES << 8),
        LANES * 0 + 0x3F800000,
    ]
    assert (out == np.array(expected).T).all()


def test_parameters_in_registers_through_a_pointer():
    out = run(
        "mov.u64 %rd1, plus; P: .callprototype (.reg .u32 _) _ (.reg .u32 _, .param .b64 _);"
        "call (%r1), %rd1, (%r0, 5), P; st.global.u32 [%o], %r1;",
        FUNCTIONS,
    )
    assert (out[:, 0] == LANES + 5 + np.where(LANES < 4, 0, 100)).all()


def test_a_recursion_with_registers():
    out = run(
        "call (%r1), fib, (%r0); st.global.u32 [%o], %r1;",
        """.func (.reg .u32 q) fib(.reg .u32 n) {
            .reg .u32 a, b; .reg .pred p; mov.u32 q, n; setp.lt.u32 p, n, 2; @p ret;
            call (a), fib, (n+-1); call (b), fib, (n-2); add.u32 q, a, b; ret; }""",
        threads=8,
    )
    assert out[:, 0].tolist() == [0, 1, 1, 2, 3, 5, 8, 13]


@pytest.mark.parametrize("call", ["(%rd1), half, (%h1)", "(%h1), half, (%r1)", "half, (%h1)"])
def test_calls_of_other_sizes(call):
    made = kernel(f"call {call};", FUNCTIONS)
    with pytest.raises(smemkern.KernelImageError, match="of the call|the call of half"):
        made(1, 1, np.zeros((1, 4), "u4"), device="emu")
