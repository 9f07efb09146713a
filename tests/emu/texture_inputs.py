"""Textures with seeded texels, kernels of one instruction, and the coordinates that they load."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

BLOCK = 128
HEADER = ".version 8.1\n.target sm_80\n.address_size 64\n"
#            operands of the coordinate vector, and of an offset
GEOMETRY = {
    "1d": ("{{{0}}}", "{{{6}}}"),
    "2d": ("{{{0}, {1}}}", "{{{6}, {7}}}"),
    "3d": ("{{{0}, {1}, {2}, {2}}}", "{{{6}, {7}, {6}, {6}}}"),
    "a1d": ("{{{4}, {0}}}", "{{{6}}}"),
    "a2d": ("{{{4}, {0}, {1}, {1}}}", "{{{6}, {7}}}"),
    "cube": ("{{{0}, {1}, {2}, {2}}}", ""),
    "acube": ("{{{4}, {0}, {1}, {2}}}", ""),
}
WORDS = [f"%c{k}" for k in range(8)]


def coordinates(geometry: str) -> str:
    return GEOMETRY[geometry][0].format(*WORDS)


def kernel(body: str) -> str:
    return (
        HEADER
        + """.visible .entry sample(.param .u64 t, .param .u64 in, .param .u64 out)
{
.reg .b64 %t, %in, %out;
.reg .b32 %c<8>, %d<4>, %i, %b;
.reg .b16 %h<4>;
.reg .b64 %w<2>;
.reg .pred %p;
ld.param.u64 %t, [t];
ld.param.u64 %in, [in];
ld.param.u64 %out, [out];
mov.u32 %i, %tid.x;
mov.u32 %b, %ctaid.x;
mad.lo.u32 %i, %b, """
        + f"{BLOCK}, %i;\n"
        + """mad.wide.u32 %in, %i, 32, %in;
mad.wide.u32 %out, %i, 16, %out;
ld.global.v4.b32 {%c0, %c1, %c2, %c3}, [%in];
ld.global.v4.b32 {%c4, %c5, %c6, %c7}, [%in+16];
mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
"""
        + body
        + """
st.global.v4.b32 [%out], {%d0, %d1, %d2, %d3};
ret;
}
"""
    )


@dataclass(frozen=True)
class Texture:
    """The options of smemkern.Texture, and how its texels are made."""

    shape: tuple[int, ...]  # slowest first, without channels
    dtype: str = "float32"
    channels: int = 1
    address: tuple[str, ...] | str = "clamp"
    filter: str = "point"
    normalized: bool = False
    read: str = "element"
    border: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    layered: bool = False
    cubemap: bool = False
    texels: str = "random"  # random, near, index, corners, all
    memory: str = "array"  # of the device: array, linear or pitch; all are the same to a model

    def values(self, rng: np.random.Generator) -> np.ndarray:
        shape = (*self.shape, self.channels)
        dtype = np.dtype(self.dtype)
        n = int(np.prod(shape))
        if self.texels == "index":
            return np.arange(n).reshape(shape).astype(dtype)
        if self.texels == "all":  # every bit pattern of the type
            words = np.arange(n) % (1 << 8 * dtype.itemsize)
            return words.astype(f"u{dtype.itemsize}").view(dtype).reshape(shape)
        if self.texels == "corners":  # channel k is 1 in corner k, and 0 elsewhere
            return np.eye(n // self.channels, self.channels, dtype=dtype).reshape(shape)
        if self.texels == "corners_high":
            return np.eye(n // self.channels, self.channels, -4, dtype=dtype).reshape(shape)
        if dtype.kind != "f":
            info = np.iinfo(dtype)
            return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        values = rng.standard_normal(shape)
        if self.texels == "random":
            values *= 2.0 ** rng.integers(-8, 9, shape)
        return values.astype(dtype)


@dataclass(frozen=True)
class Case:
    name: str
    texture: Texture
    body: str
    inputs: str = "spread"  # which coordinates
    count: int = 16
    surface: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def ptx(self) -> str:
        return kernel(self.body)

    def arrays(self, seed: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Texels, and the words that the threads load."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()) if seed is None else seed)
        texels = self.texture.values(rng)
        return texels, INPUTS[self.inputs](self, rng, self.count * BLOCK)


# ---- coordinates ----

SPECIAL = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        np.nan,
        np.inf,
        -np.inf,
        1e30,
        -1e30,
        1e9,
        -1e9,
        2.0**31,
        -(2.0**31),
        1e-40,
        -1e-40,
        65536.0,
        -32768.5,
    ],
    np.float32,
)


def _extents(case: Case) -> list[int]:
    """Of the coordinates x, y, z."""
    shape = case.texture.shape
    if case.texture.cubemap:
        return [1, 1, 1]
    if case.texture.layered:
        shape = shape[1:]
    return list(shape[::-1])


def _layers(case: Case, rng, n: int) -> np.ndarray:
    if not case.texture.layered:
        return np.zeros(n, np.uint32)
    layers = case.texture.shape[0]
    return rng.integers(-2, layers + 2, n).astype(np.int32).view(np.uint32)


def _words(case: Case, rng, columns: list[np.ndarray], n: int) -> np.ndarray:
    words = np.zeros((n, 8), np.uint32)
    for k, column in enumerate(columns):
        words[:, k] = column.view(np.uint32)
    words[:, 4] = _layers(case, rng, n)
    words[:, 5] = rng.uniform(-2, 3, n).astype(np.float32).view(np.uint32)
    words[:, 6:] = rng.integers(-8, 8, (n, 2)).astype(np.int32).view(np.uint32)
    return words


def _spread(case: Case, rng, n: int) -> np.ndarray:
    """Over the texture and some way around it, with special values among them."""
    columns = []
    for extent in _extents(case):
        unit = 1.0 if case.texture.normalized else float(extent)
        x = (rng.uniform(-1.75, 2.75, n) * unit).astype(np.float32)
        if case.texture.cubemap:
            x = rng.standard_normal(n).astype(np.float32)
        on_edge = rng.random(n) < 0.2
        edges = rng.integers(-2 * extent, 3 * extent + 1, n) / 2 * (unit / extent)
        x = np.where(on_edge, edges.astype(np.float32), x)
        special = rng.random(n) < 0.04
        columns.append(np.where(special, rng.choice(SPECIAL, n), x).astype(np.float32))
    return _words(case, rng, columns, n)


def _fine(case: Case, rng, n: int) -> np.ndarray:
    """Within the texture; many at or next to multiples of 1/512 texel."""
    columns = []
    for extent in _extents(case):
        steps = rng.integers(-256, 512 * extent + 256, n)
        x = (steps / 512).astype(np.float32)
        x = np.where(rng.random(n) < 0.3, np.nextafter(x, np.float32(np.inf)), x)
        x = np.where(rng.random(n) < 0.3, np.nextafter(x, np.float32(-np.inf)), x)
        x = np.where(rng.random(n) < 0.4, rng.uniform(-0.5, extent + 0.5, n), x).astype(np.float32)
        if case.texture.normalized:
            x = (x.astype(np.float64) / extent).astype(np.float32)
        columns.append(x)
    return _words(case, rng, columns, n)


def _lattice(case: Case, rng, n: int) -> np.ndarray:
    """Multiples of 1/256 texel from the first texel's centre to the last one's."""
    columns = [
        (0.5 + rng.integers(0, 256 * (extent - 1) + 1, n) / 256).astype(np.float32)
        for extent in _extents(case)
    ]
    return _words(case, rng, columns, n)


def _texels(case: Case, rng, n: int) -> np.ndarray:
    """Every texel's centre in turn, of a 1-D texture."""
    x = np.arange(n, dtype=np.float32) + np.float32(0.5)
    return _words(case, rng, [x], n)


def _integers(case: Case, rng, n: int) -> np.ndarray:
    columns = []
    for extent in _extents(case):
        x = rng.integers(-3, extent + 3, n)
        far = rng.choice(np.array([-(2**31), 2**31 - 1, 1 << 20, -(1 << 16)]), n)
        columns.append(np.where(rng.random(n) < 0.05, far, x).astype(np.int32))
    return _words(case, rng, columns, n)


def _bytes(case: Case, rng, n: int) -> np.ndarray:
    """For surfaces: x in bytes of the element, and words to store."""
    words = _integers(case, rng, n)
    texel = np.dtype(case.texture.dtype).itemsize * case.texture.channels
    words[:, 0] = words[:, 0] * np.uint32(texel)
    return words


def _each_texel(case: Case, rng, n: int) -> np.ndarray:
    """For surface stores: each thread its own element, in and around the surface."""
    words = np.zeros((n, 8), np.uint32)
    extents = [*_extents(case), 1, 1][:3]
    at = np.arange(n)
    for k, extent in enumerate(extents):
        pad = 2 if k < len(_extents(case)) else 0
        words[:, k] = (at % (extent + 2 * pad) - pad).astype(np.int32).view(np.uint32)
        at = at // (extent + 2 * pad)
    inside = at == 0
    words[~inside, 0] = 1 << 24  # no two threads at one element
    words[:, 4:] = rng.integers(0, 1 << 32, (n, 4), dtype=np.uint32)
    floats = rng.random(n) < 0.6
    reals = (rng.standard_normal((n, 4)) * 2.0 ** rng.integers(-20, 20, (n, 4))).astype(np.float32)
    words[floats, 4:] = reals.view(np.uint32)[floats]
    small = rng.random(n) < 0.3
    words[small, 4:] = rng.integers(-300, 300, (n, 4)).astype(np.int32).view(np.uint32)[small]
    return words


def _each_byte(case: Case, rng, n: int) -> np.ndarray:
    words = _each_texel(case, rng, n)
    texel = np.dtype(case.texture.dtype).itemsize * case.texture.channels
    words[:, 0] = words[:, 0] * np.uint32(texel)
    return words


INPUTS = {
    "spread": _spread,
    "fine": _fine,
    "lattice": _lattice,
    "texels": _texels,
    "integers": _integers,
    "bytes": _bytes,
    "each_texel": _each_texel,
    "each_byte": _each_byte,
}
