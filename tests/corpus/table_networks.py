"""Cases of the parts of neural networks."""

import numpy as np

from .cases import EPS, case, one, sum_error

HALF = float(np.finfo(np.float16).eps)


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@case("softmax_online", same_bits=False)
def softmax_online(rng):
    x = (4 * rng.standard_normal((13, 75))).astype("f4")
    y = np.zeros_like(x)
    want = _softmax(x.astype("f8"))
    # exp of differences up to 30, whose rounding is an error of the argument, and a sum of 75.
    tolerance = (40 + 75) * 4 * EPS * want
    return one("softmax_online", 4, (32, 4), [x, y, 13, 75], (y, want, tolerance))


@case("layernorm", same_bits=False)
def layernorm(rng):
    x = (3 + rng.standard_normal((5, 301))).astype("f4")
    gain, bias = rng.standard_normal((2, 301)).astype("f4")
    y = np.zeros_like(x)
    wide = x.astype("f8")
    normal = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    tolerance = 40 * EPS * (abs(normal * gain) + abs(bias) + 5)
    args = [x, gain, bias, y, 301, 1e-5]
    return one("layernorm", 5, 128, args, (y, normal * gain + bias, tolerance))


@case("rmsnorm", same_bits=False)
def rmsnorm(rng):
    x, gain = rng.standard_normal((4, 200)).astype("f2"), rng.standard_normal(200).astype("f2")
    y = np.zeros_like(x)
    wide = x.astype("f8")
    want = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * gain
    tolerance = 3 * HALF * abs(want) + 2 * HALF * 2.0**-14
    return one("rmsnorm", 4, 128, [x, gain, y, 100], (y, want, tolerance))


@case("gelu", same_bits=False)
def gelu(rng):
    from math import erf

    x = (3 * rng.standard_normal(500)).astype("f4")
    by_tanh, by_erf = np.zeros((2, 500), "f4")
    v = x.astype("f8")
    want_tanh = 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))
    want_erf = 0.5 * v * (1 + np.array([erf(e) for e in v / np.sqrt(2)]))
    tolerance = 8 * EPS * (1 + abs(v)) ** 2
    results = (by_tanh, want_tanh, tolerance), (by_erf, want_erf, tolerance)
    return one("gelu", 2, 128, [x, by_tanh, by_erf, 500], *results)


@case("attention", same_bits=False)
def attention(rng):
    heads, n, d = 2, 75, 16
    Q, K, V = rng.standard_normal((3, heads, n, d)).astype("f4")
    out = np.zeros_like(Q)
    scores = Q.astype("f8") @ K.transpose(0, 2, 1).astype("f8") / 4
    weights = _softmax(scores)
    # Scores are sums of 16, known to 18 eps of their terms; that is their weights' relative error.
    spread = 18 * EPS * (abs(Q).astype("f8") @ abs(K).transpose(0, 2, 1) / 4).max() + 100 * EPS
    tolerance = 2 * spread * (weights @ abs(V))
    args = [Q, K, V, out, n, 0.25]
    return one(f"attention<{d}, 32>", (2, heads), 64, args, (out, weights @ V, tolerance))


@case("rotary", same_bits=False)
def rotary(rng):
    positions, pairs = 50, 24
    x = (rng.standard_normal((positions, pairs)) + 1j).astype("c8")
    angle = np.arange(positions)[:, None] * 10000.0 ** (-np.arange(pairs) / pairs)
    want = x * np.exp(1j * angle)
    # The angle is a float of up to 50, and powf is good to some ulp of it.
    tolerance = (8 * positions + 8) * EPS * abs(x)
    return one("rotary", (1, positions), 32, [x, positions, pairs, 1e4], (x, want, tolerance))


@case("embedding")
def embedding(rng):
    table = rng.standard_normal((50, 24)).astype("f2")
    tokens = rng.integers(0, 50, 33)
    tokens[4], tokens[9] = -1, 50
    out = np.ones((33, 24), "f2")
    good = (tokens >= 0) & (tokens < 50)
    want = np.where(good[:, None], table[np.where(good, tokens, 0)], np.float16(0))
    return one("embedding", 33, 32, [tokens, table, out, 3, 50], (out, want))


@case("top_k")
def top_k(rng):
    x = rng.integers(0, 60, (4, 96)).astype("f4")
    values, places = np.zeros((4, 7), "f4"), np.zeros((4, 7), "i4")
    order = np.argsort(-x, axis=1, kind="stable")[:, :7]
    results = (values, np.take_along_axis(x, order, 1)), (places, order.astype("i4"))
    return one("top_k<3>", 4, 32, [x, values, places, 7], *results)


@case("argmax")
def argmax(rng):
    x = -abs(rng.standard_normal(1500)).astype("f4")
    x[[400, 900]] = -1e-3
    x[:400] -= 1
    place = np.argmax(x)
    bits = x[place : place + 1].view("u4").astype("u8")[0]
    ordered = ~bits & 0xFFFFFFFF if bits >> 31 else bits | 0x80000000
    want = np.array([(int(ordered) << 32) | (~int(place) & 0xFFFFFFFF)], "u8")
    best = np.zeros(1, "u8")
    return one("argmax", 3, 128, [x, best, x.size], (best, want))


@case("cross_entropy", same_bits=False)
def cross_entropy(rng):
    logits = (3 * rng.standard_normal((6, 150))).astype("f4")
    classes = rng.integers(0, 150, 6, dtype="i4")
    loss, gradient = np.zeros(6, "f4"), np.zeros_like(logits)
    wide = logits.astype("f8")
    high = wide.max(1, keepdims=True)
    log_sum = high + np.log(np.exp(wide - high).sum(1, keepdims=True))
    weights = np.exp(wide - log_sum)
    want = weights.copy()
    want[np.arange(6), classes] -= 1
    expected_loss = (log_sum - wide)[np.arange(6), classes]
    return one(
        "cross_entropy",
        6,
        64,
        [logits, classes, loss, gradient, 150],
        (loss, expected_loss, 160 * EPS * (1 + abs(expected_loss))),
        (gradient, want, 160 * EPS * weights + EPS * abs(want)),
    )


@case("axpy_half2")
def axpy_half2(rng):
    x, y = rng.standard_normal((2, 500)).astype("f2")
    a = np.float16(1.7)
    want = (a.astype("f8") * x + y).astype("f2")  # exact in double, then rounded once
    return one("axpy_half2", 2, 128, [a, x, y, 250], (y, want))


class _Bfloat16:
    """Bits of bfloat16, which NumPy has no type for, as the upper halves of floats."""

    def __init__(self, bits):
        self.bits = bits

    def __array__(self, dtype=None, copy=None):
        return (self.bits.astype("u4") << 16).view("f4")


@case("sum_bfloat16")
def sum_bfloat16(rng):
    x = (rng.standard_normal((4, 100)).astype("f4").view("u4") >> 16).astype("u2")
    sums, highest = np.zeros((2, 4), "u2")
    wide = np.asarray(_Bfloat16(x)).astype("f8")
    tolerance = 2.0**-8 * abs(wide.sum(1)) + sum_error(wide)
    return one(
        "sum_bfloat16",
        4,
        32,
        [x, sums, highest, 50],
        (_Bfloat16(sums), wide.sum(1), tolerance),
        (_Bfloat16(highest), wide.max(1)),
    )


@case("dot_int8")
def dot_int8(rng):
    a, b = rng.integers(-128, 128, (5, 268), dtype="i1"), rng.integers(-128, 128, 268, dtype="i1")
    u = rng.integers(0, 256, (5, 268), dtype="u1")
    dots, sums = np.zeros(5, "i4"), np.zeros(5, "u4")
    # dp2a_lo: 16-bit halves (3, row) times the low bytes (1, 2).
    want = a.astype("i4") @ b.astype("i4") + 3 * 1 + np.arange(5, dtype="i4") * 2
    args = [a, b, u, dots, sums, 67]
    return one("dot_int8", 5, 32, args, (dots, want), (sums, u.sum(1, dtype="u4")))
