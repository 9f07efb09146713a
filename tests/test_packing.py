"""What packing hands to the product: the same bits, wherever rows begin and however they lie."""

import ml_dtypes
import numpy as np
import pytest

import smemkern

VARIANTS = {"tf32": "f4", "tf32x3": "f4", "fp16x3": "f4", "fp16": "f2", "bf16": ml_dtypes.bfloat16}
VARIANTS |= {"fp16x3_guarded": "f4", "fp16x1": "f4"}


def put(x, order, skew, pitch):
    """x by rows or columns, `skew` elements behind 16-byte boundaries, `pitch` between rows."""
    x = x.T if order == "F" else x
    rows, columns = x.shape
    wide = columns + pitch
    room = np.full(rows * wide + 64, np.nan, x.dtype)
    begin = -room.ctypes.data % 16 // x.itemsize + skew
    view = np.lib.stride_tricks.as_strided(
        room[begin:], x.shape, (wide * x.itemsize, x.itemsize), writeable=True
    )
    view[...] = x
    return view.T if order == "F" else view


def same_bits(variant, shape, of_a, of_b, device, rng, **keywords):
    m, n, k = shape
    dtype = np.dtype(VARIANTS[variant])
    a, b = (rng.standard_normal(s).astype("f4").astype(dtype) for s in ((m, k), (k, n)))
    wanted = smemkern.gemm(
        put(a, "C", 0, -k % 8), put(b, "C", 0, -n % 8), variant=variant, device=device, **keywords
    )
    left, right = put(a, *of_a), put(b, *of_b)
    result = smemkern.gemm(left, right, variant=variant, device=device, **keywords)
    assert result.tobytes() == wanted.tobytes()
    assert not np.isnan(result.astype("f4")).any()
    return left, right


@pytest.mark.parametrize("skew", range(8))
@pytest.mark.parametrize("order", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_that_begin_anywhere(variant, order, skew, device, rng):
    shape = (66 + skew, 67 + skew, 69 - skew)
    same_bits(variant, shape, (order[0], skew, 1), (order[1], 7 - skew, 3), device, rng)


@pytest.mark.parametrize("length", [*range(1, 20), 31, 64, 127, 128, 129, 2047, 2049, 2057, 4100])
@pytest.mark.parametrize("variant", ["tf32x3", "fp16"])
def test_rows_of_any_length(variant, length, device, rng):
    """Ends inside a word, inside 16 bytes, of a warp's share; of A along K, of B across it."""
    same_bits(variant, (3, 70, length), ("C", 3, 2), ("F", 1, 0), device, rng, split=1)
    if length >= 64:
        same_bits(variant, (3, length, 5), ("C", 0, 3), ("C", 3, 2), device, rng, split=1)


@pytest.mark.parametrize("order", ["CC", "FF"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_hazards(variant, order, rng):
    """Nothing is read that is not the matrix's."""
    left, right = same_bits(
        variant, (70, 200, 301), (order[0], 1, 0), (order[1], 3, 0), "emu", rng, split=1
    )
    trace = smemkern.trace("gemm", left, right, variant=variant, split=1)
    assert trace.hazards == ()


def test_requests(rng):
    """16 bytes at a time, both ways; a line's ends, of 8 to 23 elements here, alone are smaller."""
    a, b = (rng.standard_normal(s).astype("f2") for s in ((64, 64), (64, 1025)))
    trace = smemkern.trace("gemm", put(a, "C", 0, 0), put(b, "C", 1, 0), variant="fp16", split=1)
    for op in ("load", "store"):
        files = ("wgmma_pack.cuh", "unaligned_lines.cuh", "store_bits.cuh")
        rows = [r for r in trace.global_ if r.file in files and r.op == op]
        small, wide = (sum(r.requests for r in rows if r.width == w) for w in (2, 16))
        assert small == 64  # one a line
        assert 64 * 4 <= wide <= 64 * 4 * 2
