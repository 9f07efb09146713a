"""gpuocelot's PTX of the CUDA SDK 2.2 and of Parboil, as nvopencc wrote it for sm_10 to sm_20."""

from __future__ import annotations

import math

import numpy as np

from suites.reference import Array, Launch, Name, case

SUITE = "gpuocelot PTX"
Rng = np.random.Generator


def _floats(rng: Rng, *shape: int) -> Array:
    return rng.standard_normal(shape, np.float32)


# ---- sums and scans


@case(SUITE, "sdk2.2/reduction_kernel", "reduce[0-6]_.*")
def reductions(name: Name, rng: Rng) -> Launch:
    version = int(name.kernel[len("reduce")])
    threads = int(name.template[1].rstrip("u")) if len(name.template) > 1 else 128
    each = 1 if version < 3 else 2 if version < 6 else 8
    count = 3 * threads * each
    kind = {"int": np.int32, "float": np.float32, "double": np.float64}[name.template[0]]
    x = (_floats(rng, count) if kind != np.int32 else rng.integers(-99, 99, count)).astype(kind)
    parts = x.astype(np.float64).reshape(3, -1)
    if version == 6:  # the grid takes strides of two blocks
        parts = x.astype(np.float64).reshape(4, 3, 2 * threads).transpose(1, 0, 2).reshape(3, -1)
    args = [x, np.zeros(3, kind), count]
    return Launch(3, threads, args, {1: parts.sum(1)}, 1e-5, 1e-3, max(threads, 64) * 8)


@case(SUITE, "threadFenceReduction", "reduceMultiPass")
def one_pass(name: Name, rng: Rng) -> Launch:
    threads = int(name.template[0].rstrip("u"))
    x = _floats(rng, 4 * threads)
    total = np.array([x.sum(dtype=np.float64)])
    args = [x, np.zeros(1, np.float32), x.size]
    return Launch(1, threads, args, {1: total}, 1e-5, 1e-3, 4 * max(threads, 64))


@case(SUITE, "sdk2.2/scan[._]", "scan_(naive|workefficient|best)")
def exclusive_scan(name: Name, rng: Rng) -> Launch:
    n = 256
    x = rng.integers(0, 100, n).astype(np.float32)
    threads = n if "naive" in name.kernel else n // 2
    expected = np.concatenate([[0], x.cumsum()[:-1]])
    return Launch(1, threads, [np.zeros_like(x), x, n], {0: expected}, 0, 0, 8 * n + 512)


@case(SUITE, "scalarProd", "scalarProdGPU")
def scalar_products(name: Name, rng: Rng) -> Launch:
    vectors, n = 5, 1000
    a, b = _floats(rng, vectors, n), _floats(rng, vectors, n)
    expected = (a.astype(float) * b).sum(1)
    args = [np.zeros(vectors, np.float32), a, b, vectors, n]
    return Launch(3, 256, args, {0: expected}, 1e-4, 1e-3)


@case(SUITE, "clock", "timedReduction")
def minima(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 512)
    args = [x, np.zeros(3, np.float32), np.zeros(6, np.int64)]
    return Launch(3, 256, args, {1: np.full(3, x.min())}, 0, 0, 4 * 512)


# ---- elementwise


@case(SUITE, "asyncAPI", "increment_kernel")
def increment(name: Name, rng: Rng) -> Launch:
    x = rng.integers(0, 1000, 512, np.int32)
    return Launch(2, 256, [x, 26], {0: x + 26}, 0, 0)


@case(SUITE, "vectorAdd|ZeroCopy", "VecAdd", "vectorAddGPU")
def add(name: Name, rng: Rng) -> Launch:
    a, b = _floats(rng, 500), _floats(rng, 500)
    return Launch(2, 256, [a, b, np.zeros_like(a), 500], {2: a + b}, 0, 0)


@case(SUITE, "sdk2.2/(template|simpleTemplates)", "testKernel")
def scale_by_threads(name: Name, rng: Rng) -> Launch:
    kind = np.int32 if name.template[:1] == ["int"] else np.float32
    x = rng.integers(0, 100, 64).astype(kind)
    return Launch(1, 64, [x, np.zeros_like(x)], {1: 64 * x}, 0, 0, 256)


@case(SUITE, "simpleCUFFT", "ComplexPointwiseMulAndScale")
def complex_product(name: Name, rng: Rng) -> Launch:
    a, b = (_floats(rng, 300).astype(np.complex64) + 1j * _floats(rng, 300) for _ in range(2))
    a, b = (x.astype(np.complex64).view(np.float32) for x in (a, b))
    expected = (a.view(np.complex64).astype(complex) * b.view(np.complex64) * 0.5).view(float)
    return Launch(2, 64, [a, b, 300, 0.5], {0: expected}, 1e-5, 1e-5)


@case(SUITE, "mri-q|computeQ", "ComputePhiMag_GPU")
def magnitudes(name: Name, rng: Rng) -> Launch:
    a, b = _floats(rng, 500), _floats(rng, 500)
    args = [a, b, np.zeros_like(a), 500]
    return Launch(1, 512, args, {2: a.astype(float) ** 2 + b.astype(float) ** 2}, 1e-5, 1e-6)


def _normal(x: Array) -> Array:
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


@case(SUITE, "BlackScholes", "BlackScholesGPU")
def options(name: Name, rng: Rng) -> Launch:
    n, rate, volatility = 300, 0.02, 0.3
    price, strike, years = (
        rng.uniform(*r, n).astype(np.float32) for r in ((5, 30), (1, 100), (0.25, 10))
    )
    s, k, t = (x.astype(float) for x in (price, strike, years))
    d1 = (np.log(s / k) + (rate + 0.5 * volatility**2) * t) / (volatility * np.sqrt(t))
    d2 = d1 - volatility * np.sqrt(t)
    call = s * _normal(d1) - k * np.exp(-rate * t) * _normal(d2)
    put = call - s + k * np.exp(-rate * t)
    out = [np.zeros(n, np.float32), np.zeros(n, np.float32)]
    args = [*out, price, strike, years, rate, volatility, n]
    return Launch(2, 128, args, {0: call, 1: put}, 1e-3, 1e-3)


@case(SUITE, "simpleVote", "VoteA.*Kernel[12]")
def votes(name: Name, rng: Rng) -> Launch:
    x = (rng.random(128) < 0.04).astype(np.uint32)
    if "All" in name.kernel:
        x = 1 - x
    warps = x.reshape(4, 32)
    result = warps.any(1) if "Any" in name.kernel else warps.all(1)
    return Launch(1, 128, [x, np.zeros_like(x), 128], {1: np.repeat(result, 32)}, 0, 0)


@case(SUITE, "simpleAtomicIntrinsics", "testKernel")
def atomics(name: Name, rng: Rng) -> Launch:
    threads = np.arange(512)
    out = np.zeros(11, np.int32)
    out[[8, 10]] = 0xFF
    expected = np.full(11, np.nan)
    expected[[0, 1, 3, 4]] = 10 * 512, -10 * 512, 511, 0
    expected[8] = np.bitwise_and.reduce(2 * threads + 7) & 0xFF
    expected[9] = -1
    expected[10] = np.bitwise_xor.reduce(threads) ^ 0xFF
    return Launch(2, 256, [out], {0: expected}, 0, 0)


# ---- transforms, sorts, products


@case(SUITE, "transposeNew", "copy.*", "transpose(Naive|Coalesced|NoBankConflicts|Diagonal)")
def transposes(name: Name, rng: Rng) -> Launch:
    n = 64
    x = _floats(rng, n, n)
    expected = x if "copy" in name.kernel else x.T
    return Launch((2, 2), (32, 8), [np.zeros_like(x), x, n, n, 1], {0: expected}, 0, 0)


@case(SUITE, "bitonic", "bitonicSort")
def sort(name: Name, rng: Rng) -> Launch:
    x = rng.integers(-(10**6), 10**6, 256, np.int32)
    return Launch(1, 256, [x], {0: np.sort(x)}, 0, 0, 1024)


@case(SUITE, "sdk2.2/matrixMul", "matrixMul")
def product(name: Name, rng: Rng) -> Launch:
    a, b = _floats(rng, 48, 64), _floats(rng, 64, 32)
    args = [np.zeros((48, 32), np.float32), a, b, 64, 32]
    return Launch((2, 3), (16, 16), args, {0: a.astype(float) @ b}, 1e-4, 1e-3)


@case(SUITE, "fastWalsh", "fwtBatch1Kernel")
def walsh(name: Name, rng: Rng) -> Launch:
    n = 256
    x = rng.integers(-9, 9, (2, n)).astype(np.float32)
    matrix = np.array([[1.0]])
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    args = [np.zeros_like(x), x, 8]
    return Launch(2, 64, args, {0: x @ matrix}, 0, 0, 4 * n)


@case(SUITE, "fastWalsh", "modulateKernel")
def modulate(name: Name, rng: Rng) -> Launch:
    a, b = _floats(rng, 256), _floats(rng, 256)
    return Launch(2, 64, [a, b, 256], {0: a.astype(float) * b / 256}, 1e-5, 1e-6)


def _dct() -> Array:
    k = np.arange(8)
    rows = np.cos(np.pi * k[:, None] * (2 * k + 1) / 16) / 2
    rows[0] = math.sqrt(1 / 8)
    return rows


@case(SUITE, "dct8x8", "CUDAkernel2I?DCT")
def cosines(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 16, 32)
    blocks = x.reshape(2, 8, 4, 8).transpose(0, 2, 1, 3).astype(float)
    m = _dct() if "IDCT" not in name.kernel else _dct().T
    expected = (m @ blocks @ m.T).transpose(0, 2, 1, 3).reshape(16, 32)
    return Launch((1, 1), (8, 4, 2), [x, 32], {0: expected}, 1e-3, 1e-3)


@case(SUITE, "histogram256_SM1[12]", "histogram256Kernel")
def histogram(name: Name, rng: Rng) -> Launch:
    """Compiled for warps of one thread: each of six threads has its own histogram."""
    data = rng.integers(0, 256, 4 * 3000).astype(np.uint8)
    args = [np.zeros(256, np.uint32), data.view(np.uint32), 3000]
    return Launch(1, 6, args, {0: np.bincount(data, minlength=256)}, 0, 0)


@case(SUITE, "rodinia/lud_kernel", "lud_diagonal")
def factorize(name: Name, rng: Rng) -> Launch:
    n = 16
    x = _floats(rng, n, n) + 8 * np.eye(n, dtype=np.float32)
    lu = x.astype(float)
    for k in range(n):
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return Launch(1, n, [x, n, 0], {0: lu}, 1e-3, 1e-3)
