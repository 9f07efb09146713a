"""gemm of few rows or columns, by the rows for it, whichever way the large operand lies."""

import numpy as np
import pytest

import smemkern
from checks import SKINNY, assert_gemm, assert_same_bits, random_matrix

ROWS = [row for row in smemkern.variants("gemm") if row.name in SKINNY]
EACH = pytest.mark.parametrize(
    ("row", "dtype"),
    [pytest.param(row, dtype, id=dtype) for row in ROWS for dtype in row.dtypes],
)

SHAPES = [  # M, N, K: one and several strips and rounds, with and without ends
    (1, 1, 1000),
    (1, 70, 300),
    (2, 64, 2100),
    (3, 130, 257),
    (4, 64, 5),
    (5, 200, 40),
    (8, 128, 1024),
    (16, 64, 512),
    (17, 33, 100),
    (33, 40, 50),
    (64, 16, 300),
    (130, 1, 333),
    (9, 3, 1025),
]
LIE = {
    "rows": lambda x: np.ascontiguousarray(x),
    "columns": lambda x: np.asfortranarray(x),
    "odd rows": lambda x: _within(x, 3, 1),
    "odd columns": lambda x: _within(x.T, 3, 1).T,
    "odd pitch": lambda x: _within(x, 5, 0),
    "odd pitch of columns": lambda x: _within(x.T, 5, 0).T,
    "apart": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "backwards": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
}


def _within(x, more, offset):
    """The same matrix as a slice of a wider one, with NaN beside it. Its rows, or but for the first
    one, begin off 16-byte boundaries."""
    wide = np.full((x.shape[0], x.shape[1] + more), np.nan, x.dtype)
    wide[:, offset : offset + x.shape[1]] = x
    return wide[:, offset : offset + x.shape[1]]


@EACH
@pytest.mark.parametrize("of_b", LIE)
@pytest.mark.parametrize("of_a", LIE)
def test_every_layout(row, dtype, of_a, of_b, device, rng):
    for m, n, k in SHAPES:
        a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
        assert_gemm(
            smemkern.gemm(LIE[of_a](a), LIE[of_b](b), variant=row.name, device=device),
            a,
            b,
            row=row,
        )


@EACH
def test_any_shape_and_pitch(row, dtype, device, draw, rng):
    for _ in range(12):
        thin, thick, k = draw.randint(1, 17), draw.randint(1, 300), draw.randint(1, 600)
        m, n = draw.choice([(thin, thick), (thick, thin)])
        a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
        lie, more = draw.choice([np.asarray, np.transpose]), draw.choice([0, 0, 1, 3, 8])
        given = [lie(_within(lie(x), more, 0)) for x in (a, b)]
        split = draw.randrange(4)
        result = smemkern.gemm(*given, variant=row.name, split=split, device=device)
        assert_gemm(result, a, b, row=row)


@EACH
@pytest.mark.parametrize("split", [0, 1, 2, 5])
@pytest.mark.parametrize("lie", ["rows", "columns", "odd rows"])
def test_parts_of_k(row, dtype, split, lie, device, rng):
    """The same bits every time; alpha, beta and C come in once."""
    for m, n, k in [(1, 40, 5000), (40, 1, 5000), (3, 3, 4099), (20, 6, 700)]:
        a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
        c = random_matrix(rng, (m, n), dtype)
        out, again = c.copy(), c.copy()
        for result in (out, again):
            smemkern.gemm(
                a,
                LIE[lie](b),
                variant=row.name,
                device=device,
                out=result,
                alpha=-1.5,
                beta=0.5,
                split=split,
            )
        assert_gemm(out, a, b, -1.5, 0.5, c, row=row)
        assert_same_bits(again, out)


@EACH
@pytest.mark.parametrize("shape", [(3, 77, 131), (77, 3, 131), (18, 40, 131)], ids=str)
def test_batches(row, dtype, shape, device, rng):
    m, n, k = shape
    a, b = random_matrix(rng, (2, 1, m, k), dtype), random_matrix(rng, (3, k, n), dtype)
    assert_gemm(smemkern.gemm(a, b, variant=row.name, device=device), a, b, row=row)
    assert_gemm(smemkern.gemm(a, b[0], variant=row.name, device=device), a, b[0], row=row)


@EACH
@pytest.mark.parametrize("lie", ["rows", "columns"])
def test_what_is_not_finite_stays_where_it_is(row, dtype, lie, device, rng):
    """Rows that fill up a block, and ends of K, are made of what exists: none of it may leak."""
    for m, n, k in [(3, 66, 130), (66, 3, 130), (5, 5, 67)]:
        a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
        a[-1, -1], b[-1, -1], b[3, 0] = np.inf, -np.inf, np.nan
        result = smemkern.gemm(LIE[lie](a), LIE[lie](b), variant=row.name, device=device)
        with np.errstate(invalid="ignore"):
            expected = a.astype("f8") @ b.astype("f8")
        for test in (np.isnan, np.isposinf, np.isneginf):
            assert np.array_equal(test(result.astype("f8")), test(expected))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 17])
@pytest.mark.parametrize("lie", ["rows", "columns", "odd rows"])
@EACH
def test_no_hazards(row, dtype, lie, n, rng):
    for a, b in [((n, 600), (600, 70)), ((70, 600), (600, n))]:
        a, b = random_matrix(rng, a, dtype), random_matrix(rng, b, dtype)
        trace = smemkern.trace(
            "gemm", LIE[lie](a), LIE[lie](b), variant=row.name, split=2, hazards=True
        )
        assert len(trace.hazards) == 0
        assert_gemm(trace.result, a, b, row=row)


@pytest.mark.parametrize("lie", ["rows", "columns"])
@pytest.mark.parametrize("m", [1, 4, 16])
def test_the_large_operand_is_read_once(m, lie, rng):
    """And the small one once a block, in 16 bytes a lane and whole sectors."""
    a, b = random_matrix(rng, (m, 1024), "f4"), LIE[lie](random_matrix(rng, (1024, 128), "f4"))
    [launch] = smemkern._core.plan("gemm", (a, b), {"variant": "skinny", "split": 1})["launches"]
    trace = smemkern.trace("gemm", a, b, variant="skinny", split=1)
    loads = [line for line in trace.global_ if line.op == "load"]
    assert {line.width for line in loads} == {16}
    assert sum(line.sectors for line in loads) == (b.nbytes + launch["grid"][0] * a.nbytes) // 32


def first_launch(m, n, k, strides_a, strides_b, batch=(), **params):
    one = np.zeros(1, "f4")
    a, b = (
        np.lib.stride_tricks.as_strided(
            one, (*batch, *shape), [0] * len(batch) + [4 * s for s in strides]
        )
        for shape, strides in (((m, k), strides_a), ((k, n), strides_b))
    )
    return smemkern._core.plan("gemm", (a, b), {"variant": "skinny", **params})["launches"][0]


def test_kernels_follow_the_shape_and_the_layout():
    k, n = 1000, 5000
    for m, height in [(1, 2), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8), (9, 16), (16, 16), (99, 16)]:
        across, along = f"gemm_skinny_{height}", f"gemm_skinny_{height}_along"
        assert first_launch(m, n, k, (k, 1), (n, 1))["entry"] == across
        assert first_launch(m, n, k, (k, 1), (1, k))["entry"] == along
        assert first_launch(n, m, k, (k, 1), (m, 1))["entry"] == along
        assert first_launch(n, m, k, (1, n), (m, 1))["entry"] == across


def parts(m, n, k, **kw):
    return first_launch(m, n, k, (k, 1), (n, 1), **kw)["args"]["split"]


def test_few_strips_and_long_k_are_parts():
    """As many as give 132 multiprocessors enough to read, of steps that are worth it."""
    assert parts(1, 8192, 8192) == 1
    assert parts(16, 8192, 8192) == 1
    assert 64 <= parts(1, 1, 1 << 24) <= 1024
    assert 64 <= parts(4, 64, 1 << 20) <= 528
    assert parts(1, 64, 300) == 1
    assert parts(1, 64, 1 << 16, batch=(500,)) == 1
    assert parts(3, 100, 0, split=5) == 1
    assert parts(3, 100, 128 * 3, split=5) == 3
