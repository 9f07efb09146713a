"""Cases of texture and surface instructions, for any device.

A thread loads eight words, which are coordinates and other operands, and stores four words of
result. So the same arrays can be compared between an H200, the emulator and a model.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from texture_inputs import BLOCK, GEOMETRY, WORDS, Case, Texture, coordinates

RESULT = "{%d0, %d1, %d2, %d3}"


def tex(geometry: str, result: str = "f32", coordinate: str = "f32", rest: str = "") -> str:
    at = coordinates(geometry.split(".")[-1])
    return f"tex.{geometry}.v4.{result}.{coordinate} {RESULT}, [%t, {at}]{rest};"


def geometry_of(texture: Texture) -> str:
    if texture.cubemap:
        return "acube" if texture.layered else "cube"
    return ("a" if texture.layered else "") + f"{len(texture.shape) - texture.layered}d"


MODES = ("clamp", "border", "wrap", "mirror")


def probes() -> list[Case]:
    """What shows how coordinates become weights, and how texels are weighed and added."""
    cases = []
    for size in (1, 2, 7, 64, 1000):
        t = Texture((size,), filter="linear", texels="index")
        cases.append(Case(f"weights 1d {size}", t, tex("1d"), "fine", 64))
    for size in (1, 2, 3, 5, 7, 64, 100, 1000, 4097):
        for address in ("clamp", "wrap"):
            t = Texture((size,), filter="linear", texels="index", normalized=True, address=address)
            cases.append(Case(f"weights 1d {size} normalized {address}", t, tex("1d"), "fine", 64))
    for size in (3, 7, 100, 1000):
        t = Texture((size,), texels="index", normalized=True)
        cases.append(Case(f"point 1d {size} normalized", t, tex("1d"), "fine", 64))
        t = Texture((size,), texels="index")
        cases.append(Case(f"point 1d {size}", t, tex("1d"), "fine", 64))
    t = Texture((2, 2), filter="linear", texels="corners", channels=4)
    cases.append(Case("corners 2d", t, tex("2d"), "lattice", 256))
    for texels in ("corners", "corners_high"):
        t = Texture((2, 2, 2), filter="linear", texels=texels, channels=4)
        cases.append(Case("corners 3d " + texels, t, tex("3d"), "lattice", 256))
    for shape in ((64,), (9, 7), (5, 6, 7)):
        geometry = f"{len(shape)}d"
        for texels in ("random", "near"):
            for dtype in ("float32", "float16"):
                t = Texture(shape, dtype, filter="linear", texels=texels)
                name = f"sum {geometry} {dtype} {texels}"
                cases.append(Case(name, t, tex(geometry), "lattice", 128))
        for dtype in ("uint8", "int8", "uint16", "int16"):
            t = Texture(shape, dtype, filter="linear", read="normalized_float")
            cases.append(Case(f"sum {geometry} {dtype}", t, tex(geometry), "lattice", 128))
    for dtype, n in (
        ("uint8", 256),
        ("int8", 256),
        ("uint16", 65536),
        ("int16", 65536),
        ("float16", 65536),
    ):
        read = "element" if dtype == "float16" else "normalized_float"
        # one row of at most 131072 texels
        t = Texture((n,), dtype, read=read, texels="all")
        cases.append(Case(f"convert {dtype}", t, tex("1d"), "texels", n // BLOCK))
    return cases


def address_cases() -> list[Case]:
    cases = []
    shapes = [
        ((13,), False),
        ((5, 7), False),
        ((3, 5, 6), False),
        ((4, 9), True),
        ((3, 4, 7), True),
    ]
    for (shape, layered), mode, filter, normalized in product(
        shapes, MODES, ("point", "linear"), (False, True)
    ):
        t = Texture(
            shape,
            address=mode,
            filter=filter,
            normalized=normalized,
            layered=layered,
            border=(1.5, -2.0, 0.25, 8.0),
            texels="near",
        )
        if geometry_of(t) == "1d" and mode == "border" and filter == "linear":
            continue  # the GPU also weighs the border above and below, if y has this mode too
        name = f"{geometry_of(t)} {mode} {filter}{' normalized' * normalized}"
        cases.append(Case(name, t, tex(geometry_of(t)), count=8))
    mixed = Texture(
        (6, 11),
        address=("wrap", "border"),
        filter="linear",
        normalized=True,
        channels=2,
        border=(3.0, 4.0, 5.0, 6.0),
    )
    cases.append(Case("2d wrap and border", mixed, tex("2d"), count=8))
    for dtype, channels in product(
        ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"), (1, 2, 4)
    ):
        t = Texture((6, 5), dtype, channels, address="border", border=(1.5, -2.0, 0.25, 300.0))
        result = {"u": "u32", "i": "s32", "f": "f32"}[np.dtype(dtype).kind]
        cases.append(Case(f"2d {dtype} x {channels}", t, tex("2d", result), count=2))
        t = Texture((3, 5), dtype, channels, layered=True)
        cases.append(
            Case(f"a1d {dtype} x {channels} s32", t, tex("a1d", result, "s32"), "integers", 2)
        )
        if dtype not in ("uint32", "int32", "float16", "float32"):
            t = Texture(
                (6, 5),
                dtype,
                channels,
                address="border",
                filter="linear",
                read="normalized_float",
                border=(0.5, -2.0, 0.25, 300.0),
            )
            cases.append(Case(f"2d {dtype} x {channels} normalized float", t, tex("2d"), count=4))
    return cases


def integer_cases() -> list[Case]:
    cases = []
    for mode in ("clamp", "border"):
        for shape in ((5, 7), (3, 5, 6)):  # tex.1d of integers is for linear memory
            t = Texture(shape, address=mode, border=(7.0, 8.0, 9.0, 10.0))
            geometry = f"{len(shape)}d"
            cases.append(
                Case(f"s32 {geometry} {mode}", t, tex(geometry, "f32", "s32"), "integers", 4)
            )
        t = Texture((4, 5, 3), address=mode, border=(7.0, 8.0, 9.0, 10.0), layered=True)
        cases.append(Case(f"s32 a2d {mode}", t, tex("a2d", "f32", "s32"), "integers", 4))
    for dtype, channels in (
        ("float32", 1),
        ("uint8", 4),
        ("int16", 2),
        ("float16", 4),
        ("int32", 1),
    ):
        t = Texture((100,), dtype, channels, memory="linear")
        result = {"u": "u32", "i": "s32", "f": "f32"}[np.dtype(dtype).kind]
        cases.append(
            Case(f"linear {dtype} x {channels}", t, tex("1d", result, "s32"), "integers", 4)
        )
    t = Texture((100,), "uint8", 1, read="normalized_float", memory="linear")
    cases.append(Case("linear normalized float", t, tex("1d", "f32", "s32"), "integers", 4))
    for filter, mode in product(("point", "linear"), ("clamp", "border")):
        t = Texture((9, 32), address=mode, filter=filter, memory="pitch", texels="near")
        cases.append(Case(f"pitch {filter} {mode}", t, tex("2d"), count=8))
    t = Texture((9, 32), filter="linear", address="mirror", normalized=True, memory="pitch")
    cases.append(Case("pitch normalized", t, tex("2d"), count=8))
    return cases


def cube_cases() -> list[Case]:
    cases = []
    for filter, size, layers in product(("point", "linear"), (1, 4, 7), (0, 3)):
        shape = (*((layers,) if layers else ()), 6, size, size)
        t = Texture(
            shape, filter=filter, normalized=True, cubemap=True, layered=bool(layers), texels="near"
        )
        geometry = geometry_of(t)
        cases.append(Case(f"{geometry} {filter} {size}", t, tex(geometry), count=32))
        if filter == "linear" and size > 1:
            body = f"tld4.r.{geometry}.v4.f32.f32 {RESULT}, [%t, {coordinates(geometry)}];"
            cases.append(Case(f"tld4 {geometry} {size}", t, body, count=16))
    return cases


def other_cases() -> list[Case]:
    cases = []
    for component, mode, normalized in product("rgba", MODES, (False, True)):
        t = Texture(
            (6, 5), channels=4, address=mode, normalized=normalized, border=(7.0, 8.0, 9.0, 10.0)
        )
        body = f"tld4.{component}.2d.v4.f32.f32 {RESULT}, [%t, {coordinates('2d')}];"
        cases.append(Case(f"tld4.{component} {mode}{' normalized' * normalized}", t, body, count=4))
    t = Texture((6, 5), "uint8", 4)
    body = f"tld4.g.2d.v4.u32.f32 {RESULT}, [%t, {coordinates('2d')}];"
    cases.append(Case("tld4 uint8", t, body, count=4))
    t = Texture((6, 5), "uint8", 2, read="normalized_float", filter="linear")
    body = f"tld4.b.2d.v4.f32.f32 {RESULT}, [%t, {coordinates('2d')}];"
    cases.append(Case("tld4 of a missing channel", t, body, count=4))
    t = Texture((60, 50), texels="index")
    body = f"tld4.r.2d.v4.f32.f32 {RESULT}, [%t, {coordinates('2d')}];"
    cases.append(Case("tld4 footprint", t, body, "fine", count=64))
    t = Texture((60, 50), texels="index", normalized=True)
    cases.append(Case("tld4 footprint normalized", t, body, "fine", count=64))
    t = Texture((6, 5), address="mirror", normalized=True)
    body = f"tld4.r.2d.v4.f32.f32 {RESULT}, [%t, {coordinates('2d')}], {{%c6, %c7}};"
    cases.append(Case("tld4 offset", t, body, count=8))
    for geometry, shape in (("1d", (13,)), ("2d", (9, 7)), ("3d", (5, 6, 7)), ("a2d", (3, 6, 7))):
        offset = ", " + GEOMETRY[geometry][1].format(*WORDS)
        for mode, normalized in (("clamp", False), ("mirror", True)):
            t = Texture(
                shape,
                address=mode,
                normalized=normalized,
                filter="linear",
                layered=geometry[0] == "a",
            )
            cases.append(Case(f"offset {geometry} {mode}", t, tex(geometry, rest=offset), count=8))
        t = Texture(shape, layered=geometry[0] == "a")
        body = tex(geometry, "f32", "s32", offset)
        if geometry != "1d":
            cases.append(Case(f"offset {geometry} s32", t, body, "integers", 8))
        t = Texture(shape, filter="linear", layered=geometry[0] == "a")
        cases.append(Case(f"level {geometry}", t, tex("level." + geometry, rest=", %c5"), count=8))
        cases.append(Case(f"base {geometry}", t, tex("base." + geometry), count=8))
        gradient = {"1": "{%c5}", "2": "{%c5, %c6}", "3": "{%c5, %c6, %c7, %c7}"}[geometry[-2]]
        body = tex("grad." + geometry, rest=f", {gradient}, {gradient}")
        cases.append(Case(f"grad {geometry}", t, body, count=8))
    t = Texture((9, 7))
    cases.append(Case("level s32", t, tex("level.2d", "f32", "s32", ", %c6"), "integers", 8))
    for dtype in ("float32", "float16", "uint8"):
        read = "normalized_float" if dtype == "uint8" else "element"
        t = Texture((9, 7), dtype, 4, filter="linear", read=read)
        body = f"tex.2d.v2.f16x2.f32 {{%d0, %d1}}, [%t, {coordinates('2d')}];"
        cases.append(Case(f"f16x2 {dtype}", t, body, count=8))
        body = (
            f"tex.2d.v4.f16.f32 {{%h0, %h1, %h2, %h3}}, [%t, {coordinates('2d')}];"
            "mov.b32 %d0, {%h0, %h1}; mov.b32 %d1, {%h2, %h3};"
        )
        cases.append(Case(f"f16 {dtype}", t, body, count=8))
    t = Texture((9, 7), "uint16", 2)
    cases.append(Case("integers as floats", t, tex("2d", "f32"), count=2))
    t = Texture((9, 7), "float32", 2)
    cases.append(Case("floats as integers", t, tex("2d", "u32"), count=2))
    body = f"tex.2d.v4.f32.f32 {RESULT}|%p, [%t, {coordinates('2d')}]; selp.b32 %d3, 1, 0, %p;"
    cases.append(Case("resident", t, body, count=2))
    return cases


SIZES = ("width", "height", "depth")
SURFACE_QUERIES = ("channel_data_type", "channel_order", "array_size", "memory_layout")
QUERIES = (
    *SURFACE_QUERIES,
    *("normalized_coords", "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2"),
    *("num_mipmap_levels", "num_samples"),
)


def query_cases() -> list[Case]:
    textures = [
        Texture((13,)),
        Texture(
            (5, 7),
            "uint8",
            4,
            address=("wrap", "mirror"),
            normalized=True,
            filter="linear",
            read="normalized_float",
        ),
        Texture((3, 5, 6), "float16", 2, address=("border", "clamp", "border")),
        Texture((3, 6), "int16", 1, layered=True),
        Texture((3, 6, 5), "uint32", 4, layered=True),
        Texture((6, 4, 4), cubemap=True, normalized=True),
        Texture((2, 6, 4, 4), cubemap=True, layered=True, normalized=True),
    ]
    cases = []
    for k, t in enumerate(textures):
        for query in (*SIZES, "level.width"):
            level = ", 0" if "level" in query else ""
            body = f"txq.{query}.b32 %d0, [%t]{level};"
            cases.append(Case(f"txq.{query} {k}", t, body, count=1))
        for query in SIZES:
            body = f"suq.{query}.b32 %d0, [%t];"
            cases.append(Case(f"suq.{query} {k}", t, body, count=1, surface=True))
    return cases


def table_cases() -> list[Case]:
    """Queries that the driver (580) refuses to load, as the emulator does."""
    t = Texture(
        (5, 7),
        "uint8",
        4,
        address=("wrap", "mirror"),
        normalized=True,
        filter="linear",
        read="normalized_float",
    )
    cases = [Case(f"txq.{q}", t, f"txq.{q}.b32 %d0, [%t];", count=1) for q in QUERIES]
    for q in SURFACE_QUERIES:
        cases.append(Case(f"suq.{q}", t, f"suq.{q}.b32 %d0, [%t];", count=1, surface=True))
    return cases


def surface_cases() -> list[Case]:
    cases = []
    shapes = {"1d": (13,), "2d": (5, 7), "3d": (3, 5, 6), "a1d": (4, 9), "a2d": (3, 4, 7)}
    for (geometry, shape), mode in product(shapes.items(), ("clamp", "zero")):
        t = Texture(shape, "uint32", layered=geometry[0] == "a")
        body = f"suld.b.{geometry}.b32.{mode} %d0, [%t, {coordinates(geometry)}];"
        cases.append(Case(f"suld {geometry} {mode}", t, body, "bytes", 4, surface=True))
        body = f"sust.b.{geometry}.b32.{mode} [%t, {coordinates(geometry)}], %c7;"
        if mode == "zero":
            cases.append(Case(f"sust {geometry} {mode}", t, body, "each_byte", 4, surface=True))
    words = {1: ("b8", "%h"), 2: ("b16", "%h"), 4: ("b32", "%d"), 8: ("b64", "%w")}
    for dtype, channels in (
        ("uint8", 1), ("uint8", 2), ("uint8", 4), ("uint16", 1), ("uint16", 2), ("uint16", 4),
        ("uint32", 2), ("uint32", 4), ("float32", 4), ("float16", 4),
    ):  # fmt: skip
        size = np.dtype(dtype).itemsize
        kind, register = words[size]
        vector = f".v{channels}" if channels > 1 else ""
        registers = ", ".join(f"{register}{k}" for k in range(channels))
        registers = f"{{{registers}}}" if channels > 1 else registers
        unpack = "".join(f"cvt.u32.u16 %d{k}, %h{k};" for k in range(channels)) if size < 4 else ""
        t = Texture((6, 9), dtype, channels)
        body = f"suld.b.2d{vector}.{kind}.clamp {registers}, [%t, {coordinates('2d')}];{unpack}"
        cases.append(Case(f"suld {dtype} x {channels}", t, body, "bytes", 2, surface=True))
    t = Texture((6, 8), "uint32", 2)
    body = "suld.b.2d.b64.zero %w0, [%t, {%c0, %c1}]; mov.b64 {%d0, %d1}, %w0;"
    cases.append(Case("suld b64", t, body, "bytes", 2, surface=True))
    body = "suld.b.2d.b32.zero %d0, [%t, {%c0, %c1}];"
    cases.append(Case("suld b32 of 8 bytes", t, body, "bytes", 2, surface=True))
    t = Texture((6, 16), "uint8")
    body = "shl.b32 %c0, %c0, 2; suld.b.2d.b32.zero %d0, [%t, {%c0, %c1}];"
    cases.append(Case("suld b32 of 1 byte", t, body, "bytes", 2, surface=True))
    for dtype, channels in product(
        ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"), (1, 2, 4)
    ):
        t = Texture((40, 50), dtype, channels)
        body = "sust.p.2d.v4.b32.zero [%t, {%c0, %c1}], {%c4, %c5, %c6, %c7};"
        cases.append(Case(f"sust.p {dtype} x {channels}", t, body, "each_texel", 20, surface=True))
    return cases


def reduction_cases() -> list[Case]:
    cases = []
    for operation, kinds in {
        "add": ("u32", "s32", "u64"), "min": ("u32", "s32", "u64", "s64"),
        "max": ("u32", "s32", "u64", "s64"), "and": ("b32",), "or": ("b32",),
    }.items():  # fmt: skip
        for kind in kinds:
            wide = kind.endswith("64")
            t = Texture((5, 8), "uint32", 2 if wide else 1)
            value = "mov.b64 %w0, {%c5, %c7};" if wide else ""
            register = "%w0" if wide else "%c7"
            body = value + f"sured.b.{operation}.2d.{kind}.zero [%t, {{%c0, %c1}}], {register};"
            cases.append(Case(f"sured {operation} {kind}", t, body, "bytes", 4, surface=True))
        t = Texture((5, 8), "uint32")
        body = f"sured.p.{operation}.2d.b32.zero [%t, {{%c0, %c1}}], %c7;"
        cases.append(Case(f"sured.p {operation}", t, body, "integers", 4, surface=True))
        t = Texture((5, 8), "int32")
        cases.append(Case(f"sured.p {operation} int32", t, body, "integers", 4, surface=True))
    t = Texture((3, 5, 8), "uint32")
    body = "sured.b.add.3d.u32.clamp [%t, {%c0, %c1, %c2, %c2}], %c7;"
    cases.append(Case("sured 3d clamp", t, body, "bytes", 4, surface=True))
    return cases


def all_cases() -> list[Case]:
    return [
        *probes(),
        *address_cases(),
        *integer_cases(),
        *cube_cases(),
        *other_cases(),
        *query_cases(),
        *surface_cases(),
        *reduction_cases(),
    ]
