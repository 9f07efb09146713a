"""Products of host arrays that go through a GPU in parts: the same bits, by every variant.

The order of the parts and their places are tested on a fake driver (tests/cuda/fake_flows.py); here
it is the kernels whose sums must not depend on how a problem is cut.
"""

from __future__ import annotations

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU, assert_gemm

pytestmark = pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")

TYPES = {"float32": "f4", "float64": "f8", "float16": "f2"}
ROWS = [
    pytest.param(row, dtype, id=f"{row.name}-{dtype}")
    for row in smemkern.variants("gemm")
    for dtype in row.dtypes
    if dtype in TYPES
]
SHAPES = [((1100, 400), (400, 900)), ((2, 700, 301), (2, 301, 650)), ((700, 300), (3, 300, 640))]
SEVERAL = [((2200, 101), (101, 2100)), ((3, 4200), (4200, 2050))]  # blocks where all fits
THIN = [((12, 900), (900, 4103)), ((2056, 700), (700, 16)), ((1, 3000), (3000, 2049))]


@pytest.mark.parametrize("shapes", [*SHAPES, *SEVERAL, *THIN], ids=str)
@pytest.mark.parametrize(("row", "dtype"), ROWS)
def test_bits(row, dtype, shapes, rng) -> None:
    variant = row.name
    if variant.startswith("skinny") and shapes in [*SHAPES, *SEVERAL]:
        pytest.skip("its kernels are chosen by which side is the thin one: here none is")
    a, b = (rng.standard_normal(shape).astype(TYPES[dtype]) for shape in shapes)
    whole = smemkern.gemm(a, b, variant=variant, device="cuda")
    assert_gemm(whole, a, b, row=row)
    everything = a.nbytes + b.nbytes + whole.nbytes
    for limit in (everything * 7 // 10, everything // 2):
        try:
            cut = smemkern.gemm(a, b, variant=variant, device="cuda", max_memory=limit)
        except MemoryError:  # copies of packed blocks are large beside such small matrices
            assert limit < 6_000_000
            continue
        assert np.array_equal(cut, whole)
    if shapes in SEVERAL:
        columns = np.asfortranarray(a), np.asfortranarray(b)
        turned = smemkern.gemm(*columns, variant=variant, device="cuda")
        assert_gemm(turned, a, b, row=row)
        limited = smemkern.gemm(*columns, variant=variant, device="cuda", max_memory=limit)
        assert np.array_equal(turned, limited)
    for devices in ([0, 0], [0, 0, 0]):
        cut = smemkern.gemm(a, b, variant=variant, devices=devices)
        assert np.array_equal(cut, whole)
