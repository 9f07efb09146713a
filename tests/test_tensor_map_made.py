"""Tensor maps that kernels make: tensormap.replace and tensormap.cp_fenceproxy, against NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_emu_bulk import BULK
from test_emu_mbarrier import HELPERS

import smemkern
from test_tensor_map import COPIES, SPANS, box_of, swizzled

MADE = r"""
#define SET(field, type, letter, value) \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], %1;" \
                 :: "r"(at(&map)), letter(value) : "memory")
#define SET_OF(field, d, type, letter, value) \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], " d ", %1;" \
                 :: "r"(at(&map)), letter(value) : "memory")
#define CONSTANT(field, value) \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], " value ";" \
                 :: "r"(at(&map)) : "memory")
extern "C" __global__ void make(const unsigned char *tensor, const int *size, const int *box,
                                const int *start, u64 pitch, Map *made, unsigned char *out,
                                int bytes) {
    __shared__ alignas(128) Map map;
    __shared__ u64 b;
    unsigned char *tile = aligned();
    ((int *)&map)[threadIdx.x] = 0;
    for (int k = threadIdx.x; k < bytes; k += 32) tile[k] = 0xa5;
    if (threadIdx.x == 0) init(&b, 1), fence_init();
    fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        SET("global_address", "b64", "l", (u64)tensor);
        CONSTANT("rank", "1");
        SET_OF("box_dim", "0", "b32", "r", box[1]);
        SET_OF("box_dim", "1", "b32", "r", box[0]);
        SET_OF("global_dim", "0", "b32", "r", size[1]);
        SET_OF("global_dim", "1", "b32", "r", size[0]);
        SET_OF("global_stride", "0", "b64", "l", pitch);
        SET_OF("element_stride", "0", "b32", "r", 1);
        SET_OF("element_stride", "1", "b32", "r", 1);
        CONSTANT("elemtype", ELEMENT);
        CONSTANT("interleave_layout", "0");
        CONSTANT("swizzle_mode", SWIZZLE);
        CONSTANT("fill_mode", "0");
    }
    __syncthreads();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"
                 ".aligned [%0], [%1], 128;" :: "l"(made), "r"(at(&map)) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(made) : "memory");
    if (threadIdx.x == 0) {
        const int c[5] = {start[1], start[0]};
        arrive_expect(&b, bytes);
        load_box(tile, *made, c, &b);
    }
    wait(&b, 0);
    for (int k = threadIdx.x; k < bytes; k += 32) out[k] = tile[k];
}
"""
# The numbers of PTX, which are not those of CUtensorMapDataType.
TYPES = {"u1": 0, "u2": 1, "u4": 2, "i4": 3, "u8": 4, "i8": 5, "f2": 6, "f4": 7, "f8": 9}


def kernel(element, swizzle=0, source=MADE):
    words = (f'-DELEMENT="{element}"', f'-DSWIZZLE="{swizzle}"', "-DRANK=2")
    every = ("-arch=compute_90a", "-std=c++17", *words)
    return smemkern.Kernel(HELPERS + BULK + COPIES + source, "make", options=every)


def run(k, array, box, start, device):
    size = array.dtype.itemsize
    out = np.zeros(box[0] * box[1] * size, np.uint8)
    made = np.zeros(128, np.uint8)
    places = [np.array(values, np.int32) for values in (array.shape, box, start)]
    given = (array, *places, array.strides[0], made, out, out.size)
    k(1, 32, *given, shared_bytes=out.size + 1024, device=device)
    return out.tobytes()


@pytest.mark.parametrize("swizzle", [*enumerate(SPANS.values())], ids=lambda pair: f"span{pair[1]}")
@pytest.mark.parametrize("dtype", TYPES)
def test_box(nvrtc, device, rng, dtype, swizzle):
    mode, span = swizzle
    array = rng.integers(0, 100, (24, 48)).astype(dtype)
    box = (8, (span or 64) // array.dtype.itemsize)
    start = (20, 16)  # four rows are outside
    dense = box_of(array, box, start).tobytes()
    expected = swizzled(dense, span, bytes(len(dense)))
    assert run(kernel(TYPES[dtype], mode), array, box, start, device) == expected


def test_trace(nvrtc, rng):
    """No hazards: the map is written before it is copied. Without the barrier there is a race."""
    array = rng.standard_normal((16, 32)).astype("f4")
    for source, kinds in (
        (MADE, set()),
        (MADE.replace("__syncthreads();\n    asm", "asm"), {"RAW"}),
    ):
        found = smemkern.trace(
            kernel(7, source=source),
            *(1, 32, array, np.array([16, 32], "i4"), np.array([8, 8], "i4"), np.zeros(2, "i4")),
            *(array.strides[0], np.zeros(128, np.uint8), np.zeros(256, np.uint8), 256),
            shared_bytes=1280,
        )
        assert {row.kind for row in found.hazards} == kinds


@pytest.mark.parametrize(
    ("element", "box", "message"),
    [
        (12, (8, 8), "no such element type"),
        (7, (300, 8), "1 to 256"),
        (7, (8, 3), "multiple of 16"),
    ],
)
def test_a_wrong_map(nvrtc, rng, element, box, message):
    array = rng.standard_normal((16, 32)).astype("f4")
    with pytest.raises(smemkern.LaunchError, match=message):
        run(kernel(element), array, box, (0, 0), "emu")


def test_an_unaligned_map(nvrtc, rng):
    k = kernel(7, source=MADE.replace("at(&map)), letter", "at(&map) + 16), letter"))
    with pytest.raises(smemkern.LaunchError, match="must be a multiple of 64"):
        run(k, rng.standard_normal((16, 32)).astype("f4"), (8, 8), (0, 0), "emu")


@pytest.mark.parametrize(
    "text",
    [
        "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [t], 1;",
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [t], 5, 8;",
        "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [t], 4, 16;",
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [t], 8;",
        "tensormap.replace.tile.rank.shared::cta.b32 [t], 1;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
        " [%d0], [t], 64;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.sync.aligned"
        " [%d0], [t], 128;",
    ],
)
def test_unknown_forms_are_refused(text):
    ptx = (
        ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k() {"
        " .reg .b64 %d<2>; .shared .align 128 .b32 t[32]; " + text + " ret; }\n"
    )
    k = smemkern.Kernel(ptx, "k")
    with pytest.raises(smemkern.UnsupportedInstructionError, match=re.escape(text.rstrip(";"))):
        k(1, 32, device="emu")
