"""Cases of stencils, convolutions, linear algebra, signals and graphs."""

import numpy as np

from .cases import EPS, EPS64, Launch, Result, Work, case, one, sum_error


@case("stencil_1d")
def stencil_1d(rng):
    weights = np.array([0.05, 0.1, 0.2, 0.3, 0.2, 0.1, 0.05], "f4")
    x = rng.standard_normal(300).astype("f4")
    y = np.zeros_like(x)
    want = np.convolve(x.astype("f8"), weights.astype("f8"), "same")
    return one("stencil_1d", 3, 128, [x, y, 300], (y, want, 9 * EPS * abs(x).max()))


@case("stencil_2d")
def stencil_2d(rng):
    x = rng.standard_normal((37, 45)).astype("f4")
    y = np.zeros_like(x)
    want = x.astype("f8")
    want[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    args = [x, y, 37, 45]
    return one("stencil_2d<16>", (3, 3), (16, 16), args, (y, want, 4 * EPS * abs(x).max()))


@case("stencil_3d")
def stencil_3d(rng):
    u = rng.standard_normal((9, 13, 30))
    out = np.zeros_like(u)
    want = np.zeros_like(u)
    inner = slice(1, -1)
    want[inner, inner, inner] = -6 * u[inner, inner, inner]
    for axis in range(3):
        for shift in (slice(None, -2), slice(2, None)):
            index = [inner] * 3
            index[axis] = shift
            want[inner, inner, inner] += u[tuple(index)]
    args = [u, out, 30, 13, 9]
    return one("stencil_3d", (3, 3), (16, 8), args, (out, want, 60 * EPS64 * abs(u).max()))


def _correlate(x, taps):
    rows, cols = x.shape
    radius = taps.shape[0] // 2
    padded = np.pad(x.astype("f8"), radius)
    return sum(
        taps[r, c] * padded[r : r + rows, c : c + cols]
        for r in range(taps.shape[0])
        for c in range(taps.shape[1])
    )


@case("convolve_2d")
def convolve_2d(rng):
    image = rng.integers(0, 256, (33, 41), dtype="u1")
    out = np.zeros_like(image)
    line = np.array([1.0, 4, 6, 4, 1])
    want = np.floor(_correlate(image, np.outer(line, line)) / 256 + 0.5).astype("u1")
    return one("convolve_2d", (3, 5), (16, 8), [image, out, 33, 41], (out, want))


@case("convolve_separable")
def convolve_separable(rng):
    x, taps = rng.standard_normal((35, 50)).astype("f4"), rng.standard_normal(5).astype("f4")
    y = np.zeros_like(x)
    wide = taps.astype("f8")
    want = _correlate(x, np.outer(wide, wide))
    size = _correlate(abs(x), np.outer(abs(wide), abs(wide)))
    args = [x, taps, y, 35, 50]
    return one("convolve_separable", (4, 3), (16, 16), args, (y, want, 14 * EPS * size))


@case("gemv")
def gemv(rng):
    A, x = rng.standard_normal((13, 132)).astype("f4"), rng.standard_normal(132).astype("f4")
    y = np.zeros(13, "f4")
    want = A.astype("f8") @ x
    return one("gemv", 4, 128, [A, x, y, 13, 33], (y, want, sum_error(A * x)))


def _sparse(rng, dtype):
    A = rng.standard_normal((70, 90)) * (rng.random((70, 90)) < 0.3)
    A[11] = 0
    cols = np.nonzero(A)[1].astype("i4")
    starts = np.r_[0, np.cumsum(np.count_nonzero(A, axis=1))].astype("i4")
    A, x = A.astype(dtype), rng.standard_normal(90).astype(dtype)
    return A, x, starts, cols, A[A != 0]


@case("spmv_scalar")
def spmv_scalar(rng):
    A, x, starts, cols, values = _sparse(rng, "f8")
    y = np.ones(70)
    args = [starts, cols, values, x, y, 70]
    return one("spmv_scalar<double>", 3, 32, args, (y, A @ x, sum_error(A * x, eps=EPS64)))


@case("spmv_warp")
def spmv_warp(rng):
    A, x, starts, cols, values = _sparse(rng, "f4")
    y = np.ones(70, "f4")
    args = [starts, cols, values, x, y, 70]
    return one("spmv_warp", 18, (32, 4), args, (y, A.astype("f8") @ x, sum_error(A * x)))


@case("matmul_small")
def matmul_small(rng):
    A, B = rng.standard_normal((2, 5, 7, 7))
    C = np.zeros_like(A)
    tolerance = 9 * EPS64 * (abs(A) @ abs(B))
    return one("matmul_small<7>", 5, (7, 7), [A, B, C], (C, A @ B, tolerance))


@case("matmul_vector")
def matmul_vector(rng):
    A, B = rng.standard_normal((2, 128, 128)).astype("f4")
    A, B = A[:, :48].copy(), B[:48, :64].copy()
    C = np.zeros((128, 64), "f4")
    tolerance = 50 * EPS * (abs(A.astype("f8")) @ abs(B))
    want = A.astype("f8") @ B
    return one("matmul_vector", (1, 2), 256, [A, B, C, 64, 48], (C, want, tolerance))


@case("lu", options=("--fmad=false",))
def lu(rng):
    n = 24
    A = (rng.standard_normal((3, n, n)) + n * np.eye(n)).astype("f4")
    want = A.astype("f8")
    for k in range(n):
        want[:, k + 1 :, k] /= want[:, k, k, None]
        want[:, k + 1 :, k + 1 :] -= want[:, k + 1 :, k, None] * want[:, None, k, k + 1 :]
    # Diagonally dominant, so that errors do not grow: n eps of the largest element.
    tolerance = 4 * n * EPS * abs(A).max()
    return one("lu", 3, 64, [A, n], (A, want, tolerance), shared_bytes=4 * n * n)


@case("cholesky", options=("--fmad=false",))
def cholesky(rng):
    n = 20
    B = rng.standard_normal((n, n))
    A = B @ B.T + n * np.eye(n)
    L = np.zeros_like(A)
    tolerance = 4 * n * EPS64 * abs(A).max()
    return one(f"cholesky<{n}>", 1, 32, [A, L], (L, np.linalg.cholesky(A), tolerance))


@case("n_body", same_bits=False)
def n_body(rng):
    n = 150
    bodies = rng.standard_normal((n, 4)).astype("f4")
    bodies[:, 3] = abs(bodies[:, 3])
    pulls = np.zeros((n, 3), "f4")
    p = bodies[:, :3].astype("f8")
    d = p[None] - p[:, None]
    terms = d * (bodies[:, 3] / ((d**2).sum(-1) + np.float32(0.05)) ** 1.5)[..., None]
    # A term is some ten roundings, and 1 / sqrt to 2 ulp, cubed.
    tolerance = sum_error(terms, axis=1) + 20 * EPS * abs(terms).sum(1)
    args = [bodies, pulls, n, 0.05]
    return one("n_body", 3, 64, args, (pulls, terms.sum(1), tolerance))


@case("floyd_warshall")
def floyd_warshall(rng):
    distance = rng.integers(1, 1000, (2, 32, 32), dtype="u4")
    distance[rng.random(distance.shape) < 0.7] = 10**6
    want = distance.copy()
    for k in range(32):
        want = np.minimum(want, want[:, :, k, None] + want[:, None, k, :])
    return one("floyd_warshall", 2, (32, 32), [distance], (distance, want))


@case("fft", same_bits=False)
def fft(rng):
    x = (rng.standard_normal((2, 256)) + 1j * rng.standard_normal((2, 256))).astype("c8")
    y = np.zeros_like(x)
    want = np.fft.fft(x.astype("c16"))
    # Each of 8 stages rounds a product and a sum, and its factors are good to 2 ulp.
    tolerance = 8 * 5 * EPS * np.linalg.norm(x.astype("c16"), axis=1, keepdims=True)
    return one("fft", 2, 128, [x, y], (y, want, tolerance))


@case("haar")
def haar(rng):
    x = rng.standard_normal((3, 128)).astype("f4")
    want = x.copy()
    length = 128
    while length > 1:
        even, odd = want[:, :length:2].copy(), want[:, 1:length:2].copy()
        half = np.float32(0.5)
        want[:, : length // 2] = (even + odd) * half
        want[:, length // 2 : length] = (even - odd) * half
        length //= 2
    return one("haar", 3, 64, [x, 128], (x, want), shared_bytes=512)


@case("transpose_shuffle")
def transpose_shuffle(rng):
    x = rng.integers(0, 2**32, (3, 32, 32), dtype="u4")
    y = np.zeros_like(x)
    return one("transpose_shuffle", 3, 32, [x, y], (y, x.transpose(0, 2, 1)))


@case("reverse")
def reverse(rng):
    x = rng.integers(0, 256, (301, 3), dtype="u1")
    return one("reverse", 2, 128, [x, 301], (x, x[::-1].copy()))


@case("grid_stride_3d")
def grid_stride_3d(rng):
    x = rng.integers(0, 2**31, (5, 11, 23), dtype="i4")
    y = np.zeros((23, 11, 5), "i4")
    size = np.array([23, 11, 5], "i4")
    return one("grid_stride_3d", (2, 3, 2), (8, 2, 2), [x, y, size], (y, x.T))


@case("bfs")
def bfs(rng):
    n = 300
    edges = rng.integers(0, n, (600, 2))
    order = np.argsort(edges[:, 0], kind="stable")
    starts = np.searchsorted(edges[order, 0], np.arange(n + 1)).astype("i4")
    targets = edges[order, 1].astype("i4")
    depth = np.full(n, -1, "i4")
    depth[0] = 0
    seen, frontier, levels = depth.copy(), np.array([0], "i4"), []
    launches = []
    depth_given = depth
    while frontier.size:
        level = len(levels) + 1
        reached = np.unique(np.concatenate([targets[starts[f] : starts[f + 1]] for f in frontier]))
        fresh = reached[seen[reached] < 0].astype("i4")
        seen[fresh] = level
        found, count = np.zeros(n, "i4"), np.zeros(1, "i4")
        args = [starts, targets, frontier, frontier.size, depth_given, found, count, level]
        launches.append(Launch("bfs", 5, 64, args))
        levels.append(Result(count, np.array([fresh.size], "i4")))
        frontier = fresh
    return Work(launches, [Result(depth_given, seen), *levels])


@case("union_find")
def union_find(rng):
    n = 250
    edges = rng.integers(0, n, (150, 2), dtype="i4")
    parent = np.arange(n, dtype="i4")
    want = np.arange(n, dtype="i4")
    for _ in range(n):
        for a, b in edges:
            want[a] = want[b] = min(want[a], want[b])
    launches = [
        Launch("unite", 2, 96, [edges, 150, parent]),
        Launch("flatten", 2, 128, [parent, n]),
    ]
    return Work(launches, [Result(parent, want)])


@case("k_means", same_bits=False)
def k_means(rng):
    n, k = 400, 5
    points, centres = rng.standard_normal((n, 2)).astype("f4"), np.zeros((k, 2), "f4")
    centres[:] = points[:k]
    nearest, sums, counts = np.zeros(n, "i4"), np.zeros((k, 2), "f4"), np.zeros(k, "i4")
    square = ((points[:, None].astype("f8") - centres) ** 2).sum(-1)
    want = square.argmin(1).astype("i4")
    members = [points[want == i] for i in range(k)]
    return one(
        f"k_means<{k}>",
        4,
        128,
        [points, centres, nearest, sums, counts, n],
        (nearest, want),
        (counts, np.bincount(want, minlength=k).astype("i4")),
        (
            sums,
            np.stack([m.sum(0, dtype="f8") for m in members]),
            np.stack([sum_error(m, axis=0) for m in members]),
        ),
    )
