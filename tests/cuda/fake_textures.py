"""Textures and surfaces on a fake driver: python fake_textures.py CASE."""

from __future__ import annotations

import ctypes
import sys

import numpy as np

import smemkern

HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"
SAMPLE = HEAD + ".visible .entry sample(.param .u64 t, .param .u64 s) { ret; }"
STORED = HEAD + ".visible .entry sample_stored(.param .u64 at) { ret; }"
STRUCT = HEAD + ".visible .entry sample_struct(.param .align 8 .b8 s[16]) { ret; }"
NAMED = HEAD + ".global .texref image; .global .surfref result;\n"
NAMED += ".visible .entry sample_references() { ret; }"
SPIN = HEAD + ".visible .entry spin(.param .u64 t, .param .u64 s) { ret; }"
FETCH = """.visible .entry sample(.param .u64 t, .param .u64 s) {
    .reg .b32 %r<4>; .reg .b32 %x; .reg .b64 %t;
    ld.param.u64 %t, [t]; mov.u32 %x, %tid.x;
    tex.1d.v4.u32.COORDINATE {%r0, %r1, %r2, %r3}, [%t, {%x}];
    ret;
}"""

rng = np.random.default_rng()


def texels(*shape: int, dtype: str = "f4") -> np.ndarray:
    return rng.integers(0, 100, shape).astype(dtype)


def none_left() -> None:
    assert list(fake.textures) == [0, 0], "arrays and objects of textures"


def arguments() -> None:
    """Every type and shape arrives, and what is written to a surface comes back."""
    sample = smemkern.Kernel(SAMPLE, "sample")
    for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4"):
        for shape, options in (
            ((13,), {}),
            ((5, 7), {}),
            ((3, 4, 5), {}),
            ((5, 7, 4), {"channels": 4}),
            ((4, 9), {"layered": True}),
            ((4, 3, 9, 2), {"layered": True, "channels": 2}),
            ((6, 4, 4), {"cubemap": True}),
            ((2, 6, 4, 4), {"cubemap": True, "layered": True}),
        ):
            image, out = texels(*shape, dtype=dtype), np.zeros(shape, dtype)
            surface = smemkern.Surface(out, **options)
            sample(1, 32, smemkern.Texture(image, **options), surface, device="cuda")
            assert np.array_equal(out, image), (dtype, shape)
            none_left()


def stored_handles() -> None:
    """In an array, which keeps its handles whether it is writable or not, and in a struct."""
    image, out = texels(5, 7), np.zeros((5, 7), "f4")
    texture, surface = smemkern.Texture(image), smemkern.Surface(out)
    handles = np.array([texture.handle, surface.handle, 7], np.uint64)
    before = handles.copy()
    for writable in (True, False):
        handles.flags.writeable = writable
        out[:] = 0
        stored = smemkern.Kernel(STORED, "sample_stored")
        stored(1, 32, handles, textures=[texture, surface], device="cuda")
        assert np.array_equal(out, image) and np.array_equal(handles, before)
    out[:] = 0
    struct = smemkern.Kernel(STRUCT, "sample_struct")
    struct(1, 32, handles[:2].tobytes(), textures=[texture, surface], device="cuda")
    assert np.array_equal(out, image)
    none_left()


def references() -> None:
    """Variables of a module that only this call uses."""
    image, out, modules = texels(5, 7), np.zeros((5, 7), "f4"), fake.alive[3]
    given = {"image": smemkern.Texture(image), "result": smemkern.Surface(out)}
    smemkern.Kernel(NAMED, "sample_references")(1, 32, textures=given, device="cuda")
    assert np.array_equal(out, image) and fake.alive[3] == modules
    none_left()


def linear_memory() -> None:
    """A 1-D texture read by integer coordinates has no array, so it may be large."""
    image, out = texels(200_000, dtype="u4"), np.zeros(1000, "u4")
    for coordinate, works in (("s32", True), ("f32", False)):
        fetch = smemkern.Kernel(HEAD + FETCH.replace("COORDINATE", coordinate), "sample")
        try:
            fetch(1, 32, smemkern.Texture(image), smemkern.Surface(out), device="cuda")
        except ValueError as error:
            assert not works and "131072" in str(error), error
        else:
            assert works and np.array_equal(out, image[:1000])
        none_left()


def refused() -> None:
    """What a GPU cannot do, in words."""
    image, out = texels(5, 7), np.zeros((5, 7), "f4")
    sample = smemkern.Kernel(SAMPLE, "sample")
    texture, surface = smemkern.Texture(image), smemkern.Surface(out)
    for given, options, words in (
        ((smemkern.Texture(out), surface), {}, "overlaps"),
        ((texture, surface), {"textures": {"other": texture}}, "variable 'other'"),
        ((texture, surface), {"textures": [surface]}, "overlaps"),
    ):
        try:
            sample(1, 32, *given, device="cuda", **options)
        except ValueError as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)
        none_left()


def interrupted() -> None:
    """Textures of a kernel that still runs stay until it has ended."""
    fake.kernels_hang = True
    given = smemkern.Texture(texels(5, 7)), smemkern.Surface(np.zeros((5, 7), "f4"))
    try:
        smemkern.Kernel(SPIN, "spin")(1, 32, *given, device="cuda", timeout=0.2)
    except TimeoutError:
        assert list(fake.textures) == [2, 2]
    else:
        raise AssertionError("the kernel hangs")
    fake.kernels_hang = False
    smemkern.Kernel(SAMPLE, "sample")(1, 32, *given, device="cuda")
    none_left()


CASES = (arguments, stored_handles, references, linear_memory, refused, interrupted)

if __name__ == "__main__":
    from fake_exchange import FakeState

    fake = FakeState.in_dll(ctypes.CDLL("libcuda.so.1"), "fake_cuda")
    {case.__name__: case for case in CASES}[sys.argv[1]]()
