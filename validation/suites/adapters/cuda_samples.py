"""cuda-samples: kernels whose result a line of NumPy says, in the launches of the samples."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from suites.reference import Array, Launch, Name, case

SUITE = "cuda-samples"
Rng = np.random.Generator
TYPES = {"int": np.int32, "float": np.float32, "double": np.float64}


def _floats(rng: Rng, *shape: int) -> Array:
    return rng.standard_normal(shape, np.float32)


# ---- element by element


@case(SUITE, "vectorAdd|simpleDrvRuntime|simpleZeroCopy", "vectorAdd(GPU)?", "VecAdd_kernel")
def vector_add(name: Name, rng: Rng) -> Launch:
    x, y = _floats(rng, 1000), _floats(rng, 1000)
    return Launch(4, 256, [x, y, np.zeros_like(x), 1000], {2: x + y}, 0, 0)


@case(SUITE, "asyncAPI|cudaOpenMP", "increment_kernel", "kernelAddConstant")
def increment(name: Name, rng: Rng) -> Launch:
    x = rng.integers(-1000, 1000, 512).astype(np.int32)
    return Launch(2, 256, [x, 26], {0: x + 26}, 0, 0)


@case(SUITE, "simpleOccupancy", "square")
def square(name: Name, rng: Rng) -> Launch:
    x = rng.integers(-1000, 1000, 512).astype(np.int32)
    return Launch(2, 256, [x, 500], {0: np.where(np.arange(512) < 500, x * x, x)}, 0, 0)


@case(SUITE, "graphMemoryNodes", "squareArray", "negateArray")
def unary(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 500)
    expected = x * x if name.kernel == "squareArray" else -x
    return Launch(2, 256, [x, np.zeros_like(x), x.size], {1: expected}, 0, 0)


@case(SUITE, "cudaCompressibleMemory", "saxpy")
def saxpy(name: Name, rng: Rng) -> Launch:
    x, y = _floats(rng, 1024), _floats(rng, 1024)
    args = [2.5, x, y, np.zeros_like(x), x.size // 4]
    return Launch(2, 128, args, {3: 2.5 * x.astype(float) + y}, 1e-6)


@case(SUITE, "simpleTemplates|template/", "testKernel")
def times_threads(name: Name, rng: Rng) -> Launch:
    dtype = TYPES[name.template[0] if name.template else "float"]
    x = np.arange(32).astype(dtype)
    return Launch(1, 32, [x, np.zeros_like(x)], {1: 32 * x}, 0, 0, 32 * 4)


@case(SUITE, "inlinePTX", "sequence_gpu")
def lanes(name: Name, rng: Rng) -> Launch:
    return Launch(2, 128, [np.full(200, -1, np.int32), 200], {0: np.arange(200) % 32}, 0, 0)


@case(SUITE, "simpleVoteIntrinsics", "VoteAnyKernel1", "VoteAllKernel2")
def vote(name: Name, rng: Rng) -> Launch:
    x = (rng.random(128) < 0.97).astype(np.uint32)
    x[:32], x[32:64] = 0, 1
    rows = x.reshape(-1, 32)
    votes = rows.any(1) if "Any" in name.kernel else rows.all(1)
    args = [x, np.full(128, 9, np.uint32), 128]
    return Launch(1, 128, args, {1: np.repeat(votes, 32)}, 0, 0)


@case(SUITE, "alignedTypes", "testKernel")
def copy_elements(name: Name, rng: Rng) -> Launch:
    """RGB32 has 4 bytes of padding, which need not be copied."""
    sizes = {"unsigned char": 1, "unsigned short": 2, "unsigned int": 4, "RGBA8": 4, "LA32": 8}
    sizes |= {"RGB32": 16, "RGBA32": 16, "RGBA32_2": 32, "RGBA8_misaligned": 4}
    sizes |= {"LA32_misaligned": 8, "RGB32_misaligned": 12, "RGBA32_misaligned": 16}
    kind, count = name.template[0], 300
    size = sizes[kind]
    x = rng.integers(0, 256, (count, size)).astype(np.uint8)
    expected = x.astype(float)
    if kind == "RGB32":
        expected[:, 12:] = np.nan
    return Launch(2, 64, [np.zeros_like(x), x, count], {0: expected}, 0, 0)


@case(SUITE, "BlackScholes/", "BlackScholesGPU")
def black_scholes(name: Name, rng: Rng) -> Launch:
    n, rate, volatility = 512, 0.02, 0.3
    price = rng.uniform(5, 30, n).astype(np.float32)
    strike = rng.uniform(1, 100, n).astype(np.float32)
    years = rng.uniform(0.25, 10, n).astype(np.float32)
    normal = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))
    root = volatility * np.sqrt(years.astype(float))
    d1 = (np.log(price / strike.astype(float)) + (rate + volatility**2 / 2) * years) / root
    paid = strike * np.exp(-rate * years.astype(float))
    call = price * normal(d1) - paid * normal(d1 - root)
    put = paid * normal(root - d1) - price * normal(-d1)
    args = [np.zeros_like(price), np.zeros_like(price), price, strike, years, rate, volatility, n]
    return Launch(n // 256, 128, args, {0: call, 1: put}, 1e-3, 1e-3)


# ---- transposes: tiles of 32 x 32, and blocks of 32 x 16 threads


@case(SUITE, "6_Performance/transpose", "copy(SharedMem)?", "transpose\\w+")
def transpose(name: Name, rng: Rng) -> Launch:
    n, tile = 96, 32
    x = _floats(rng, n, n)
    tiles = x.reshape(n // tile, tile, n // tile, tile)
    expected = {
        "copy": x,
        "copySharedMem": x,
        "transposeFineGrained": tiles.transpose(0, 3, 2, 1).reshape(n, n),
        "transposeCoarseGrained": tiles.transpose(2, 1, 0, 3).reshape(n, n),
    }.get(name.kernel, x.T)
    grid = (n // tile, n // tile)
    return Launch(grid, (tile, 16), [np.zeros_like(x), x, n, n], {0: expected}, 0, 0)


# ---- sums


def _values(rng: Rng, kind: str, count: int) -> Array:
    dtype = TYPES[kind]
    if kind == "int":
        return rng.integers(-1000, 1000, count).astype(dtype)
    return rng.standard_normal(count).astype(dtype)


def _sum(x: Array, out: int, threads: int, grid: int = 1) -> Launch:
    """Of all elements into out[0], with the shared memory of the sample's host code."""
    exact = x.astype(np.float64).sum(keepdims=True)
    args = [x, np.zeros(out, x.dtype), x.size]
    shared = (2 * threads if threads <= 32 else threads) * x.itemsize
    return Launch(grid, threads, args, {1: exact}, 1e-5, 1e-3, shared)


@case(SUITE, "2_Concepts_and_Techniques/reduction/", "reduce[0-7]", "(multi_warp_)?cg_reduce")
def reduce(name: Name, rng: Rng) -> Launch:
    kind, numbers = name.template[0], name.numbers()
    threads = numbers[0] if numbers else 128
    if name.kernel in ("reduce0", "reduce1", "reduce2"):
        count = threads
    elif name.kernel in ("reduce3", "reduce4", "reduce5"):
        count = 2 * threads
    else:
        count = 8 * threads if name.template[-1] != "false" else 8 * threads + threads // 2 + 1
    return _sum(_values(rng, kind, count), 1, threads)


@case(SUITE, "threadFenceReduction", "reduce(Multi|Single)Pass")
def reduce_passes(name: Name, rng: Rng) -> Launch:
    """All blocks in one launch where the last one adds their sums; else one block."""
    threads = name.numbers()[0]
    grid = 4 if "Single" in name.kernel else 1
    count = 8 * threads * grid + (0 if name.template[1] == "true" else threads // 2 + 1)
    launch = _sum(_values(rng, "float", count), grid, threads, grid)
    return launch


@case(SUITE, "scalarProd", "scalarProdGPU")
def scalar_products(name: Name, rng: Rng) -> Launch:
    vectors, count = 6, 1500
    x, y = _floats(rng, vectors, count), _floats(rng, vectors, count)
    expected = (x.astype(float) * y).sum(1)
    args = [np.zeros(vectors, np.float32), x, y, vectors, count]
    return Launch(4, 256, args, {0: expected}, 1e-4, 1e-3)


@case(SUITE, "/histogram/", "histogram(64|256)Kernel")
def histogram(name: Name, rng: Rng) -> Launch:
    bins = 64 if "64" in name.kernel else 256
    x = rng.integers(0, 256, 4096).astype(np.uint8)
    counts = np.bincount(x >> 2 if bins == 64 else x, minlength=bins)
    count, threads = (x.size // 16, 64) if bins == 64 else (x.size // 4, 192)
    args = [np.zeros(bins, np.uint32), x.view(np.uint32), count]
    return Launch(1, threads, args, {0: counts}, 0, 0)


@case(SUITE, "/histogram/", "mergeHistogram(64|256)Kernel")
def merge_histograms(name: Name, rng: Rng) -> Launch:
    bins, parts = (64 if "64" in name.kernel else 256), 240
    x = rng.integers(0, 1000, (parts, bins)).astype(np.uint32)
    args = [np.zeros(bins, np.uint32), x, parts]
    return Launch(bins, 256, args, {0: x.sum(0)}, 0, 0)


# ---- scans, sorting, transforms


@case(SUITE, "2_Concepts_and_Techniques/scan/", "scanExclusiveShared")
def exclusive_scan(name: Name, rng: Rng) -> Launch:
    """Rows of 1024 elements, four per thread."""
    x = rng.integers(0, 1000, (3, 1024)).astype(np.uint32)
    args = [np.zeros_like(x), x, 1024]
    return Launch(3, 256, args, {0: x.cumsum(1) - x}, 0, 0)


@case(SUITE, "shfl_scan", "shfl_scan_test")
def inclusive_scan(name: Name, rng: Rng) -> Launch:
    x = rng.integers(0, 1000, (3, 256)).astype(np.int32)
    args = [x, 32, np.zeros(3, np.int32)]
    return Launch(3, 256, args, {0: x.cumsum(1), 2: x.sum(1)}, 0, 0, 8 * 4)


SORTS = ("bitonicSortShared1?", "oddEvenMergeSortShared", "bitonicSortSharedKernel")


@case(SUITE, "sortingNetworks|mergeSort", *SORTS, "mergeSortSharedKernel")
def sort(name: Name, rng: Rng) -> Launch:
    """1024 keys in a block of 512 threads, and their values. Shared1 sorts even blocks down."""
    keys = rng.permutation(100000)[:1024].astype(np.uint32)
    values = np.arange(keys.size, dtype=np.uint32)
    descending = name.template == ["0u"] or name.kernel == "bitonicSortShared1"
    order = np.argsort(keys)[:: -1 if descending else 1]
    args = [np.zeros_like(keys), np.zeros_like(values), keys, values]
    args += [] if name.kernel == "bitonicSortShared1" else [keys.size]
    args += [1] if len(args) == 5 and "mergeSortShared" not in name.kernel else []
    return Launch(1, 512, args, {0: keys[order], 1: values[order]}, 0, 0)


@case(SUITE, "fastWalshTransform", "fwtBatch1Kernel")
def walsh(name: Name, rng: Rng) -> Launch:
    log2 = 9
    x = _floats(rng, 3, 1 << log2)
    matrix = np.ones((1, 1))
    for _ in range(log2):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    expected = x @ matrix
    args = [np.zeros_like(x), x, log2]
    return Launch(3, (1 << log2) // 4, args, {0: expected}, 1e-4, 1e-3, 4 << log2)


# ---- products


@case(SUITE, "matrixMul", "MatrixMulCUDA", "matrixMul_bs\\d+_64bit", "matrixMulCUDA_block\\d+")
@case(SUITE, "globalToShmemAsyncCopy", "MatrixMul(Naive|AsyncCopy)\\w*")
def matrix_product(name: Name, rng: Rng) -> Launch:
    """C, A, B, their widths; a multiple of all block sizes and longer than the pipelines."""
    n = 320 if "Async" in name.kernel or "Naive" in name.kernel else 64
    digits = "".join(c for c in name.kernel.replace("_64bit", "") if c.isdigit())
    tile = name.numbers()[0] if name.template else int(digits)
    a, b = _floats(rng, n, n), _floats(rng, n, n)
    expected = a.astype(float) @ b
    args = [np.zeros_like(a), a, b, n, n]
    rows = tile + 2 if "SharedState" in name.kernel else tile
    return Launch((n // tile, n // tile), (tile, rows), args, {0: expected}, 1e-4, 1e-3)


@case(SUITE, "TensorCoreGemm", "simple_wmma_\\w*gemm\\w*")
def tensor_product(name: Name, rng: Rng) -> Launch:
    """D = alpha A B + beta C, with B by columns; a block has 4 x 4 warps, one tile each."""
    n, alpha, beta = 64, 2, 3
    kind = name.text.partition("(")[2]
    tile = 8 if kind.startswith("double") else 16
    if kind.startswith("unsigned"):
        a, b = (rng.integers(0, 256, (n, n)).astype(np.uint8) for _ in range(2))
        c: Array = rng.integers(-1000, 1000, (n, n)).astype(np.int32)
    else:
        a, b, c = (_floats(rng, n, n).astype(ml_dtypes.bfloat16) for _ in range(3))
        dtype = np.float64 if tile == 8 else np.float32
        a, b, c = (x.astype(dtype) for x in (a, b, c))
    expected = alpha * (a.astype(float) @ b.astype(float).T) + beta * c
    args: list[Any] = [a, b, c, np.zeros_like(c), n, n, n, alpha, beta]
    grid = n // (4 * tile)
    return Launch((grid, grid), (128, 4), args, {3: expected}, 1e-4, 1e-2)
