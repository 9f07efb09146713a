"""Cases of reductions, scans, histograms, sorts and compaction."""

import numpy as np

from .cases import EPS, EPS64, Launch, Result, Work, case, one, sum_error


@case("reduce_shared")
def reduce_shared(rng):
    n, threads = 1000, 128
    x = rng.standard_normal(n).astype("f4")
    blocks = -(-n // threads)
    sums = np.zeros(blocks, "f4")
    parts = np.resize(np.r_[x, np.zeros(threads * blocks - n, "f4")], (blocks, threads))
    want = parts.sum(1, dtype="f8")
    return one(
        "reduce_shared",
        blocks,
        threads,
        [x, sums, n],
        (sums, want, sum_error(parts)),
        shared_bytes=4 * threads,
    )


def _reduce_shuffle(rng, c_type, dtype, eps):
    n, blocks, threads = 3001, 3, 96
    x = (100 * rng.standard_normal(n)).astype(dtype)
    sums = np.zeros(blocks, dtype)
    padded = np.zeros(11 * blocks * threads, dtype)
    padded[:n] = x
    parts = padded.reshape(11, blocks, threads).transpose(1, 0, 2).reshape(blocks, -1)
    tolerance = sum_error(parts, eps=eps) if eps else 0
    wide = "f8" if eps == EPS else dtype
    name = f"reduce_shuffle<{c_type}, {threads}>"
    want = parts.sum(1, dtype=wide)
    return one(name, blocks, threads, [x, sums, n], (sums, want, tolerance))


@case("reduce_shuffle", label="float")
def reduce_shuffle_float(rng):
    return _reduce_shuffle(rng, "float", "f4", EPS)


@case("reduce_shuffle", label="double")
def reduce_shuffle_double(rng):
    return _reduce_shuffle(rng, "double", "f8", EPS64)


@case("reduce_shuffle", label="int64")
def reduce_shuffle_int64(rng):
    return _reduce_shuffle(rng, "long long", "i8", 0)


@case("reduce_last_block")
def reduce_last_block(rng):
    n, blocks = 5000, 7
    x = rng.standard_normal(n)
    partial, total = np.zeros(blocks), np.zeros(1)
    launch = Launch("reduce_last_block", blocks, 128, [x, partial, total, n])
    want = np.array([x.sum()])
    # Twice: the counter of finished blocks has to be back at 0.
    return Work([launch, launch], [Result(total, want, sum_error(x, eps=EPS64))])


@case("reduce_redux")
def reduce_redux(rng):
    x = rng.integers(-(2**31), 2**31, 256, dtype="i4")
    out = np.zeros((8, 6), "i4")
    rows = x.reshape(8, 32)
    ufuncs = np.bitwise_and, np.bitwise_or, np.bitwise_xor
    want = [rows.sum(1, dtype="i4"), rows.min(1), rows.max(1), *(f.reduce(rows, 1) for f in ufuncs)]
    return one("reduce_redux", 2, 128, [x, out], (out, np.stack(want, 1)))


@case("reduce_segmented")
def reduce_segmented(rng):
    offsets = np.r_[0, np.cumsum(rng.integers(0, 90, 41))].astype("i4")
    x = rng.standard_normal(offsets[-1]).astype("f4")
    sums = np.zeros(41, "f4")
    parts = [x[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    want = np.array([p.sum(dtype="f8") for p in parts])
    tolerance = np.array([sum_error(p) for p in parts])
    return one("reduce_segmented", 11, 128, [x, offsets, sums, 41], (sums, want, tolerance))


@case("scan_hillis_steele")
def scan_hillis_steele(rng):
    x = rng.integers(-(2**31), 2**31, 777, dtype="i4")
    y = np.zeros_like(x)
    want = np.concatenate([np.cumsum(x[a : a + 256], dtype="i4") for a in range(0, 777, 256)])
    return one("scan_hillis_steele", 4, 256, [x, y, 777], (y, want), shared_bytes=2 * 4 * 256)


@case("scan_blelloch")
def scan_blelloch(rng):
    x = rng.integers(0, 2**32, (3, 256), dtype="u4")
    y = np.zeros_like(x)
    want = np.cumsum(x, axis=1, dtype="u4") - x
    return one("scan_blelloch<256>", 3, 128, [x, y], (y, want))


@case("scan_shuffle")
def scan_shuffle(rng):
    n = 700
    x = rng.standard_normal(n).astype("f4")
    y = np.zeros_like(x)
    tolerance = (n + 2) * EPS * np.cumsum(abs(x), dtype="f8")
    return one("scan_shuffle", 1, 704, [x, y, n], (y, np.cumsum(x, dtype="f8"), tolerance))


@case("scan_look_back")
def scan_look_back(rng):
    n = 2000
    blocks = -(-n // 128)
    x = rng.integers(-(2**31), 2**31, n, dtype="i4")
    y, states, ticket = np.zeros_like(x), np.zeros(blocks, "u8"), np.zeros(1, "u4")
    want = np.cumsum(x, dtype="i4")
    return one("scan_look_back", blocks, 128, [x, y, states, ticket, n], (y, want))


@case("scan_cooperative")
def scan_cooperative(rng):
    x = rng.integers(-1000, 1000, 256, dtype="i4")
    scanned, sums, ranks = np.zeros_like(x), np.zeros(32, "i4"), np.zeros_like(x)
    odd = (x % 2 != 0).reshape(8, 32)
    place = np.cumsum(odd, 1) - odd + 100 * odd.sum(1, keepdims=True)
    return one(
        "scan_cooperative",
        2,
        128,
        [x, scanned, sums, ranks],
        (scanned, np.cumsum(x.reshape(8, 32), axis=1, dtype="i4").ravel()),
        (sums, x.reshape(32, 8).sum(1, dtype="i4")),
        (ranks, np.where(odd, place, -1).ravel().astype("i4")),
    )


@case("histogram_shared")
def histogram_shared(rng):
    x = rng.integers(0, 256, 5003, dtype="u1")
    x[:900] = 7
    bins = np.zeros(256, "u4")
    want = np.bincount(x, minlength=256).astype("u4")
    return one("histogram_shared<4>", 3, 128, [x, bins, x.size], (bins, want))


@case("tally")
def tally(rng):
    x = rng.integers(-(2**31), 2**31, 1003, dtype="i4")
    facts = np.array([0, 0, 2**31 - 1, -(2**31), 0], "i4")
    low = x[x < 0]
    want = np.array([low.size, low.sum(dtype="i4"), x.min(), x.max(), 1003 - low.size], "i4")
    return one("tally", 3, 128, [x, facts, x.size], (facts, want))


@case("histogram_match")
def histogram_match(rng):
    x = rng.integers(0, 9, 1003, dtype="i4")
    bins = np.zeros(9, "i4")
    want = np.bincount(x, minlength=9).astype("i4")
    return one("histogram_match", 8, 128, [x, bins, x.size], (bins, want))


@case("sort_bitonic")
def sort_bitonic(rng):
    keys = rng.permutation(1024).astype("f4").reshape(4, 256) - 500
    values = rng.integers(0, 2**31, (4, 256), dtype="i4")
    order = np.argsort(keys, axis=1)
    want = np.take_along_axis(keys, order, 1), np.take_along_axis(values, order, 1)
    name = "sort_bitonic<256>"
    return one(name, 4, 256, [keys, values], (keys, want[0]), (values, want[1]))


@case("sort_odd_even")
def sort_odd_even(rng):
    x = rng.integers(-(2**15), 2**15, 143, dtype="i2")
    return one("sort_odd_even", 1, 64, [x, x.size], (x, np.sort(x)), shared_bytes=2 * x.size)


@case("sort_radix")
def sort_radix(rng):
    keys = rng.integers(0, 2**32, (2, 256), dtype="u4")
    return one("sort_radix<256>", 2, 256, [keys], (keys, np.sort(keys, axis=1)))


@case("merge_path")
def merge_path(rng):
    a, b = np.sort(rng.integers(0, 500, 301, dtype="i4")), np.sort(rng.integers(0, 500, 150, "i4"))
    out = np.zeros(451, "i4")
    args = [a, a.size, b, b.size, out, 7]
    return one("merge_path", 2, 64, args, (out, np.sort(np.r_[a, b])))


@case("compact_ballot")
def compact_ballot(rng):
    """Warps append in any order: what they kept is compared as sets of runs."""
    x = rng.standard_normal(64).astype("f4")  # one block of 32 threads each would race: one warp
    x = x[:32]
    want = x[x > 0.1]
    kept, count = np.zeros(32, "f4"), np.zeros(1, "i4")
    padded = np.r_[want, np.zeros(32 - want.size, "f4")]
    found = np.array([want.size], "i4")
    args = [x, kept, count, 32, 0.1]
    return one("compact_ballot", 1, 32, args, (kept, padded), (count, found))


@case("compact_ballot", label="many")
def compact_ballot_many(rng):
    """Warps append in any order, so elements are equal within each warp: any order looks alike."""
    x = np.repeat(np.float32(1), 1003)
    x[rng.permutation(1003)[:400]] = -1
    kept, count = np.zeros(1003, "f4"), np.zeros(1, "i4")
    want = np.r_[np.ones(603, "f4"), np.zeros(400, "f4")]
    args = [x, kept, count, 1003, 0.0]
    return one("compact_ballot", 8, 128, args, (kept, want), (count, np.array([603], "i4")))
