"""Cases of random numbers, bits and text, and of the language: memory spaces, calls, structs."""

import math
import zlib

import numpy as np

from .cases import EPS, EPS64, Launch, Result, Work, case, one, sum_error


@case("philox")
def philox(rng):
    n, keys = 300, rng.integers(0, 2**32, 2, dtype="u4")
    out = np.zeros((n, 4), "u4")
    c = np.zeros((n, 4), "u8")
    c[:, 0] = np.arange(n)
    k0, k1 = (int(k) for k in keys)
    for _ in range(10):
        p, q = c[:, 0] * 0xD2511F53, c[:, 2] * 0xCD9E8D57
        low = np.uint64(0xFFFFFFFF)
        c = np.stack([q >> 32 ^ c[:, 1] ^ k0, q & low, p >> 32 ^ c[:, 3] ^ k1, p & low], 1)
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return one("philox", 3, 128, [out, *keys, n], (out, c.astype("u4")))


@case("monte_carlo")
def monte_carlo(rng):
    throws, threads = 40, 192
    state = np.uint64(9) + (np.arange(threads, dtype="u8") + 1) * np.uint64(0x9E3779B97F4A7C15)
    want = 0
    for _ in range(throws):
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        x, y = (state >> 40) * 2.0**-24, (state >> 16 & 0xFFFFFF) * 2.0**-24
        x, y = x.astype("f4"), y.astype("f4")
        # The compiler contracts x x + y y into fma(x, x, y y).
        square = (x.astype("f8") * x + (y * y).astype("f8")).astype("f4")
        want += np.count_nonzero(square < 1)
    hits = np.zeros(1, "u8")
    return one("monte_carlo", 2, 96, [hits, throws, 9], (hits, np.array([want], "u8")))


@case("mandelbrot")
def mandelbrot(rng):
    width, height, most, step = 40, 30, 60, 0.08
    corner = np.array([-2.1, -1.2])
    cx, cy = np.meshgrid(corner[0] + np.arange(width) * step, corner[1] + np.arange(height) * step)
    x, y, n = np.zeros_like(cx), np.zeros_like(cx), np.zeros(cx.shape, "i4")
    for _ in range(most):
        inside = x * x + y * y <= 4
        n += inside
        x, y = np.where(inside, x * x - y * y + cx, x), np.where(inside, (x + x) * y + cy, y)
    steps = np.zeros_like(n)
    args = [steps, width, height, most, corner, step]
    return one("mandelbrot", (3, 4), (16, 8), args, (steps, n))


@case("life")
def life(rng):
    now = rng.integers(0, 2**32, (20, 3), dtype="u4")
    cells = np.unpackbits(now.view("u1"), axis=1, bitorder="little").astype("i4")
    around = sum(
        np.roll(cells, (r, c), (0, 1)) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)
    )
    alive = (around == 3) | ((around == 2) & (cells == 1))
    want = np.packbits(alive, axis=1, bitorder="little").view("u4")
    after = np.zeros_like(now)
    return one("life", (1, 20), 32, [now, after, 3, 20], (after, want))


@case("string_search")
def string_search(rng):
    text = rng.integers(ord("a"), ord("d"), 2000, dtype="i1")
    word = np.frombuffer(b"abca", "i1")
    want = np.array([i for i in range(1997) if text[i : i + 4].tobytes() == b"abca"], "i4")
    places, count = np.full(1, -1, "i4"), np.zeros(1, "u4")
    # Places come in any order: their number is compared, and in a second search the one left.
    lone = np.full(500, ord("x"), "i1")
    lone[123:127] = word
    place, one_found = np.full(1, -1, "i4"), np.zeros(1, "u4")
    launches = [
        Launch("string_search", 16, 128, [text, 2000, word, 4, places, count, 0]),
        Launch("string_search", 4, 128, [lone, 500, word, 4, place, one_found, 1]),
    ]
    found = np.array([want.size], "u4")
    return Work(launches, [Result(count, found), Result(place, np.array([123], "i4"))])


@case("crc32")
def crc32(rng):
    messages = rng.integers(0, 256, (70, 37), dtype="u1")
    crcs = np.zeros(70, "u4")
    want = np.array([zlib.crc32(m.tobytes()) for m in messages], "u4")
    return one("crc32", 2, 64, [messages, 37, crcs, 70], (crcs, want))


def _bit_tricks(v, w, i):
    """One row, in Python's integers."""
    low = 0xFFFFFFFF
    both = (~v & low) << 32 | v

    def brev(x, bits):
        return int(f"{x:0{bits}b}"[::-1], 2)

    def first(x):
        return (x & -x).bit_length()

    def by_byte(f):
        return sum((f(v >> s & 255, s) & 255) << s for s in (0, 8, 16, 24))

    added = by_byte(lambda b, s: b + (0x01FF7F80 >> s & 255))
    apart = by_byte(lambda b, s: abs(b - 0x80))
    greater = by_byte(lambda b, s: 255 if b > (0x40C04080 >> s & 255) else 0)
    bytes_ = [both >> 8 * ((0x2615 >> 4 * k) & 7) & 255 for k in range(4)]
    mask = (1 << 9) - 1 << 5
    return [
        brev(v, 32),
        v.bit_count(),
        32 - v.bit_length(),
        first(v),
        sum(b << 8 * k for k, b in enumerate(bytes_)),
        (i << 32 | v) >> (v & 31) & low,
        (64 - w.bit_length()) << 16 | w.bit_count() << 8 | first(w),
        brev(w, 64) >> 20 & low,
        v >> 7 & 0x7FF,
        (v & ~mask) | (i << 5 & mask),
        (v ^ (v << 3 & low) ^ i) & low,
        added ^ apart ^ greater,
    ]


@case("bit_tricks")
def bit_tricks(rng):
    n = 100
    x, w = rng.integers(0, 2**32, n, dtype="u4"), rng.integers(0, 2**64, n, dtype="u8")
    x[0], w[0], x[1], w[1] = 0, 0, 2**32 - 1, 2**64 - 1
    want = [_bit_tricks(int(a), int(b), i) for i, (a, b) in enumerate(zip(x, w, strict=True))]
    out = np.zeros((n, 12), "u4")
    return one("bit_tricks", 2, 64, [x, w, out, n], (out, np.array(want, "u4")))


@case("atomics_double", same_bits=False)
def atomics_double(rng):
    n = 500
    x, group = rng.standard_normal(n), rng.integers(0, 4, n, dtype="i4")
    sums, lowest = np.zeros(4), np.full(4, np.inf)
    members = [x[group == g] for g in range(4)]
    return one(
        "atomics_double",
        4,
        128,
        [x, group, sums, lowest, n],
        (sums, np.array([m.sum() for m in members]), [sum_error(m, eps=EPS64) for m in members]),
        (lowest, np.array([m.min() for m in members])),
    )


@case("spin_lock")
def spin_lock(rng):
    lock, account = np.zeros(1, "i4"), np.zeros(2, "i4")
    turns = 2 * 64 * 3
    want = np.array([turns, 3 * turns], "i4")
    return one("spin_lock", 2, 64, [lock, account, 3], (account, want), (lock, np.zeros(1, "i4")))


@case("shared_carved")
def shared_carved(rng):
    n = 77
    x, y = rng.standard_normal(n), np.zeros(n)
    order = rng.permutation(n).astype("i2")
    order[5] = order[6]
    taken = np.isin(np.arange(n), order)
    want = np.where(taken, x[order], -1.0)
    return one("shared_carved", 1, 32, [x, order, y, n], (y, want), shared_bytes=11 * n)


@case("constant_table")
def constant_table(rng):
    n = 130
    which, y = rng.integers(0, 3, n, dtype="u1"), np.zeros(n)
    rising = np.array([1.0, 2, 4, 8])
    curves = np.stack([rising, rising[::-1], rising])
    scales, steps = np.array([0.5, 2.0, -1.0]), np.array([1, -2, 7])
    want = scales[which] * curves[which, np.arange(n) % 4] + steps[which]
    return one("constant_table", 2, 96, [which, y, n], (y, want))


@case("global_state")
def global_state(rng):
    """Values outlive launches, and Kernels of equal PTX share them: differences are compared."""
    seen, calls = np.zeros((3, 8), "f4"), np.zeros((3, 1), "i4")
    launches = [Launch("global_state", 1, 32, [7.5 + i, calls[i], seen[i]]) for i in range(3)]
    return Work(launches, [Result(_History(calls, seen), np.array([1, 1, 7.5, 8.5, 9.5], "f4"))])


class _History:
    """By how much each call was later than the one before, and what each has left at its place."""

    def __init__(self, calls, seen):
        self.calls, self.seen = calls, seen

    def __array__(self, dtype=None, copy=None):
        calls = self.calls[:, 0]
        return np.r_[np.diff(calls), self.seen[2][(calls - 1) % 8]].astype("f4")


@case("function_pointers")
def function_pointers(rng):
    x, which = (2 * rng.standard_normal(150)).astype("f4"), rng.integers(0, 3, 150, dtype="i4")
    y = np.zeros_like(x)
    want = np.choose(which, [x * x, -x, np.clip(x, -1, 1)])
    return one("function_pointers", 2, 96, [x, which, y, 150], (y, want))


@case("virtual_calls")
def virtual_calls(rng):
    sizes = rng.standard_normal((100, 2)).astype("f4")
    areas = np.zeros(100, "f4")
    r, h = sizes.T
    three = np.float32(3)
    want = np.where(h < 0, three * r * r, r * h)
    return one("virtual_calls", 1, 128, [sizes, areas, 100], (areas, want))


@case("recursion")
def recursion(rng):
    def ackermann(m, n):
        return n + 1 if m == 0 else ackermann(m - 1, ackermann(m, n - 1) if n else 1)

    def hanoi(discs, start, end):
        if discs == 0:
            return 0
        via = 3 - start - end
        moves = hanoi(discs - 1, start, via) + hanoi(discs - 1, via, end)
        return moves + start + 2 * end

    a, h = np.zeros(32, "i4"), np.zeros(32, "i4")
    want_a = np.array([ackermann(t % 3, t % 5) for t in range(32)], "i4")
    want_h = np.array([hanoi(t % 7, 0, 2) for t in range(32)], "i4")
    return one("recursion", 1, 32, [a, h], (a, want_a), (h, want_h))


@case("local_array")
def local_array(rng):
    x = rng.integers(0, 2**16, 200, dtype="u2")
    medians = np.zeros_like(x)
    want = np.median(np.stack([np.roll(x, -k) for k in range(9)]), axis=0).astype("u2")
    return one("local_array", 2, 128, [x, medians, 200], (medians, want))


@case("switch_table")
def switch_table(rng):
    code, n = rng.integers(0, 9, 30, dtype="u1"), 100
    x = rng.integers(-1000, 1000, n, dtype="i4")
    want = np.zeros(n, "i4")
    for i in range(n):
        stack, depth, at = [0] * 8, 0, i % 4
        for k in range(code.size):
            top = stack[depth - 1] if depth > 0 else 0
            op = code[(k + at) % code.size]
            if op < 3:
                stack[depth] = (int(x[i]), i, top)[op]
                depth += 1
            elif op == 3:
                depth -= depth > 0
            elif op < 8:
                if depth > 0:
                    stack[depth - 1] = (-top, top * 3 + 1, top >> 1, top ^ 0x55)[op - 4]
            else:
                at += 1
            depth &= 7
        want[i] = stack[depth - 1] if depth > 0 else 0
    y = np.zeros_like(x)
    return one("switch_table", 1, 128, [code, code.size, x, y, n], (y, want))


@case("copy_pipeline")
def copy_pipeline(rng):
    x = rng.standard_normal((2, 5, 64, 4)).astype("f4")
    y = np.zeros_like(x)
    return one("copy_pipeline", 2, 64, [x, y, 5], (y, x[:, :, ::-1, ::-1]))


@case("inline_ptx")
def inline_ptx(rng):
    a, b = rng.integers(0, 2**32, (2, 64, 4), dtype="u4")
    a[:8], b[:8, 0] = 2**32 - 1, 1
    sums, lanes = np.zeros_like(a), np.zeros(64, "i4")

    def value(words):
        return sum(int(w) << 32 * k for k, w in enumerate(words))

    totals = [value(p) + value(q) for p, q in zip(a, b, strict=True)]
    want = np.array([[t >> 32 * k & 0xFFFFFFFF for k in range(4)] for t in totals], "u4")
    lane = np.arange(64, dtype="i4") % 32
    args = [a, b, sums, lanes]
    return one("inline_ptx", 1, 64, args, (sums, want), (lanes, 1000 * lane + 2 * lane + 2))


@case("complex_power", options=("--fmad=false",))
def complex_power(rng):
    z = np.exp(1j * rng.random(90)) * rng.uniform(0.9, 1.1, 90)
    out = np.zeros_like(z)
    want = (2 - 1j) * z**13
    args = [z, out, 2 - 1j, 13, 90]
    return one("complex_power", 1, 96, args, (out, want, 60 * EPS64 * abs(want)))


def _math(rng, c_type, dtype, eps):
    # Away from where a function is steep: its argument is exact, its result good to some ulp.
    x = rng.uniform(0.1, 8, 150).astype(dtype)
    v = x.astype("f8")
    ufuncs = [np.exp, np.log, np.sin, np.cos, np.tan, np.arctan, np.sinh, np.tanh]
    want = [f(v) for f in ufuncs]
    want += [v ** (np.float32(1.7) if dtype == "f4" else 1.7), np.cbrt(v)]
    want += [np.array([f(e) for e in v]) for f in (math.erf, math.lgamma)]
    seven = np.float64(np.float32(0.7)) if dtype == "f4" else 0.7
    want += [np.hypot(v, 3), np.fmod(v, seven), np.log1p(v), np.arctan2(v, 2)]
    want = np.stack(want, 1)
    # 8 ulp, as the CUDA C++ Programming Guide bounds the worst of these (lgamma near its zeros in
    # absolute terms); NumPy's own rounding is within it.
    tolerance = 8 * eps * np.maximum(abs(want), 1)
    out = np.zeros_like(want, dtype)
    args = [x, out, x.size]
    return one(f"math_functions<{c_type}>", 2, 96, args, (out, want, tolerance))


@case("math_functions", label="float", same_bits=False)
def math_float(rng):
    return _math(rng, "float", "f4", EPS)


@case("math_functions", label="double", same_bits=False)
def math_double(rng):
    return _math(rng, "double", "f8", EPS64)


@case("particles")
def particles(rng):
    n = 90
    particle = np.dtype(
        [("place", "f4", 3), ("speed", "f4", 3), ("kind", "i2"), ("alive", "?")], align=True
    )
    world = np.dtype([("low", "f4"), ("high", "f4"), ("step", "f4"), ("kinds", "i4")], align=True)
    everyone = np.zeros(n, particle)
    everyone["place"] = rng.uniform(-1, 1, (n, 3))
    everyone["speed"] = rng.standard_normal((n, 3))
    everyone["kind"] = rng.integers(0, 5, n)
    everyone["alive"] = rng.random(n) < 0.8
    step = np.float32(0.25)
    want = everyone.copy()
    alive = everyone["alive"]
    moved = (everyone["place"].astype("f8") + everyone["speed"].astype("f8") * step).astype("f4")
    out = (moved < -1) | (moved > 1)
    want["speed"][alive] = np.where(out, -everyone["speed"], everyone["speed"])[alive]
    want["place"][alive] = np.clip(moved, -1, 1)[alive]
    want["kind"][alive] = (everyone["kind"][alive] + 1) % 5
    want["alive"][alive] = want["kind"][alive] != 0
    given = np.array((-1, 1, step, 5), world)
    fields = [Result(everyone[f], want[f]) for f in ("place", "speed", "kind", "alive")]
    return Work([Launch("particles", 1, 96, [everyone, given, n])], fields)
