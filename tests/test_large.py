"""Arrays of more than 2^31 elements, for real: emulating them takes an hour. test_plan.py plans
larger ones without memory."""

import os

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU

ELEMENTS = 1 << 31
GIB = 1 << 30


pytestmark = pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")


@pytest.fixture(autouse=True)
def memory():
    """Room on both sides."""
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    on_device = next(d.memory_bytes for d in smemkern.devices() if d.name.startswith("cuda"))
    if host < 30 * GIB or on_device < 20 * GIB:
        pytest.skip("needs 30 GiB of host and 20 GiB of device memory")


@pytest.mark.parametrize("variant", ["padded", "vectorized"])
def test_transpose(variant):
    rows, cols = 46_341, 46_349  # odd: every block of the last row and column is cut off
    assert rows * cols > ELEMENTS
    i, j = np.arange(rows, dtype=np.uint8), np.arange(cols, dtype=np.uint8)
    x = i[:, None] * np.uint8(7) + j * np.uint8(13)
    y = smemkern.transpose(x, variant=variant, device="cuda")
    assert np.array_equal(y, x.T)


@pytest.mark.parametrize("variant", ["tiled", "vectorized", "pipelined"])
def test_gemm(variant, rng):
    """A = u v^T, so that A B = u (v^T B) is known without a product of this size."""
    m, k, n = 32_771, 65_537, 5
    assert m * k > ELEMENTS
    u, v = rng.standard_normal(m).astype("f4"), rng.standard_normal(k).astype("f4")
    a, b = np.multiply.outer(u, v), rng.standard_normal((k, n)).astype("f4")
    result = smemkern.gemm(a, b, variant=variant, device="cuda")
    exact = np.multiply.outer(u.astype("f8"), v.astype("f8") @ b)
    size = np.multiply.outer(abs(u).astype("f8"), abs(v).astype("f8") @ abs(b))
    # One rounding more than usual: that of a's elements.
    assert np.all(abs(result - exact) <= (k + 3) * np.finfo("f4").eps * size)
