"""Every request for memory fails, one at a time, until the operation asks for no more.

    LD_PRELOAD=failing_allocator.so python allocations.py OPERATION

The operation then raises MemoryError, or does without; it works the next time, and afterwards as
much memory is alive as before. Prints how many requests failed. Run by test_allocations.py;
operations whose name begins with "gpu" need the fake driver, too.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from pathlib import Path

import numpy as np

import smemkern

allocator = ctypes.CDLL(None)
LONG, ADDRESS = ctypes.c_long, ctypes.c_size_t
requests, fail_request = (LONG.in_dll(allocator, n) for n in ("requests", "fail_request"))
alive, failed = LONG.in_dll(allocator, "alive"), ctypes.c_bool.in_dll(allocator, "failed")
MOST = 5000

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
MANY_THINGS = (
    HEAD
    + """// {number}
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 4 .b8 text[8] = {{104, 105, 32, 37, 100, 10, 0, 0}};
.global .u64 pointer = text;
.func (.param .b32 out) square(.param .b32 in)
{{ .reg .b32 %r1; ld.param.u32 %r1, [in]; mul.lo.u32 %r1, %r1, %r1; st.param.u32 [out], %r1; ret; }}
.visible .entry many(.param .u64 x)
{{
    .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<6>; .local .align 8 .b8 stack[64];
    .shared .align 16 .b8 tile[512];
    ld.param.u64 %rd1, [x]; cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3;
    cp.async.ca.shared.global [%r2], [%rd3], 4; cp.async.commit_group; cp.async.wait_group 0;
    setp.lt.u32 %p1, %r1, 16; @%p1 bra SMALL;
    {{ .param .b32 o; .param .b32 i; st.param.b32 [i], %r1; call.uni (o), square, (i);
      ld.param.b32 %r4, [o]; }}
    bra.uni MEET;
SMALL: mov.u32 %r4, 3; st.local.u32 [stack], %r4;
MEET: ld.shared.u32 %r5, [%r2]; add.u32 %r5, %r5, %r4; st.global.u32 [%rd3], %r5;
    setp.ne.u32 %p2, %r1, 0; @%p2 bra END;
    st.local.u32 [stack], %r5; mov.b64 %rd4, stack; cvta.local.u64 %rd4, %rd4;
    mov.u64 %rd5, text;  cvta.global.u64 %rd5, %rd5;
    {{ .param .b64 f; .param .b64 a; .param .b32 r;
      st.param.b64 [f], %rd5; st.param.b64 [a], %rd4; call.uni (r), vprintf, (f, a); }}
END: bar.sync 0; ret;
}}
"""
)
TEXTURES = (
    HEAD
    + """.global .texref line;
.global .surfref result;
.visible .entry copy()
{
    .reg .b32 %i, %x, %v<4>;
    mov.u32 %i, %tid.x; shl.b32 %x, %i, 2;
    tex.1d.v4.u32.s32 {%v0, %v1, %v2, %v3}, [line, {%i}];
    sust.b.1d.b32.trap [result, {%x}], %v0;
    ret;
}
"""
)
HAZARDS = (
    HEAD
    + """.visible .entry race(.param .u64 x)
{
    .reg .b32 %r<6>; .reg .b64 %rd<4>; .shared .align 4 .b8 tile[256];
    ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, tile;
    add.u32 %r4, %r3, %r2; st.shared.u32 [%r4], %r1; ld.shared.u32 %r5, [tile+4];
    add.u32 %r5, %r5, %r1; st.global.u32 [%rd1], %r5; ld.shared.u32 %r5, [tile+252];
    st.shared.u32 [tile], %r5; atom.global.add.u32 %r5, [%rd1], 1; ret;
}
"""
)
random = np.random.default_rng(1)
A, B = random.standard_normal((40, 30), dtype="f4"), random.standard_normal((30, 50), dtype="f4")
BIG = random.standard_normal((300, 40), dtype="f4"), random.standard_normal((40, 270), dtype="f4")
LITTLE = BIG[0][:140, :3], BIG[1][:3, :140]
C, WIDE = A @ B, BIG[0] @ BIG[1]
numbers = iter(range(10**9))


def close(got: np.ndarray, want: np.ndarray) -> bool:
    return bool(np.allclose(got, want, atol=1e-4))


def kernel() -> bool:
    """A text that was never read before: reader, decoder, launch, a call, local memory, printf."""
    own = smemkern.Kernel(MANY_THINGS.format(number=f"{next(numbers):09}"), "many")
    x = np.arange(64, dtype="u4")
    own(2, 64, x[:64], device="emu")
    return x[20] >= 420


def gemm() -> bool:
    return close(smemkern.gemm(A, B, variant="pipelined", device="emu"), C)


def batches() -> bool:
    a = np.broadcast_to(A, (3, 2, 40, 30))[:, ::-1]
    return close(smemkern.gemm(a, B[:, ::-1], variant="tiled", device="emu"), C[:, ::-1])


def tensor_maps() -> bool:
    return close(smemkern.gemm(A, B, variant="tma", device="emu"), C)


def textures() -> bool:
    x, out = np.arange(32, dtype="u4"), np.zeros(32, "u4")
    given = {"line": smemkern.Texture(x), "result": smemkern.Surface(out)}
    smemkern.Kernel(TEXTURES, "copy")(1, 32, textures=given, device="emu")
    return bool((out == x).all())


def split() -> bool:
    c = smemkern.gemm(A, B, variant="tf32x3", split=1, device="emu")
    return bool(np.allclose(c, C, atol=1e-3))


def transpose() -> bool:
    return bool((smemkern.transpose(A, variant="sector_aligned", device="emu") == A.T).all())


def trace() -> bool:
    found = smemkern.trace("gemm", A, B, variant="pipelined")
    return close(found.result, C) and not found.hazards


def trace_bulk() -> bool:
    found = smemkern.trace("gemm", A, B, variant="tma")
    return close(found.result, C) and not found.hazards


def hazards() -> bool:
    x = np.zeros(64, "u4")
    found = smemkern.trace(race, 3, 64, x, equal_writes=True)
    return len(found.hazards) >= 2


def blocks() -> bool:
    """The steps of a flow, on the emulator."""
    c = smemkern.gemm(*LITTLE, variant="simt", device="emu", max_memory=200_000)
    return close(c, LITTLE[0] @ LITTLE[1])


def gpu_blocks() -> bool:
    c = smemkern.gemm(*BIG, variant="naive", device="cuda", max_memory=500_000)
    return close(c, WIDE)


def gpu_several() -> bool:
    return close(smemkern.gemm(*BIG, variant="naive", devices=[0, 1]), WIDE)


def gpu_transpose() -> bool:
    y = smemkern.transpose(BIG[0], variant="naive", device="cuda", max_memory=150_000)
    return bool((y == BIG[0].T).all())


def gpu_arrays() -> bool:
    from fake_matrices import INTERFACE

    if not held:
        held.extend(INTERFACE(x) for x in (*BIG, WIDE))
    held[2].host[:] = 0
    smemkern.gemm(held[0], held[1], variant="naive", out=held[2])
    return close(held[2].host, WIDE)


held: list = []
OPERATIONS = {
    f.__name__: f
    for f in (
        *(
            kernel,
            gemm,
            batches,
            tensor_maps,
            textures,
            split,
            transpose,
            trace,
            trace_bulk,
            hazards,
        ),
        *(blocks, gpu_blocks, gpu_several, gpu_transpose, gpu_arrays),
    )
}
race = smemkern.Kernel(HAZARDS, "race")


def find_code() -> None:
    """Tells the allocator where the extension's code is."""
    name = Path(smemkern._core.__file__).name
    ranges = [
        [int(end, 16) for end in line.split()[0].split("-")]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith(name) and "x" in line.split()[1]
    ]
    assert len(ranges) == 1
    ADDRESS.in_dll(allocator, "code_begin").value = ranges[0][0]
    ADDRESS.in_dll(allocator, "code_end").value = ranges[0][1]


def fails(run, number: int) -> bool:
    """Whether the request was made, so that it failed."""
    requests.value, fail_request.value, failed.value = 0, number, False
    try:
        right = run()
        assert right, "a wrong result"
    except MemoryError as error:
        assert failed.value, error
    finally:
        fail_request.value = 0
    return failed.value


def alive_after(run, wanted: int, base: int) -> bool:
    """Whether so many blocks are alive after at most 3 calls, or base once nothing is kept.

    What failed may have been kept before, and how many mappings the emulator keeps depends on how
    many threads were at work at once.
    """
    for _ in range(3):
        gc.collect(0)
        if alive.value == wanted:
            return True
        assert run()
    return alive_at_least() == base


def alive_at_least() -> int:
    """Blocks that are alive when the emulator keeps nothing."""
    gc.collect(0)
    smemkern.empty_cache("emu")
    return alive.value


def main(name: str) -> None:
    find_code()
    run, number, started = OPERATIONS[name], 0, time.monotonic()
    for _ in range(3):  # until what is kept is what is kept for ever
        assert run()
    base = alive_at_least()
    assert run()
    reached, before = True, alive.value
    while reached and number < MOST:
        number += 1
        reached = fails(run, number)
        assert run(), f"request {number}: the next call"
        if name != "kernel":
            assert alive_after(run, before, base), f"request {number}: memory is lost"
    assert number < MOST
    assert alive_at_least() == base, "memory is lost"
    print(f"{name}: {number - 1} requests failed, {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    sys.stdout.flush()
    main(sys.argv[1])
