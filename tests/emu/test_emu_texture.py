"""tex, tld4 and surfaces on both devices against a model in NumPy, and against an H200.

texture_h200.json holds checksums of what an H200 (driver 580) made of the cases of texture_cases.py
(validation/textures.py).
"""

from __future__ import annotations

import json
import zlib
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from texture_cases import MODES, RESULT, all_cases, geometry_of, table_cases, tex
from texture_inputs import GEOMETRY, HEADER, WORDS, Case, Texture, coordinates
from texture_model import Model
from texture_run import run

import smemkern
from checks import HAS_GPU

SHAPES = {"1d": (13,), "2d": (5, 7), "3d": (3, 4, 5), "a1d": (4, 9), "a2d": (3, 4, 7)}
TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32")


RECORDED = json.loads((Path(__file__).parent / "texture_h200.json").read_text())


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_the_same_bits_as_an_h200(case, device):
    got = run(case, device=device)
    sums = {key: zlib.crc32(np.ascontiguousarray(a).tobytes()) for key, a in got.items()}
    assert sums == {key: RECORDED[key] for key in sums}


def random_case(rng: np.random.Generator, number: int) -> Case:
    """A texture of any type and options, read by one instruction. (A 1-D texture has no border
    along y, which a GPU's linear filter weighs, too.)"""
    geometry = str(rng.choice([*SHAPES, "cube", "acube"]))
    cubemap, layered = "cube" in geometry, geometry[0] == "a"
    edge = int(rng.integers(1, 17))
    shape = (6, edge, edge) if cubemap else tuple(rng.integers(1, 17, int(geometry[-2])).tolist())
    dtype = str(rng.choice(TYPES))
    is_float = dtype.startswith("float")
    small = is_float or np.dtype(dtype).itemsize < 4
    as_float = bool(rng.integers(2)) and small and not is_float
    linear = bool(rng.integers(2)) and (is_float or as_float)
    modes = [m for m in MODES if m != "border" or not (linear and geometry in ("1d", "a1d"))]
    texture = Texture(
        (int(rng.integers(1, 5)), *shape) if layered else shape,
        dtype,
        int(rng.choice((1, 2, 4))),
        str(rng.choice(modes)),
        "linear" if linear else "point",
        cubemap or bool(rng.integers(2)),
        "normalized_float" if as_float else "element",
        tuple(rng.uniform(0, 1, 4).tolist()) if is_float else (0.0,) * 4,
        layered,
        cubemap,
    )
    kind = "f32" if is_float or as_float else "u32" if dtype[0] == "u" else "s32"
    return Case(f"random {number}", texture, tex(geometry, kind), count=2)


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")
def test_both_devices_sample_the_same_bits(seed):
    rng = np.random.default_rng(seed)
    for number in range(300):
        case, one = random_case(rng, number), int(rng.integers(1 << 32))
        emulated, on_gpu = (run(case, one, device)[case.name] for device in ("emu", "cuda"))
        assert (emulated == on_gpu).all(), case


def test_every_record_is_a_case():
    assert {key.split("/")[0] for key in RECORDED} == {case.name for case in all_cases()}


@pytest.mark.parametrize("case", table_cases(), ids=str)
def test_queries_that_the_driver_refuses(case):
    with pytest.raises(smemkern.UnsupportedInstructionError, match="txq|suq"):
        run(case)


@pytest.fixture
def seed():
    value = int(np.random.default_rng().integers(1 << 32))
    print("seed", value)
    return value


def offsets_of(words: np.ndarray, rank: int) -> np.ndarray:
    """%c6 and %c7 as the cases use them."""
    pairs = words[:, 6:].view(np.int32).astype(np.int64)
    return pairs[:, [0, 1, 0][:rank]]


def compare(case: Case, seed: int, sample, device: str = "emu") -> np.ndarray:
    """sample(model, words): expected values and errors. Returns which lanes were compared."""
    texels, words = case.arrays(seed)
    expected, error = sample(Model(case.texture, texels, words), words)
    got = run(case, seed, device)[case.name]
    kind = np.dtype(case.texture.dtype).kind
    as_float = kind == "f" or case.texture.read == "normalized_float"
    got = got.view(np.float32 if as_float else np.int32 if kind == "i" else np.uint32)
    n = case.texture.channels if "tld4" not in case.body else 4
    compared = ~np.isnan(error)
    wrong = ~(np.abs(got[:, :n] - expected[:, :n]) <= error[:, None]) & compared[:, None]
    assert not wrong.any(), (got[wrong.any(axis=1)], expected[wrong.any(axis=1)])
    return compared


def test_point_sampling(device, seed):
    rng = np.random.default_rng(seed)
    total = 0
    for shape, mode, normalized, dtype in product(SHAPES.items(), MODES, (False, True), TYPES):
        geometry, size = shape
        kind = np.dtype(dtype).kind
        channels = int(rng.choice((1, 2, 4)))
        border = tuple(rng.uniform(-9, 9, 4).astype("f4").tolist()) if kind == "f" else (0.0,) * 4
        t = Texture(
            size,
            dtype,
            channels,
            mode,
            "point",
            normalized,
            border=border,
            layered=geometry[0] == "a",
        )
        case = Case("", t, tex(geometry, {"u": "u32", "i": "s32", "f": "f32"}[kind]), count=1)
        total += compare(case, int(rng.integers(1 << 32)), lambda m, w: m.point(), device).sum()
    assert total > 20000


def test_linear_sampling(device, seed):
    rng = np.random.default_rng(seed)
    total = 0
    for shape, mode, normalized, dtype in product(
        SHAPES.items(), MODES, (False, True), ("float32", "float16", "uint8", "int16")
    ):
        geometry, size = shape
        if device == "cuda" and mode == "border" and geometry in ("1d", "a1d"):
            continue  # a GPU also weighs the border along y
        read = "element" if dtype.startswith("f") else "normalized_float"
        t = Texture(
            size,
            dtype,
            int(rng.choice((1, 2, 4))),
            mode,
            "linear",
            normalized,
            read,
            (1.0, 0.0, 0.0, 1.0),
            geometry[0] == "a",
            texels="near",
        )
        case = Case("", t, tex(geometry), count=2)
        total += compare(case, int(rng.integers(1 << 32)), lambda m, w: m.linear(), device).sum()
    assert total > 20000


@pytest.mark.parametrize("filter", ["point", "linear"])
def test_one_texel(device, seed, filter):
    """Every coordinate reads it, in every address mode but border."""
    for rank, mode in product((1, 2, 3), ("clamp", "wrap", "mirror")):
        t = Texture((1,) * rank, address=mode, filter=filter, normalized=True)
        case = Case("", t, tex(f"{rank}d"), count=2)
        texels, _ = case.arrays(seed)
        got = run(case, seed, device)[""].view(np.float32)[:, 0]
        assert (got == texels.item()).all()


def test_integer_coordinates(device, seed):
    rng = np.random.default_rng(seed)
    for geometry, size in SHAPES.items():
        t = Texture(size, layered=geometry[0] == "a")
        case = Case("", t, tex(geometry, "f32", "s32"), "integers", 4)
        assert compare(case, int(rng.integers(1 << 32)), lambda m, w: m.fetch(), device).sum() > 100


def test_offsets(device, seed):
    rng = np.random.default_rng(seed)
    for (geometry, size), mode in product(SHAPES.items(), ("clamp", "mirror")):
        rank = len(size) - (geometry[0] == "a")
        t = Texture(size, address=mode, normalized=True, layered=geometry[0] == "a")
        rest = ", " + GEOMETRY[geometry][1].format(*WORDS)
        case = Case("", t, tex(geometry, rest=rest), count=2)

        def sample(model, words, rank=rank):
            return model.point(offsets_of(words, rank))

        assert compare(case, int(rng.integers(1 << 32)), sample, device).sum() > 100


@pytest.mark.parametrize("filter", ["point", "linear"])
@pytest.mark.parametrize("layers", [0, 3])
@pytest.mark.parametrize("size", [1, 5, 8])
@pytest.mark.parametrize("mode", MODES)
def test_cubemaps(device, seed, filter, layers, size, mode):
    shape = (*((layers,) if layers else ()), 6, size, size)
    t = Texture(
        shape,
        address=mode,
        filter=filter,
        normalized=True,
        cubemap=True,
        layered=bool(layers),
        texels="near",
    )
    case = Case("", t, tex(geometry_of(t)), count=16)
    sample = (lambda m, w: m.point()) if filter == "point" else (lambda m, w: m.linear())
    assert compare(case, seed, sample, device).sum() > 500


@pytest.mark.parametrize(
    ("mode", "column"), [("clamp", 2), ("wrap", 0), ("mirror", 2), ("border", 9)]
)
def test_edges_of_cubemaps(device, mode, column):
    """Where two faces meet, a coordinate of the face is exactly 1, and the mode decides."""
    texels = np.arange(1, 55, dtype=np.int32).reshape(6, 3, 3)
    texture = smemkern.Texture(texels, address=mode, normalized=True, cubemap=True)
    out = np.zeros(1, np.int32)
    smemkern.Kernel(
        f"""{HEADER}.visible .entry edge(.param .u64 t, .param .u64 out)
{{
    .reg .b64 %t, %out;
    .reg .b32 %v, %r<3>;
    ld.param.u64 %t, [t];
    ld.param.u64 %out, [out];
    mov.b32 %r0, 0f3f800000;
    mov.b32 %r1, 0f00000000;
    tex.cube.v4.s32.f32 {{%v, %r0, %r1, %r2}}, [%t, {{%r0, %r1, %r0, %r0}}];
    st.global.u32 [%out], %v;
    ret;
}}"""
    )(1, 1, texture, out, device=device)
    assert out[0] == (0 if column == 9 else texels[4, 1, column])


def test_gather(device, seed):
    rng = np.random.default_rng(seed)
    for channel, mode, normalized in product(range(4), MODES, (False, True)):
        t = Texture((6, 5), channels=4, address=mode, normalized=normalized, border=(7, 8, 9, 10))
        body = f"tld4.{'rgba'[channel]}.2d.v4.f32.f32 {RESULT}, [%t, {coordinates('2d')}];"
        case = Case("", t, body, count=2)

        def sample(model, words, channel=channel):
            return model.gather(channel)

        assert compare(case, int(rng.integers(1 << 32)), sample, device).sum() > 100


# ---- surfaces ----


def words_in(surface: Texture, words: np.ndarray) -> tuple[np.ndarray, tuple]:
    """Which lanes are inside, and their indices; x of the words in elements. A layer below 0 clamps
    to the last."""
    rank = len(surface.shape) - surface.layered
    axes = [np.minimum(words[:, 4], 1 << 30).astype(np.int32)] if surface.layered else []
    axes += [words[:, k].view(np.int32) for k in reversed(range(rank))]
    inside = np.all([(a >= 0) & (a < n) for a, n in zip(axes, surface.shape, strict=True)], axis=0)
    return inside, tuple(np.clip(a, 0, n - 1) for a, n in zip(axes, surface.shape, strict=True))


def test_surface_loads(device, seed):
    rng = np.random.default_rng(seed)
    for (geometry, shape), mode in product(SHAPES.items(), ("clamp", "zero")):
        t = Texture(shape, "uint32", layered=geometry[0] == "a")
        body = f"suld.b.{geometry}.b32.{mode} %d0, [%t, {coordinates(geometry)}];"
        case = Case("", t, body, "bytes", 2, surface=True)
        one = int(rng.integers(1 << 32))
        texels, words = case.arrays(one)
        words[:, 0] = (words[:, 0].view(np.int32) // 4).view(np.uint32)
        inside, at = words_in(t, words)
        expected = texels[(*at, 0)]
        if mode == "zero":
            expected = np.where(inside, expected, 0)
        assert (run(case, one, device)[""][:, 0] == expected).all()


def test_surface_stores(device, seed):
    for geometry, shape in SHAPES.items():
        t = Texture(shape, "uint32", layered=geometry[0] == "a")
        body = f"sust.b.{geometry}.b32.zero [%t, {coordinates(geometry)}], %c7;"
        case = Case("", t, body, "each_byte", 2, surface=True)
        texels, words = case.arrays(seed)
        if t.layered:  # a layer inside for some threads; no two at one element
            continue
        got = run(case, seed, device)["/texels"]
        words[:, 0] = (words[:, 0].view(np.int32) // 4).view(np.uint32)
        inside, at = words_in(t, words)
        expected = texels.copy()
        expected[(*(a[inside] for a in at), 0)] = words[inside, 7]
        assert (got == expected).all() and inside.sum() > 10


@pytest.mark.parametrize("operation", ["add", "min", "max", "and", "or"])
def test_surface_reductions(device, seed, operation):
    ufunc = {
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "min": np.minimum,
        "max": np.maximum,
        "add": np.add,
    }
    kind = "b32" if operation in ("and", "or") else "u32"
    t = Texture((5, 8), "uint32")
    body = f"sured.b.{operation}.2d.{kind}.zero [%t, {{%c0, %c1}}], %c7;"
    case = Case("", t, body, "bytes", 4, surface=True)
    texels, words = case.arrays(seed)
    got = run(case, seed, device)["/texels"]
    words[:, 0] = (words[:, 0].view(np.int32) // 4).view(np.uint32)
    inside, at = words_in(t, words)
    ufunc[operation].at(texels, (*(a[inside] for a in at), 0), words[inside, 7])
    assert (got == texels).all()


@pytest.mark.parametrize("geometry", list(SHAPES))
def test_sizes(geometry):
    t = Texture(SHAPES[geometry], layered=geometry[0] == "a")
    shape = SHAPES[geometry][t.layered :]
    width = Case("", t, "txq.width.b32 %d0, [%t]; txq.height.b32 %d1, [%t];", count=1)
    got = run(width)[""][0]
    assert got[0] == shape[-1]
    if len(shape) > 1:
        assert got[1] == shape[-2]


def test_a_texture_is_read_as_it_was_at_the_launch():
    array = np.arange(4, dtype=np.float32)
    texture = smemkern.Texture(array)
    case = Case("", Texture((4,)), tex("1d"), count=1)
    array[:] = 7
    words, out = np.zeros((128, 8), np.uint32), np.zeros((128, 4), np.float32)
    smemkern.Kernel(case.ptx, "sample")(1, 128, texture, words, out, device="emu")
    assert (out[:, 0] == 7).all() and (array == 7).all()
