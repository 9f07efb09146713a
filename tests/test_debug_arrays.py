"""The shared arrays of a CUDA source: bytes per element, and elements per row."""

import math
import random

import numpy as np
import pytest

import smemkern
from smemkern import _core
from smemkern._compiler.shared_arrays import Declared, declared

TYPES = {
    "char": 1,
    "unsigned char": 1,
    "__half": 2,
    "float": 4,
    "unsigned": 4,
    "unsigned int": 4,
    "double": 8,
    "unsigned long long": 8,
    "float4": 16,
}


def ptx_of(name, size):
    return f"\t.shared .align 16 .b8 _ZZ6kernelPfE{len(name)}{name}[{size}];\n"


@pytest.mark.parametrize("attempt", range(20))
def test_drawn_declarations(attempt):
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    kind = rng.choice([*TYPES])
    lengths = [rng.randint(1, 70) for _ in range(rng.randint(1, 3))]
    ways = [rng.choice(["literal", "macro", "constexpr", "sum"]) for _ in lengths]
    head, dims = "", ""
    for at, (length, way) in enumerate(zip(lengths, ways, strict=True)):
        head += f"#define D{at} {length}\n" if way == "macro" else ""
        head += f"constexpr int D{at} = {length};\n" if way == "constexpr" else ""
        given = f"{length - 1} + 1" if way == "sum" else length if way == "literal" else f"D{at}"
        dims += f"[{given}]"
    before = rng.choice(["", "__align__(16) ", "alignas(32) "])
    source = f"{head}__global__ void kernel(float *p) {{ __shared__ {before}{kind} tile{dims}; }}"
    size = TYPES[kind]
    for length in lengths:
        size *= length
    assert declared(ptx_of("tile", size), [source]) == {
        "_ZZ6kernelPfE4tile": Declared(TYPES[kind], *([*lengths[:0:-1], 0, 0])[:2])
    }


@pytest.mark.parametrize(
    "source, size, expected",
    [
        ("template <int N> k() { __shared__ float tile[N][N + 1]; }", 4224, (4, 0)),
        ("template <int N> k() { __shared__ float tile[32][N]; }", 4224, (4, 33)),
        ("template <class T> k() { __shared__ T tile[32][33]; }", 8448, (8, 33)),
        ("k() { __shared__ float a[8], tile[4][4]; }", 64, (4, 4)),
        ("k() { __shared__ float tile[8][8]; } j() { __shared__ float tile[4][16]; }", 256, None),
        ("k() { __shared__ float tile[8][8]; } j() { __shared__ float tile[4][4]; }", 64, (4, 4)),
        ("k() { __shared__ float tile[8][9]; }", 64, None),
        ("k() { /* __shared__ float tile[4][4]; */ }", 64, None),
        ("#define N (N + 1)\nk() { __shared__ float tile[N][4]; }", 64, (4, 4)),
        ("k() { __shared__ float tile[1 / 0][4]; }", 64, (4, 4)),
        ("k() { __shared__ tile[4][4]; }", 64, (4, 4)),
        ("k() { __shared__ Pair tile[2][4]; }", 96, None),
    ],
)
def test_what_the_text_leaves_open(source, size, expected):
    found = declared(ptx_of("tile", size), [source])
    assert found == ({} if expected is None else {"_ZZ6kernelPfE4tile": Declared(*expected)})


def test_dynamic_shared_memory():
    ptx = ".extern .shared .align 16 .b8 dynamic[];\n"
    assert declared(ptx, ["extern __shared__ float dynamic[];"]) == {"dynamic": Declared(4, 0)}


@pytest.mark.parametrize("attempt", range(10))
def test_hazards_name_elements_as_the_source_does(attempt, nvrtc):
    """A race on one element of an array of one to three dimensions, also in dynamic memory."""
    rng = random.Random(seed := random.SystemRandom().randrange(1 << 32))
    lengths = [rng.randint(2, 9) for _ in range(rng.randint(1, 3))]
    at = [rng.randrange(length) for length in lengths]
    kind, size = rng.choice(["int", "double", "short", "unsigned char"]), 8
    index = "".join(f"[{k}]" for k in at)
    open_end = ["", *map(str, lengths[1:])] if (dynamic := rng.random() < 0.4) else lengths
    dims = "".join(f"[{n}]" for n in open_end)
    source = f"""extern "C" __global__ void k({kind} *y) {{
        {"extern " if dynamic else ""}__shared__ {kind} tile{dims};
        tile{index} = threadIdx.x + 1;
        asm volatile("" ::: "memory");
        y[threadIdx.x] = tile{index};
    }}"""
    kernel = smemkern.Kernel(source)
    bytes_of = size * math.prod(lengths) if dynamic else 0
    y = np.zeros(64, {"int": "i4", "double": "f8", "short": "i2", "unsigned char": "u1"}[kind])
    found = smemkern.trace(kernel, 1, 64, y, shared_bytes=bytes_of).hazards
    assert found, (seed, source)
    assert {one.address for one in found} == {f"shared tile{index}"}, (seed, source)
    replay = smemkern.replay(kernel, 1, 64, y, shared_bytes=bytes_of)
    assert [one.message for one in replay.hazards] == [one.message for one in found]


@pytest.mark.parametrize(
    "array, at, width, text, expected",
    [
        (("tile", 0, 0, 4, 33, 0), 4 * (33 * 2 + 5), 4, None, "tile[2][5]"),
        (("tile", 0, 0, 4, 33, 8), 4 * (33 * (8 * 3 + 2) + 5), 16, "ld.v4.f32", "tile[3][2][5]"),
        (("tile", 0, 0, 4, 0, 0), 12, 16, None, "tile[3]"),
        (("_ZZ6kernelPfE4tile", 0, 0, 0, 0, 0), 32, 4, "st.shared.v2.f64 [%r1], x", "tile[4]"),
        (("tile", 0, 0, 0, 0, 0), 32, 16, "st.shared.v2.f32 [%r1], x", "tile[2]"),
        (("tile", 0, 0, 0, 0, 0), 30, 4, "ld.shared.b32", "tile + 30 bytes"),
        (("tile", 0, 0, 8, 0, 0), 30, 4, "ld.shared.b32", "tile[3]"),
        (("tile", 0, 0, 4, 4, 0), -4, 4, None, "tile + -4 bytes"),
        (("tile", 0, 0, 0, 0, 0), 6, 2, ".bf16x2 .b16_ .s16", "tile[3]"),
        (("tile", 0, 0, 0, 0, 0), 6, 0, None, "tile[6]"),
        (("_ZZ1kE4tile_$_4_$_3", 0, 4, 0, 0, 0), 0, 4, "ld.shared.u32", "tile[4][3]"),
        (("_ZZ1kE4tile_$_4_$_1", 0, 2, 0, 0, 0), 0, 2, None, "tile[4][1]"),
        (("_ZZ1kE4tile_$_4", 0, 32, 0, 0, 0), 8, 4, "ld.shared.u32", "tile[4][2]"),
        (("_ZZ1kE4tile_$_4", 0, 32, 0, 0, 0), 0, 4, "ld.shared.u32", "tile[4][0]"),
        (("_ZZ1kE4tile_$_", 0, 4, 0, 0, 0), 0, 4, None, "tile[]"),
    ],
)
def test_names_of_elements(array, at, width, text, expected):
    assert _core.explain_element(array, at, width, text) == expected
