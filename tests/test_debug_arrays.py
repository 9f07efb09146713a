"""The shared arrays of a CUDA source: bytes per element, and elements per row."""

import random

import pytest

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
        "_ZZ6kernelPfE4tile": Declared(TYPES[kind], lengths[-1] if len(lengths) > 1 else 0)
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
    assert found == ({} if expected is None else {"_ZZ6kernelPfE4tile": expected})


def test_dynamic_shared_memory():
    ptx = ".extern .shared .align 16 .b8 dynamic[];\n"
    assert declared(ptx, ["extern __shared__ float dynamic[];"]) == {"dynamic": (4, 0)}
