"""gemm's `gemv`: its threads and its loads. test_skinny.py has tests of its results, too."""

import math

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
        params = {name: draw.choice(ROW.params[name].legal) for name in ("lanes", "threads")}
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
        params = {name: draw.choice(ROW.params[name].legal) for name in ("lanes", "threads")}
        b = draw.choice([np.ascontiguousarray, np.asfortranarray])(b)
        trace = smemkern.trace("gemm", a, b, variant="gemv", hazards=True, **params)
        assert len(trace.hazards) == 0
        assert_gemm(trace.result, a, b, row=ROW)


@EACH
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_with_an_odd_pitch_are_read_by_vectors(order, dtype, rng):
    """Once, but for what strips of columns overlap, and ends of rows."""
    a, b = random_matrix(rng, (1, 1001), dtype), random_matrix(rng, (1001, 2001), dtype)
    b_in_order = np.asarray(b, order=order)
    trace = smemkern.trace("gemm", a, b_in_order, variant="gemv", split=1, lanes=16)
    vectors = [line for line in trace.global_ if line.op == "load" and line.width == 16]
    of_x = {"C": 0, "F": 2}[order]  # vectors per one of the matrix
    sectors = sum(line.sectors for line in vectors) / (b.nbytes / 32)
    assert 0.98 < sectors < 1.45 + of_x
    if order == "C":  # besides one element of x for each, few are read one by one
        singles = sum(
            line.requests for line in trace.global_ if line.op == "load" and line.width < 16
        )
        assert singles < 1.6 * sum(line.requests for line in vectors)


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
    """And are not many times more: each warp has some 300 instructions besides its loads."""
    launch, *_ = launch_of(m, n, k, order, batch)
    assert 132 * 128 <= threads_of(launch) <= 132 * 1024 * 4


def test_parts_of_k():
    """Of few rows or columns, which would be read by few blocks."""
    assert len(launch_of(1, 8192, 8192, "F")) == 1
    long, _ = launch_of(1, 1, 1 << 24)
    assert 32 <= long["grid"][0] <= 64
    assert launch_of(1, 1, 1 << 24, split=3)[0]["grid"][0] == 3
    assert len(launch_of(3, 100, 0)) == 1


def test_kernels_follow_the_layout():
    for m in (1, 2, 5):
        assert launch_of(m, 500, 300)[0]["entry"] == "gemm_gemv_1"
        assert launch_of(m, 500, 300, "F")[0]["entry"] == "gemm_gemv_1_along"


def test_auto_leaves_one_row_to_it():
    """skinny's kernels are for two and more."""
    of = {m: {c.variant for c in smemkern.choices(m, 900, 900)} for m in (1, 2, 16)}
    assert [m for m in of if "gemv" in of[m]] == [1]
    assert [m for m in of if "skinny" in of[m]] == [2, 16]
    assert "skinny_mma" in {c.variant for c in smemkern.choices(1, 900, 900, dtype="float16")}


# ---- the choice of threads and parts


def forms(sizes, layout, itemsize, aligned):
    return smemkern._core.gemv_forms(sizes, layout, 132, itemsize, aligned)


@pytest.mark.parametrize("itemsize", [2, 4, 8])
@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
def test_the_form_with_the_shortest_predicted_time_is_planned(layout, itemsize, draw):
    dtype = {2: "f2", 4: "f4", 8: "f8"}[itemsize]
    for _ in range(20):
        n, k = (round(2 ** draw.uniform(0, 15)) for _ in range(2))
        one = np.zeros(1, dtype)
        steps = {"N": (n * itemsize, itemsize), "T": (itemsize, k * itemsize)}[layout[1]]
        a = np.lib.stride_tricks.as_strided(one, (1, k), (0, itemsize))
        b = np.lib.stride_tricks.as_strided(one, (k, n), steps)
        launches = smemkern._core.plan("gemm", (a, b), {"variant": "gemv"})["launches"]
        aligned = max(steps if k > 1 else steps[:1]) % 16 == 0
        if n == 1 or k == 1:  # then the pitch is of no account, or both are
            continue
        found = forms((1, n, k, 1), layout, itemsize, aligned)
        (lanes, threads, split), *_ = min(found, key=lambda one: one[-1])
        assert launches[0]["block"][:2] == (lanes, threads // lanes), (n, k)
        assert len(launches) == (2 if split > 1 else 1)


def test_terms_of_a_form():
    [terms] = [
        terms for form, terms, _ in forms((1, 4096, 4096, 1), "NT", 4, True) if form == (16, 256, 1)
    ]
    warps = math.ceil(4096 / 16 / 132) * 8
    passes = 16  # of 4 vectors by 16 lanes, 256 elements, and both blocks are resident
    size = 4096 * 4096 * 4 / 1e7
    assert terms[:4] == (1, 0, passes, warps / 100)
    assert terms[4] == pytest.approx(warps / 100 * 64)
    assert terms[5:10] == pytest.approx((size, size / 4, 0, size - 3, (size - 3) / 4))
    assert terms[10:] == (0, 0)


def test_terms_of_parts():
    [terms] = [
        terms for form, terms, _ in forms((1, 40, 6000, 3), "NN", 4, False) if form == (8, 256, 4)
    ]
    strips = math.ceil(40 / (7 * 4))
    assert terms[:2] == (1, 1)
    assert terms[2] == math.ceil(1500 / 32 / 8)
    assert terms[5] == pytest.approx(strips * 3 * 4 * 1500 * 8 * 16 / 1e7)
    assert terms[7] == pytest.approx(terms[5] * 64 / 128)
    assert terms[10:] == pytest.approx((4 / 100, 4 * 3 * 40 / 1e5))


def test_a_fit_finds_costs(rng):
    """Of times that are sums of terms; benchmarks/gemv.py."""
    gemv = benchmark("gemv")
    costs = {order: rng.uniform(0.1, 3, 12) for order in gemv.ORDERS}
    lines = []
    for _ in range(300):
        line = {"itemsize": int(rng.choice([2, 4, 8])), "batch": 1}
        line["shape"] = (1, *(int(2 ** rng.uniform(4, 14)) for _ in range(2)))
        line["layout"] = str(rng.choice(["NN", "NT"]))
        found = gemv.forms_of(line, 132)
        times = {f: gemv.dot(terms, costs[gemv.order_of(line)]) for f, (terms, _) in found.items()}
        line["us"] = {"cuBLAS": 9.0, **times}
        gemv.add_terms(line, 132)
        lines.append(line)
    for order, found in gemv.fitted(lines).items():
        own = [line for line in lines if gemv.order_of(line) == order]
        for line in own:
            for form, terms in line["terms"].items():
                assert gemv.dot(terms, found) == pytest.approx(line["us"][form], rel=0.02)


def test_a_row_of_the_table_of_times_for_each_order_and_alignment():
    """benchmarks/gpu.py tune --also gemv: only for results of one row or column."""
    tune = benchmark("tune")
    assert tune.others_of(["gemv"], "float16", (900, 1, 50)) == [("gemv", {})]
    assert not tune.others_of(["gemv"], "float16", (2, 900, 50))
    packaged = tune.with_new_rows([], [("float32", "gemv"), ("float16", "gemv")])
    assert len(packaged) == 2 * 2 + 3 * 2
    assert {(row.variant, row.side) for row in packaged} == {("gemv", 1)}
    assert tune.with_new_rows(packaged, [("float32", "gemv")]) == packaged
    [fp64] = tune.with_new_rows([], [("float64", "fp64 block_m=64")])[:1]
    assert (fp64.params, fp64.side, fp64.along) == ({"block_m": 64}, 0, -1)
