"""Mipmaps: seeded textures with several levels, read by one instruction each.

    python mipmap_cases.py SEED NUMBER FILE     runs the cases by the driver, to FILE (.npz)

The driver is libcuda.so.1, so this runs on a GPU, too.
"""

import ctypes
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "validation"), str(ROOT / "tests" / "emu")]
from texture_cases import MODES, geometry_of, tex  # noqa: E402
from texture_inputs import BLOCK, Case, Texture  # noqa: E402

import textures  # noqa: E402

BASE, LEVEL, GRADIENTS, INTEGER_LEVEL = "base", "level", "grad", "integer level"
TYPES = ("float32", "float16", "uint8", "int8", "uint16", "int16", "uint32", "int32")
GRADIENT = {
    1: ("{%c5}", "{%c6}"),
    2: ("{%c5, %c6}", "{%c7, %c5}"),
    3: ("{%c5, %c6, %c7, %c7}", "{%c7, %c5, %c6, %c6}"),
}


@dataclass(frozen=True)
class Mipmap:
    name: str
    texture: Texture  # of level 0
    levels: int
    how: str
    linear_levels: bool
    bias: float
    clamp: tuple[float, float]
    seed: int

    @property
    def rank(self) -> int:
        t = self.texture
        return 3 if t.cubemap else len(t.shape) - t.layered

    def level(self, k: int) -> Texture:
        fixed = self.texture.layered + self.texture.cubemap
        sizes = [max(n >> k, 1) for n in self.texture.shape[fixed:]]
        return replace(self.texture, shape=(*self.texture.shape[:fixed], *sizes))

    def texels(self, k: int) -> np.ndarray:
        t, rng = self.level(k), np.random.default_rng([self.seed, k])
        if t.dtype.startswith("float"):
            return rng.uniform(-1, 1, (*t.shape, t.channels)).astype(t.dtype)
        return t.values(rng)

    @property
    def case(self) -> Case:
        t, geometry = self.texture, geometry_of(self.texture)
        kind = "f32"
        if t.dtype[0] in "iu" and t.read == "element":
            kind = "u32" if t.dtype[0] == "u" else "s32"
        if self.how == BASE:
            body = tex(geometry if self.seed % 2 else f"base.{geometry}", kind)
        elif self.how == GRADIENTS:
            rest = ", " + ", ".join(GRADIENT[self.rank])
            body = tex(f"grad.{geometry}", kind, rest=rest)
        else:
            coordinate = "f32" if self.how == LEVEL else "s32"
            body = tex(f"level.{geometry}", kind, coordinate, ", %c5")
        return Case(self.name, t, body, count=2)

    def words(self) -> np.ndarray:
        """What the threads load: coordinates, a layer, and a level or gradients."""
        n, rng, t = 2 * BLOCK, np.random.default_rng([self.seed, 99]), self.texture
        words = np.zeros((n, 8), np.uint32)
        sizes = (self.texture.shape[::-1] + (1, 1))[:3]
        if self.how == INTEGER_LEVEL:
            words[:, :3] = rng.integers(-2, np.array(sizes) + 2, (n, 3)).astype(np.int32).view("u4")
            words[:, 5] = rng.integers(-1, self.levels + 1, n).astype(np.int32).view("u4")
        else:
            x = rng.standard_normal((n, 3)) if t.cubemap else rng.uniform(-1.5, 2.5, (n, 3))
            words[:, :3] = x.astype(np.float32).view("u4")
            if self.how == LEVEL:
                level = rng.uniform(-2, self.levels + 1, n)
                whole = rng.random(n) < 0.2
                level = np.where(whole, np.round(level), level)
                words[:, 5] = level.astype(np.float32).view("u4")
            else:
                step = 2 ** rng.uniform(-self.levels - 1, 1, (n, 1)) * rng.standard_normal((n, 3))
                words[:, 5:] = (step * (rng.random((n, 1)) < 0.97)).astype(np.float32).view("u4")
        if t.layered:
            words[:, 4] = rng.integers(0, t.shape[0], n)
        return words


def random_mipmap(seed: int, number: int) -> Mipmap:
    rng = np.random.default_rng([seed, number])
    geometry = ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube")[number % 7]
    cubemap, layered = "cube" in geometry, geometry[0] == "a"
    edge = int(rng.integers(1, 40))
    shape = (6, edge, edge) if cubemap else tuple(rng.integers(1, 40, int(geometry[-2])).tolist())
    dtype = str(rng.choice(TYPES))
    is_float = dtype.startswith("float")
    as_float = not is_float and np.dtype(dtype).itemsize < 4 and bool(rng.integers(4))
    how = str(rng.choice((BASE, LEVEL, LEVEL, GRADIENTS, GRADIENTS, INTEGER_LEVEL)))
    if how == INTEGER_LEVEL and cubemap:
        how = LEVEL
    # a 1-D texture has no border along y, which a GPU's linear filter weighs, too
    linear = (is_float or as_float) and bool(rng.integers(2))
    modes = [m for m in MODES if m != "border" or geometry not in ("1d", "a1d")]
    texture = Texture(
        (int(rng.integers(1, 4)), *shape) if layered else shape,
        dtype,
        int(rng.choice((1, 2, 4))),
        str(rng.choice(modes)),
        "linear" if linear else "point",
        True,
        "normalized_float" if as_float else "element",
        tuple(rng.uniform(0, 1, 4).tolist()) if is_float else (0.0,) * 4,
        layered,
        cubemap,
    )
    most = edge.bit_length() if cubemap else max(shape).bit_length()
    low = float(rng.choice((0, rng.uniform(-1, 2))))
    return Mipmap(
        f"{number} {geometry} {dtype} {how}",
        texture,
        int(rng.integers(1, most + 1)),
        how,
        (is_float or as_float) and bool(rng.integers(2)),
        float(rng.choice((0, rng.uniform(-2, 2)))),
        (low, low + float(rng.choice((99, rng.uniform(0, 4))))),
        int(rng.integers(1 << 30)),
    )


# ---- by the driver ----


def create(driver: textures.Driver, m: Mipmap) -> ctypes.c_void_p:
    t, made = m.texture, ctypes.c_void_p()
    flags = textures.LAYERED * t.layered | textures.CUBEMAP * t.cubemap
    form = textures.ArrayDescription(
        *textures.extents(m.case), textures.FORMATS[t.dtype], t.channels, flags
    )
    driver("cuMipmappedArrayCreate", ctypes.byref(made), ctypes.byref(form), m.levels)
    for k in range(m.levels):
        level, case = ctypes.c_void_p(), replace(m.case, texture=m.level(k))
        texels, back = m.texels(k), np.zeros_like(m.texels(k))
        driver("cuMipmappedArrayGetLevel", ctypes.byref(level), made, k)
        textures.copy_array(driver, case, level, texels, False)
        textures.copy_array(driver, case, level, back, True)
        assert (back == texels).all(), m.name
    return made


def run(driver: textures.Driver, m: Mipmap) -> np.ndarray:
    resource, handle = textures.Resource(kind=1), ctypes.c_uint64()
    array = create(driver, m)
    resource.memory.array = array
    sampling = textures.make_sampling(m.case)
    sampling.mipmap_filter = m.linear_levels
    sampling.bias, (sampling.lowest, sampling.highest) = m.bias, m.clamp
    parts = [ctypes.byref(one) for one in (handle, resource, sampling)]
    driver("cuTexObjectCreate", *parts, None)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    driver("cuModuleLoadData", ctypes.byref(module), m.case.ptx.encode() + b"\0")
    driver("cuModuleGetFunction", ctypes.byref(function), module, b"sample")
    words = m.words()
    out = np.full((len(words), 4), 0xFEFEFEFE, np.uint32)
    values = [handle, driver.upload(words), driver.upload(out)]
    arguments = (ctypes.c_void_p * 3)(*map(ctypes.addressof, values))
    driver("cuLaunchKernel", function, m.case.count, 1, 1, BLOCK, 1, 1, 0, None, arguments, None)
    driver("cuCtxSynchronize")
    driver.download(values[2], out)
    driver("cuTexObjectDestroy", handle)
    driver("cuMipmappedArrayDestroy", array)
    driver("cuModuleUnload", module)
    for one in values[1:]:
        driver("cuMemFree_v2", one)
    return out


if __name__ == "__main__":
    seed, number, file = sys.argv[1:]
    the_driver = textures.Driver()
    cases = [random_mipmap(int(seed), k) for k in range(int(number))]
    np.savez(file, *[run(the_driver, m) for m in cases])
