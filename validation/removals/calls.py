"""The calls that a mutant must compute correctly: small, odd shapes, with expected results."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import ml_dtypes  # noqa: F401 - makes "bfloat16" a dtype
import numpy as np

import smemkern
from columns import MOST_COLUMNS
from rows import table
from smemkern import reference

# Odd sizes, with every remainder of the vector widths and unrolled loops; tiles with one row or
# column; a last row in each part of a tile, with a last column that is not the tile's; aligned rows
# that a tile covers only in part; more tiles than stages; more than fits into shared memory.
SHAPES = {
    "gemm": [
        *[(67, 45, 31), (64, 64, 64), (5, 129, 7), (33, 17, 0)],
        *[(66, 46, 2), (65, 47, 29), (1, 1, 1), (8, 3, 18), (130, 132, 20), (70, 131, 3)],
        *[(90, 131, 21), (40, 130, 17), (128, 128, 20), (20, 19, 81)],
    ],
    "transpose": [
        *[(67, 45), (1, 129), (64, 64), (33, 130), (1, 1), (3, 2), (80, 31)],
        *[(84, 33), (31, 35), (23, 37), (26, 35), (64, 80), (80, 64), (128, 16), (16, 128)],
    ],
    "probe": [(1000,), (9001,), (5,), (65,), (60001,)],
}
# A kernel with a separate path for whole tiles: aligned and unaligned; edge tiles moved inwards.
WHOLE_TILES = {
    "simt": [(256, 128, 36), (260, 132, 33), (256, 128, 32), (300, 45, 20), (45, 300, 20)]
}
# Kernels with long tiles or a ring of stages: K of several tiles, and of more tiles than stages.
LONG = {
    **dict.fromkeys(("mma_fp16", "mma_bf16"), [(65, 64, 264), (65, 66, 263), (66, 64, 31)]),
    **dict.fromkeys(
        ("mma_tf32x3", "mma_tf32"), [(65, 45, 50), (65, 45, 170), (65, 44, 172), (66, 64, 31)]
    ),
    "sliced_k": [(35, 45, 300)],
    "small_k": [(35, 45, 150)],
    "direct": [(35, 45, 150), (48, 48, 160)],  # by elements, and by vectors
    **dict.fromkeys(("tma", "tf32", "tf32x3", "fp16x3"), [(65, 64, 264), (130, 45, 263)]),
    **dict.fromkeys(("fp16", "bf16", "fp16x1"), [(65, 64, 520), (130, 45, 519)]),
    "fp16x3_guarded": [(65, 64, 264), (130, 45, 263)],
    **dict.fromkeys(("ozaki2", "mma_ozaki2"), [(65, 64, 700), (130, 45, 699)]),
    "fp64": [(65, 64, 136), (65, 45, 135)],
}
# Skinny variants: as many rows or columns as each kernel supports, aligned and odd; K of several
# iterations, and of more than the ring of the thin operand holds.
SKINNY = [
    *[(1, 300, 1100), (2, 70, 1031), (4, 131, 530), (8, 67, 1060), (16, 140, 530), (13, 65, 519)],
    *[(300, 1, 600), (70, 3, 1031), (131, 16, 530), (1, 1, 2100)],
]
ROUNDS = [(m, n, k) for m in (1, 2, 4, 8, 16) for n, k in ((40, 1040), (40, 17000), (41, 17001))]
ROUNDS += [(8, 13, 17001), (9, 13, 17001)]  # shorter than two vectors of 16 bits
# Only large shapes have rows whose sums several warps add.
WARPS = {"gemv": {"lanes": 64}}
# For kernels of each order: aligned; odd sizes that end in each stage of a ring; several panels.
ORDERED = [(64, 72, 40), (67, 45, 31), (67, 45, 180), (67, 45, 150), (67, 45, 90), (35, 45, 300)]
ORDERED += [(67, 45, 211), (62, 45, 120), (63, 45, 120), (64, 45, 120)]
# Split-K, where a second kernel adds the parts; if there are many, its threads share them.
SPLIT = [(67, 45, 300, 2), (67, 45, 300, 3), (1, 70, 2100, 3), (3, 45, 2100, 30)]
SPLIT_AND_ADD = [(5, 64, 2100, 31), (3, 45, 600, 5)]
# Variants of which only synchronisation is removed (mutation.py): these shapes are enough.
ORDER_ONLY = ("skinny", "skinny_mma", "gemv", "fp64", "tma", "tf32", "tf32x3", "fp16x3", "fp16")
ORDER_ONLY += ("bf16", "sliced_k", "small_k", "direct", "sector_aligned")
ORDER_ONLY += ("fp16x1", "fp16x3_guarded", "ozaki2", "mma_ozaki2")
FEW = [(67, 45, 31), (130, 132, 20)]
# Persistent kernels, with 132 blocks that loop over tiles: the tile size along K.
PERSISTENT = {"tf32": 32, "tf32x3": 32, "fp16x3": 64, "fp16": 64, "bf16": 64}
PERSISTENT |= {"fp16x1": 64}
# Tiles for few rows or columns: (M, N, K, split). Ranges that a cluster adds, and a launch; blocks
# with several tiles.
THIN = dict.fromkeys(
    ("fp16", "bf16"), [(5, 64, 520, 1), (130, 24, 519, 3), (20, 96, 1288, 10), (8, 36000, 64, 1)]
)
# Blocks that share tiles of neither operand, of B, or of A; of more steps than the ring has stages.
# Widths are the narrowest, and those of the code that stands first, in the middle and last.
SHARED_K = 1100
SHARERS = [{"multicast": b, "multicast_a": a} for b, a in ((1, 1), (2, 1), (1, 2))]
# The same without split-K: more tiles, of all moduli, than blocks.
MANY_TILES = dict.fromkeys(("ozaki2", "mma_ozaki2"), [(1290, 20, 140), (20, 2570, 300)])
# A cluster packs MN-major rows, 8 or 32 of them: K of which its blocks keep only a part.
PANELS = dict.fromkeys(
    ("tf32x3", "fp16x3", "fp16x3_guarded", "fp16x1"), [(8, 1, 53400), (513, 1, 6700)]
)
# Kernels that multiply tiles whose numbers span many powers of two in another way.
SPANNED = {"fp16x3_guarded": [(65, 64, 264), (67, 45, 180), (130, 45, 263), (67, 45, 31)]}
# Run-time parameters that exercise the purpose of a kernel.
RUNTIME = {"stride_read": {"stride": 3}}
OLD = 2.0  # the value of C in calls with beta != 0


class Image(NamedTuple):
    op: str
    variant: str
    dtype: str
    params: dict[str, int]
    name: str


def arguments(
    image: Image, shape: tuple[int, ...], rng: np.random.Generator, order: str = "NN"
) -> list[np.ndarray]:
    if image.op == "gemm":
        m, n, k = shape
        return [
            np.asarray(rng.standard_normal(s).astype(image.dtype), order="F" if how == "T" else "C")
            for s, how in zip(((m, k), (k, n)), order, strict=True)
        ]
    if image.op == "transpose":
        size = int(image.dtype.removeprefix("b")) // 8
        bits = rng.integers(0, 256, (*shape, size), dtype="u1")
        return [bits.view("c16" if size == 16 else f"u{size}")[..., 0]]
    return [rng.standard_normal(shape).astype("f4")]


def spanned(given: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """With elements of about every power of two from 2^-40 to 2^0, and more: where those of A are
    large, those of B are small, so that sums are small beside the product of the largest."""
    made = [np.empty_like(x) for x in given]  # in the same order
    for x, to in zip(given, made, strict=True):
        to[...] = x * np.exp2(rng.integers(-40, 1, x.shape))
    half = made[0].shape[1] // 2
    made[0][:, :half] *= 2.0**20
    made[1][half:] *= 2.0**20
    return made


def is_right(
    image: Image, given: list[np.ndarray], result: np.ndarray, keywords: dict[str, Any]
) -> bool:
    if image.op == "gemm":
        exact, allowed = reference.gemm_bound(
            *given,
            beta=keywords.get("beta", 0.0),
            c=np.full(result.shape, OLD, result.dtype),
            **reference.bound_keywords(table()[image.op, image.variant]),
        )
        return bool(np.all(np.abs(result.astype(exact.dtype) - exact) <= allowed))
    if image.op == "transpose":
        return result.tobytes() == np.ascontiguousarray(given[0].T).tobytes()
    wanted = reference.probe(*given, **keywords)
    return np.array_equal(result, wanted, equal_nan=True)


def planned(image: Image, given: list[np.ndarray], keywords: dict[str, Any]) -> Any:
    return smemkern._core.plan(image.op, tuple(given), keywords)


def takes(image: Image, given: list[np.ndarray], keywords: dict[str, Any]) -> bool:
    """Whether the variant accepts the call; False for a probe of too many elements."""
    try:
        planned(image, given, keywords)
    except ValueError:
        return False
    return True


def calls(image: Image) -> Iterator[tuple[list[np.ndarray], dict[str, Any]]]:
    """(arguments, keywords) of each call that a mutant must compute correctly."""
    rng = np.random.default_rng(3)
    row = table()[image.op, image.variant]
    every = {"variant": image.variant, **image.params}
    gemm = image.variant if image.op == "gemm" else ""
    whole = {**every, "split": 1} if row.rate else every  # no split-K
    # Whether column-major operands have code of their own.
    by_order = row.rate or row.wgmma or row.ozaki or gemm in ("small_k", "direct")
    for shape in (*LONG.get(gemm, ()), *(ROUNDS if row.skinny else ())):
        yield arguments(image, shape, rng), whole
    for shape in (
        *(FEW if gemm in ORDER_ONLY else SHAPES[image.op]),
        *WHOLE_TILES.get(gemm, ()),
        *(SKINNY if row.skinny else ()),
    ):
        given = arguments(image, shape, rng)
        if takes(image, given, every):
            yield given, every
    adding = [*SHAPES["gemm"][:2], *WHOLE_TILES.get(gemm, ())[:2]]
    adding += [(66, 64, 31), (35, 45, 31)] if row.rate else []
    for m, n, k in adding if image.op == "gemm" else []:
        out = np.full((m, n), OLD, image.dtype)
        yield arguments(image, (m, n, k), rng), {**every, "beta": 0.5, "out": out}
    for shape in ORDERED + (ROUNDS if row.skinny else []) if by_order else []:
        for order in ("NN", "NT", "TN", "TT"):
            yield arguments(image, shape, rng, order), whole
    for shape in ROUNDS if gemm in WARPS else []:
        yield arguments(image, shape, rng, "NT"), {**whole, **WARPS[gemm]}
    for order in ("NT", "TN", "TT") if by_order else ():  # which store C by code of their own
        out = np.full(SHAPES["gemm"][0][:2], OLD, image.dtype)
        given = arguments(image, SHAPES["gemm"][0], rng, order)
        yield given, {**whole, "beta": 0.5, "out": out}
    for m, n, k, split in SPLIT if row.rate else []:
        yield arguments(image, (m, n, k), rng), {**every, "split": split}
    for m, n, k, split in SPLIT_AND_ADD if row.rate else []:
        more = {"split": split, "beta": 0.5, "out": np.full((m, n), OLD, image.dtype)}
        yield arguments(image, (m, n, k), rng), {**every, **more}
    if gemm in PERSISTENT:
        shape = (5, 128, PERSISTENT[gemm] * 140)
        for order in ("NN", "NT", *(("TN", "TT") if image.dtype != "float32" else ())):
            yield arguments(image, shape, rng, order), {**every, "split": 140}
    for m, n, k, split in THIN.get(gemm, ()):
        for order in ("NN", "NT", "TN", "TT"):
            given = arguments(image, (m, n, k), rng, order)
            yield given, {**every, "block_n": 8, "split": split}
    if any(param.name == "swapped" for param in row.params):
        most = MOST_COLUMNS[np.dtype(image.dtype).itemsize, image.params.get("block_m", 128)]
        widths = [96, most] if gemm in THIN else range(64, most + 1, 32)  # tf32: kernels of each
        for block_n, order, form in itertools.product(widths, ("NN", "NT", "TN", "TT"), (1, 2)):
            tile = {"block_n": block_n, "swapped": form}
            yield arguments(image, (260, 264, 40), rng, order), {**whole, **tile}
        for order, form in itertools.product(("NN", "TT"), (1, 2)):
            out = np.full((66, 67), OLD, image.dtype)
            given = arguments(image, (66, 67, 31), rng, order)
            yield given, {**whole, "swapped": form, "beta": 0.5, "out": out}
            given = arguments(image, (66, 67, 264), rng, order)
            yield given, {**every, "swapped": form, "split": 3}
        for order, form in itertools.product(("NN", "NT", "TN", "TT"), (1, 2)):
            for block_n, sharers, split in itertools.product(
                (32, 64, 128, most - 48, most), SHARERS if gemm in THIN else (), (1, 2)
            ):
                sides = (image.params.get("block_m", 128) + 2, block_n + 8)
                sides = sides if form == 1 else sides[::-1]
                tile = {"block_n": block_n, "swapped": form, "split": split, **sharers}
                yield arguments(image, (*sides, SHARED_K), rng, order), {**every, **tile}
    for shape in MANY_TILES.get(gemm, ()):
        yield arguments(image, shape, rng), every
    for shape in PANELS.get(gemm, ()):
        yield arguments(image, shape, rng, "TN"), whole
    for shape in SPANNED.get(gemm, ()):
        for order in ("NN", "NT", "TN", "TT"):
            yield spanned(arguments(image, shape, rng, order), rng), whole
    if image.variant in RUNTIME:
        yield arguments(image, SHAPES[image.op][-1], rng), {**every, **RUNTIME[image.variant]}


def launches(image: Image, given: list[np.ndarray], keywords: dict[str, Any]) -> set[str]:
    """The names of the kernels that a call launches."""
    return {launch["entry"] for launch in planned(image, given, keywords)["launches"]}
