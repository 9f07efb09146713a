"""malloc and free in kernels, and calls of CUDA's device runtime."""

from __future__ import annotations

import numpy as np
import pytest

import smemkern

HEAP = 8 << 20
HEAD = """.version 8.3
.target sm_90
.address_size 64
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.global .b64 kept;
"""


def kernel(body: str, functions: str = "") -> smemkern.Kernel:
    """%t is the number of the thread in the grid; %o the address of its 8 bytes of the result."""
    return smemkern.Kernel(
        HEAD + functions + ".visible .entry k(.param .u64 out, .param .u64 size) {\n"
        ".reg .b32 %t, %b, %n, %r<9>; .reg .b64 %o, %s, %rd<9>; .reg .pred %p<5>;\n"
        "ld.param.u64 %o, [out]; ld.param.u64 %s, [size];\n"
        "mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x;\n"
        "mad.lo.u32 %t, %b, %n, %t; mad.wide.u32 %o, %t, 8, %o;\n"
        f"{body}\nret; }}",
        "k",
    )


def run(body: str, size: int = 0, threads: int = 32, blocks: int = 1, **options) -> np.ndarray:
    out = np.zeros(threads * blocks, "u8")
    kernel(body)(blocks, threads, out, np.uint64(size), device="emu", **options)
    return out


KEEP = "st.global.u64 [%o], %rd1;"
FREE = "call free, (%rd1);"


def test_each_thread_has_memory_of_its_own():
    """All bytes of it, on several host threads."""
    blocks, threads, size = 24, 64, 400
    out = run(
        """call (%rd1), malloc, (%s);
mov.u32 %r1, 0;
write: cvt.u64.u32 %rd2, %r1; add.u64 %rd3, %rd1, %rd2; st.u32 [%rd3], %t;
add.u32 %r1, %r1, 4; setp.lt.u32 %p1, %r1, 400; @%p1 bra write;
bar.sync 0;
mov.u32 %r1, 0;
read: cvt.u64.u32 %rd2, %r1; add.u64 %rd3, %rd1, %rd2; ld.global.u32 %r2, [%rd3];
setp.ne.u32 %p2, %r2, %t; @%p2 trap;
add.u32 %r1, %r1, 4; setp.lt.u32 %p1, %r1, 400; @%p1 bra read;
"""
        + KEEP
        + FREE,
        size,
        threads,
        blocks,
    )
    starts = np.sort(out)
    assert (np.diff(starts) >= size).all()
    assert not (starts % 16).any()


def test_memory_is_uninitialized():
    body = "call (%rd1), malloc, (4); ld.f32 %f, [%rd1]; call free, (%rd1); st.global.f32 [%o], %f;"
    out = run(".reg .f32 %f;" + body)
    assert np.isnan(out.view("f4")[::2]).all()


def test_null_where_there_is_no_room():
    body = "call (%rd1), malloc, (%s);" + KEEP
    assert not run(body + FREE, HEAP + 1).any()
    assert not run(body + FREE, 2**63).any()
    assert np.count_nonzero(run(body + "bar.warp.sync -1;" + FREE, HEAP // 4)) == 4
    # Freed memory is given out again, many times over.
    assert run(body + FREE, HEAP // 8192, threads=32, blocks=600).all()


def test_room_for_the_smallest():
    body = "call (%rd1), malloc, (0);" + KEEP + "st.u8 [%rd1], 1; " + FREE + "call free, (0);"
    assert len(set(run(body).tolist())) == 32


def test_memory_stays_from_launch_to_launch():
    one = np.zeros(1, "u8")
    made = kernel(
        "ld.global.u64 %rd1, [kept]; setp.ne.u64 %p1, %rd1, 0; @%p1 bra second;"
        "call (%rd1), malloc, (8); st.u64 [%rd1], 77; st.global.u64 [kept], %rd1; ret;"
        "second: ld.u64 %rd2, [%rd1]; st.global.u64 [%o], %rd2; call free, (%rd1);"
        "st.global.u64 [kept], 0;"
    )
    made(1, 1, one, np.uint64(0), device="emu")
    assert one[0] == 0
    made(1, 1, one, np.uint64(0), device="emu")
    assert one[0] == 77


WRONG = {
    "freed memory read": (
        FREE + "ld.u32 %r1, [%rd1+4];",
        "reads 4 bytes of generic memory .* memory that has been freed",
    ),
    "freed memory written": (
        FREE + "st.global.u8 [%rd1], 1;",
        "writes 1 byte of global memory .* memory that has been freed",
    ),
    "freed memory changed": (FREE + "atom.add.u32 %r1, [%rd1], 1;", "memory that has been freed"),
    "freed twice": (FREE + FREE, "free of 0x.*: that memory has been freed before"),
    "past the end": ("st.u8 [%rd1+10], 1;", "10 bytes past the start of 10 bytes from malloc"),
    "across the end": ("ld.u32 %r1, [%rd1+8];", "8 bytes past the start of 10 bytes"),
    "before the start": ("ld.u8 %r1, [%rd1-1];", "out of bounds"),
    "misaligned": ("ld.u32 %r1, [%rd1+1];", "misaligned address: .* the heap"),
    "shared memory": ("ld.shared.u64 %rd2, [%rd1];", "shared memory"),
    "free of the middle": ("add.u64 %rd1, %rd1, 16;" + FREE, "malloc did not return that address"),
    "free within": ("add.u64 %rd1, %rd1, 1;" + FREE, "malloc did not return that address"),
    "free of a parameter": ("mov.u64 %rd1, %o;" + FREE, "malloc did not return that address"),
    "free beyond": ("add.u64 %rd1, %rd1, 99999999;" + FREE, "malloc did not return that address"),
    "free of a small number": ("mov.u64 %rd1, 5;" + FREE, "free of 0x5: malloc did not return"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses(name):
    wrong, match = WRONG[name]
    made = kernel("call (%rd1), malloc, (10);" + wrong)
    with pytest.raises(smemkern.LaunchError, match=match):
        made(1, 1, np.zeros(1, "u8"), np.uint64(0), device="emu")


def test_a_finding_of_a_trace():
    made = kernel("call (%rd1), malloc, (10);" + FREE + "ld.u32 %r1, [%rd1]; st.u32 [%o], %r1;")
    trace = smemkern.trace(made, 1, 1, np.zeros(1, "u8"), np.uint64(0))
    assert [h.kind for h in trace.hazards] == ["out-of-bounds"]
    assert "memory that has been freed" in str(trace.hazards[0])


def test_other_declarations():
    text = HEAD.replace("(.param .b64 n)", "(.param .b32 n)")
    text += ".visible .entry k() { .reg .b64 %r; .reg .b32 %n; call (%r), malloc, (%n); ret; }"
    made = smemkern.Kernel(text, "k")
    with pytest.raises(smemkern.KernelImageError, match="malloc is declared with other parameters"):
        made(1, 1, device="emu")


def test_free_without_malloc():
    text = HEAD.replace(".extern .func (.param .b64 r) malloc(.param .b64 n);", "")
    text += ".visible .entry k() { call free, (0); call free, (0x600000000010); ret; }"
    made = smemkern.Kernel(text, "k")
    with pytest.raises(smemkern.LaunchError, match="malloc did not return that address"):
        made(1, 1, device="emu")


def test_new_and_delete(nvrtc):
    source = """
    struct node { node *next; int value; __device__ ~node() { value = -1; } };
    extern "C" __global__ void k(int *out, int n) {
        node *list = nullptr;
        for (int i = 0; i < n; i++) list = new node{list, i * (int)threadIdx.x};
        int sum = 0;
        while (list) { node *next = list->next; sum += list->value; delete list; list = next; }
        int *squares = new int[n];
        for (int i = 0; i < n; i++) squares[i] = i * i;
        out[threadIdx.x] = sum + squares[n - 1];
        delete[] squares;
    }"""
    out = np.zeros(64, "i4")
    smemkern.Kernel(source, "k")(1, 64, out, np.int32(20), device="emu")
    assert (out == 190 * np.arange(64) + 361).all()


@pytest.mark.parametrize("name", ["cudaGetParameterBufferV2", "__cudaCDP2StreamDestroy"])
def test_launches_from_kernels(name):
    text = HEAD + f".extern .func (.param .b32 r) {name}(.param .b64 a);"
    text += f".visible .entry k() {{ .reg .b32 %r; call (%r), {name}, (0); ret; }}"
    made = smemkern.Kernel(text, "k")
    with pytest.raises(
        smemkern.UnsupportedInstructionError,
        match=f"call of {name}, a function of CUDA's device runtime, which only `smemkern run`",
    ):
        made(1, 1, device="emu")
