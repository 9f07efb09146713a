"""Products and transposes of host arrays that are cut into blocks: the same bits, by all but gemv.

A fake driver (tests/cuda/fake_flows.py) and tests/pipeline test the order of the blocks and where
they are. Here it is the kernels: their sums must not depend on how a problem is cut, nor on what
products keep of their operands. With max_memory the emulator runs the same tasks as a GPU, here on
shapes just large enough to be cut. devices= names GPUs, so it is tested on one alone.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import smemkern
from checks import SKINNY, assert_gemm

TYPES = {"float32": "f4", "float64": "f8", "float16": "f2"}
ROWS = [
    pytest.param(row, dtype, id=f"{row.name}-{dtype}")
    for row in smemkern.variants("gemm")
    for dtype in row.dtypes
    if dtype in TYPES
]
SHAPES = {  # M, K and K, N: on a GPU, on the emulator
    "matrices": (((1100, 400), (400, 900)), ((280, 20), (20, 300))),
    "batches": (((2, 700, 301), (2, 301, 650)), ((2, 130, 31), (2, 31, 140))),
    "broadcast": (((700, 300), (3, 300, 640)), ((140, 20), (2, 20, 130))),
    "blocks": (((2200, 101), (101, 2100)), ((2050, 9), (9, 3))),  # where all fits, too
    "columns": (((3, 4200), (4200, 2050)), ((3, 20), (20, 2050))),
    "few_rows": (((12, 900), (900, 4103)), ((12, 50), (50, 645))),
    "few_columns": (((2056, 700), (700, 16)), ((645, 50), (50, 16))),
    "one_row": (((1, 3000), (3000, 2049)), ((1, 90), (90, 641))),
}
THIN = ("few_rows", "few_columns", "one_row")
SEVERAL = ("blocks", "columns")
DRAWN = 3  # shapes of each row on the emulator; a GPU takes all


def in_memory(limit: int, call, *operands: np.ndarray, **keywords) -> np.ndarray:
    """The result in so much memory, or in the least that it can do with."""
    try:
        return call(*operands, max_memory=limit, **keywords)
    except MemoryError as error:  # what is made of blocks is large beside such small matrices
        least = int(re.search(r"take (\d+) bytes", str(error))[1])
        assert limit < least < 6_000_000
        return call(*operands, max_memory=least, **keywords)


@pytest.mark.parametrize(("row", "dtype"), ROWS)
def test_bits(row, dtype, device, rng, draw) -> None:
    # kernels of skinny rows are chosen by which side is the thin one
    cases = THIN if row.name in SKINNY else tuple(SHAPES)
    for case in cases if device == "cuda" else draw.sample(cases, DRAWN):
        print(case)
        check_bits(row, dtype, case, device, rng)


def assert_same(row, cut, whole, a, b) -> None:
    """The same bits; gemv's threads follow from the shape of a block."""
    if row.name == "gemv":
        assert_gemm(cut, a, b, row=row)
    else:
        assert np.array_equal(cut, whole)


def check_bits(row, dtype: str, case: str, device: str, rng) -> None:
    keywords = dict(variant=row.name, device=device)
    shapes = SHAPES[case][device == "emu"]
    a, b = (rng.standard_normal(shape).astype(TYPES[dtype]) for shape in shapes)
    whole = smemkern.gemm(a, b, **keywords)
    assert_gemm(whole, a, b, row=row)
    everything = a.nbytes + b.nbytes + whole.nbytes
    for limit in (everything * 7 // 10, everything // 2)[device == "emu" :]:
        assert_same(row, in_memory(limit, smemkern.gemm, a, b, **keywords), whole, a, b)
        assert smemkern.last_transfer().steps > 4  # which is a product in one piece
    if case in SEVERAL:
        assert np.array_equal(in_memory(10**9, smemkern.gemm, a, b, **keywords), whole)
        assert smemkern.last_transfer().steps > 4
        columns = np.asfortranarray(a), np.asfortranarray(b)
        turned = smemkern.gemm(*columns, **keywords)
        assert_gemm(turned, a, b, row=row)
        assert np.array_equal(turned, in_memory(limit, smemkern.gemm, *columns, **keywords))
    if device == "cuda":
        for devices in ([0, 0], [0, 0, 0]):
            cut = smemkern.gemm(a, b, variant=row.name, devices=devices)
            assert_same(row, cut, whole, a, b)


SPLIT = [row.name for row in smemkern.variants("gemm") if "split" in row.params]


@pytest.mark.parametrize("variant", SPLIT)
def test_parts_of_k(variant, device, rng) -> None:
    """They are as many as the whole product has, which a block of it would choose otherwise."""
    m, n = (645, 9) if variant in SKINNY else (300, 140)
    [row] = [row for row in smemkern.variants("gemm") if row.name == variant]
    a, b = (rng.standard_normal(s).astype(row.dtypes[0]) for s in ((m, 480), (480, n)))
    whole = smemkern.gemm(a, b, variant=variant, device=device)
    assert_gemm(whole, a, b, row=row)
    limit = (a.nbytes + b.nbytes + whole.nbytes) // 2
    keywords = dict(variant=variant, device=device)
    assert_same(row, in_memory(limit, smemkern.gemm, a, b, **keywords), whole, a, b)
    assert smemkern.last_transfer().steps > 4


@pytest.mark.parametrize(
    ("row", "m", "n", "k", "limits"),
    [
        ("tf32x3", 2050, 2050, 3, [10**9]),  # of each operand some blocks, that all stay
        ("fp16x3", 260, 600, 10, [195_344, 330_000, 345_000]),  # of a panel
    ],
)
def test_what_products_share(row, m, n, k, limits, device, rng) -> None:
    """What is made of a block is made once, and again of the next block in its place."""
    a, b = rng.standard_normal((m, k), "f4"), rng.standard_normal((k, n), "f4")
    a *= np.ldexp(np.float32(1), rng.integers(-9, 9, (m, 1)))
    b *= np.ldexp(np.float32(1), rng.integers(-9, 9, n))
    keywords = dict(variant=row, split=1, device=device)
    whole = smemkern.gemm(a, b, **keywords)
    for limit in limits:
        assert np.array_equal(smemkern.gemm(a, b, max_memory=limit, **keywords), whole)
        assert smemkern.last_transfer().steps > 12  # 2 x 2 blocks, and steps that make it


@pytest.mark.parametrize("shape", [(300, 280), (2, 150, 333), (1, 2000), (40, 60, 20)], ids=str)
@pytest.mark.parametrize("row", smemkern.variants("transpose"), ids=lambda row: row.name)
def test_transposes(row, shape, device, rng) -> None:
    for dtype in ("u1", "f4", "c16"):
        x = rng.integers(0, 100, shape).astype(dtype)
        turned = np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2)
        for array in (x, turned):
            y = in_memory(x.nbytes, smemkern.transpose, array, variant=row.name, device=device)
            assert np.array_equal(y, np.swapaxes(x, -1, -2))
            assert smemkern.last_transfer().steps > 3 or x.size < 10_000


def test_out_and_progress(device, rng) -> None:
    a, b, before = (rng.standard_normal(s).astype("f4") for s in ((280, 20), (20, 300), (280, 300)))
    keywords = dict(variant="tiled", device=device, alpha=-1, beta=2)
    whole, cut, heard = before.copy(), before.copy(), []
    smemkern.gemm(a, b, out=whole, **keywords)
    memory = dict(max_memory=whole.nbytes)
    told = dict(progress=lambda done, total: heard.append((done, total)))
    assert smemkern.gemm(a, b, out=cut, **memory, **told, **keywords) is cut
    assert np.array_equal(cut, whole) and smemkern.last_transfer().bytes_out == whole.nbytes
    assert heard == sorted(heard) and heard[-1] == (whole.nbytes, whole.nbytes)
    square = before[:, :280].copy()
    moved = dict(variant="sector_aligned", device=device)  # in place, where memory does not matter
    smemkern.transpose(square, out=square, max_memory=2**19, **moved)
    assert np.array_equal(square, before[:, :280].T)
    with pytest.raises(ZeroDivisionError):
        smemkern.gemm(a, b, **memory, device=device, progress=lambda done, total: 1 // 0)
    with pytest.raises(MemoryError, match="1000 may be used"):
        smemkern.gemm(a, b, device=device, max_memory=1000)
