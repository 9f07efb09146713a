"""gemm's `gemv`: its threads and its loads. test_skinny.py has tests of its results, too."""

import numpy as np
import pytest

import smemkern
from checks import assert_gemm, benchmark, random_matrix

[ROW] = [row for row in smemkern.variants("gemm") if row.name == "gemv"]
EACH = pytest.mark.parametrize("dtype", ROW.dtypes)


def within(x, more, offset):
    """The same matrix as a slice of a wider one, with NaN beside it."""
    wide = np.full((x.shape[0], x.shape[1] + more), np.nan, x.dtype)
    wide[:, offset : offset + x.shape[1]] = x
    return wide[:, offset : offset + x.shape[1]]


@EACH
def test_any_threads(dtype, device, draw, rng):
    for _ in range(15):
        thin, thick, k = draw.randint(1, 5), draw.randint(1, 400), draw.randint(1, 1500)
        m, n = draw.choice([(thin, thick), (thick, thin)])
        a, b, c = (random_matrix(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        params = {
            name: draw.choice(ROW.params[name].legal) for name in ("lanes", "rows", "threads")
        }
        params["split"] = draw.choice([0, 1, 4])
        lie, more = draw.choice([np.asarray, np.transpose]), draw.randrange(9)
        given = [lie(within(lie(x), more, draw.randint(0, more))) for x in (a, b)]
        out = c.copy()
        smemkern.gemm(*given, variant="gemv", device=device, out=out, alpha=2, beta=-0.5, **params)
        assert_gemm(out, a, b, 2, -0.5, c, row=ROW)


@EACH
def test_no_hazards_whatever_the_threads(dtype, draw, rng):
    for _ in range(6):
        a, b = random_matrix(rng, (2, 700), dtype), random_matrix(rng, (700, 130), dtype)
        params = {
            name: draw.choice(ROW.params[name].legal) for name in ("lanes", "rows", "threads")
        }
        b = draw.choice([np.ascontiguousarray, np.asfortranarray])(b)
        trace = smemkern.trace("gemm", a, b, variant="gemv", hazards=True, **params)
        assert len(trace.hazards) == 0
        assert_gemm(trace.result, a, b, row=ROW)


@EACH
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_with_an_odd_pitch_are_read_by_vectors(order, dtype, rng):
    """Once, but for what strips of columns overlap, and ends of rows."""
    a, b = random_matrix(rng, (1, 1001), dtype), random_matrix(rng, (1001, 2001), dtype)
    trace = smemkern.trace("gemm", a, np.asarray(b, order=order), variant="gemv", split=1)
    vectors = [line for line in trace.global_ if line.op == "load" and line.width == 16]
    of_x = {"C": 0, "F": 2}[order]  # vectors per one of the matrix, where threads have one row
    sectors = sum(line.sectors for line in vectors) / (b.nbytes / 32)
    assert 0.98 < sectors < 1.45 + of_x
    if order == "C":  # besides one element of x for each, few are read one by one
        singles = sum(
            line.requests for line in trace.global_ if line.op == "load" and line.width < 16
        )
        assert singles < 1.4 * sum(line.requests for line in vectors)


def launch_of(m, n, k, order="C", batch=(), **params):
    one = np.zeros(1, "f4")
    a = np.lib.stride_tricks.as_strided(one, (*batch, m, k), [0] * len(batch) + [4 * k, 4])
    strides = [4 * n, 4] if order == "C" else [4, 4 * k]
    b = np.lib.stride_tricks.as_strided(one, (*batch, k, n), [0] * len(batch) + strides)
    return smemkern._core.plan("gemm", (a, b), {"variant": "gemv", **params})["launches"]


def threads_of(launch):
    return int(np.prod(launch["grid"], dtype=np.int64) * np.prod(launch["block"]))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("m", "n", "k", "batch"),
    [(1, 8192, 8192, ()), (1, 1024, 4096, ()), (1, 14422, 304, ()), (1, 96, 352, (400,))],
    ids=str,
)
def test_threads_fill_the_machine(m, n, k, batch, order):
    """And are not many times more."""
    [launch] = launch_of(m, n, k, order, batch)
    assert 132 * 256 <= threads_of(launch) <= 132 * 1024 * 10


def test_parts_of_k():
    """Of a long K, if a second launch takes no longer than what a block would read alone."""
    assert len(launch_of(1, 16, 15616, "F")) == 1
    long, _ = launch_of(1, 1, 1 << 24)
    assert 132 <= long["grid"][0] <= 264
    assert launch_of(1, 1, 1 << 24, split=3)[0]["grid"][0] == 3
    assert len(launch_of(3, 100, 0)) == 1


def test_kernels_follow_the_shape_and_the_layout():
    for m, height in [(1, 1), (2, 4), (4, 4), (5, 4)]:
        assert launch_of(m, 500, 300)[0]["entry"] == f"gemm_gemv_{height}"
        assert launch_of(m, 500, 300, "F")[0]["entry"] == f"gemm_gemv_{height}_along"


def test_a_row_of_the_table_of_times_for_each_order_and_alignment():
    """benchmarks/gpu.py tune --also gemv: only for results of up to 4 rows or columns."""
    tune = benchmark("tune")
    assert tune.others_of(["gemv"], "float16", (900, 4, 50)) == [("gemv", {})]
    assert not tune.others_of(["gemv"], "float16", (5, 900, 50))
    packaged = tune.with_new_rows([], [("float32", "gemv"), ("float16", "gemv")])
    assert len(packaged) == 2 * 2 + 3 * 2
    assert {(row.variant, row.side) for row in packaged} == {("gemv", 4)}
    assert tune.with_new_rows(packaged, [("float32", "gemv")]) == packaged
    [fp64] = tune.with_new_rows([], [("float64", "fp64 block_m=64")])[:1]
    assert (fp64.params, fp64.side, fp64.along) == ({"block_m": 64}, 0, -1)
