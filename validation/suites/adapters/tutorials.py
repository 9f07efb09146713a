"""Tutorials and books: sums, scans, transposes, stencils, products, histograms, in float64."""

from __future__ import annotations

import math

import numpy as np

from suites.reference import Array, Launch, Name, case

Rng = np.random.Generator
OPTIMIZE, FRESHMAN, PMPP = "How_to_optimize_in_GPU", "CUDA_Freshman", "PMPP"
LEARN, BLOG, COFFEE = "Learn-CUDA-Programming", "code-samples", "cuda_programming"


def _floats(rng: Rng, *shape: int) -> Array:
    return rng.standard_normal(shape, np.float32)


def _ints(rng: Rng, *shape: int) -> Array:
    return rng.integers(-1000, 1000, shape, np.int32)


def _bytes(rng: Rng, *shape: int) -> Array:
    return rng.integers(0, 256, shape, np.uint8)


def _block_sums(x: Array, per_block: int) -> Array:
    """As far as whole blocks go."""
    return x.astype(np.float64).reshape(-1, per_block).sum(1)


# ---- elementwise


@case(OPTIMIZE, "elementwise_add", "add", "vec2_add", "vec4_add")
def add_vectors(name: Name, rng: Rng) -> Launch:
    per_thread = {"add": 1, "vec2_add": 2, "vec4_add": 4}[name.kernel]
    a, b = (_floats(rng, 4 * 256 * per_thread) for _ in range(2))
    return Launch(4, 256, [a, b, np.zeros_like(a)], {2: a + b}, 0, 0)


@case("lectures", "vector_addition|privatization.cu", "vecAddKernel", "vectorAdd.*")
@case("CUDA-C", "vec_add", "vec_add_kernel")
@case(COFFEE, "vector_addition", "vectorAdd")
@case(PMPP, "Ch03.*vector_add.cu", "vec_add")
def add_with_count(name: Name, rng: Rng) -> Launch:
    make = _ints if "int*" in name.text or "int const*" in name.text else _floats
    a, b = make(rng, 1000), make(rng, 1000)
    out = np.zeros_like(a)
    return Launch(4, 256, [a, b, out, 1000], {2: a + b}, 0, 0)


@case(PMPP, "matrix_addition", "matrix_addition_[BCD]")
def add_matrices(name: Name, rng: Rng) -> Launch:
    n = 64
    a, b = _floats(rng, n, n), _floats(rng, n, n)
    grid, block = ((4, 4), (16, 16)) if name.kernel[-1] == "B" else (2, 32)
    return Launch(grid, block, [np.zeros_like(a), a, b, n], {0: a + b}, 0, 0)


@case(PMPP, "grayscale|to_gray", "color_to_grayscale_conversion")
def grayscale(name: Name, rng: Rng) -> Launch:
    height, width = 37, 50
    image = _bytes(rng, height, width, 3)
    r, g, b = (image[..., k].astype(float) for k in range(3))
    exact = 0.21 * r + 0.71 * g + 0.07 * b
    expected = np.where(np.abs(exact - np.round(exact)) < 1e-3, np.nan, np.floor(exact))
    out = np.zeros((height, width), np.uint8)
    return Launch((4, 3), (16, 16), [image, out, width, height], {1: expected})


@case(PMPP, "image_blur", "blur_kernel")
def blur(name: Name, rng: Rng) -> Launch:
    height, width = 37, 50
    image = _bytes(rng, height, width)
    padded, ones = (np.pad(x.astype(int), 1) for x in (image, np.ones_like(image)))
    near = [(i, j) for i in range(3) for j in range(3)]
    total = sum(padded[i : i + height, j : j + width] for i, j in near)
    count = sum(ones[i : i + height, j : j + width] for i, j in near)
    out = np.zeros_like(image)
    return Launch((4, 3), (16, 16), [image, out, width, height], {1: total // count})


# ---- sums


@case("how-to-optim-algorithm", "reduce_v", "reduce_v[0-6]")
@case(OPTIMIZE, "reduce_v", "reduce[0-7]")
def sums_of_blocks(name: Name, rng: Rng) -> Launch:
    version = int(name.kernel[-1])
    per_block = 256 if version < 3 else 512 if version < 6 else 256 * int(name.template[1])
    x = _floats(rng, 3 * per_block)
    count = [x.size] if "unsigned int" in name.text else []
    args = [x, np.zeros(3, np.float32), *count]
    return Launch(3, 256, args, {1: _block_sums(x, per_block)}, 1e-5, 1e-3)


@case(FRESHMAN, "1[02]_reduce|25_reduce", "warmup", "reduce.*")
def integer_sums(name: Name, rng: Rng) -> Launch:
    unrolled = [c for c in name.kernel if c.isdigit()]
    each = int(unrolled[0]) if unrolled else 1
    if name.kernel == "reduceCompleteUnroll":
        each = 8
    threads = int(name.template[0].rstrip("u")) if name.template else 512
    x = _ints(rng, 2 * threads * each)
    args = [x, np.zeros(2, np.int32), x.size]
    return Launch(2, threads, args, {1: _block_sums(x, threads * each)}, 0, 0, 4 * threads)


@case(PMPP, "labs/reduction/", "reduction")
def sums_of_two(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 900)
    whole = np.concatenate([x, np.zeros(124, np.float32)])
    return Launch(
        2, 256, [x, 900, np.zeros(2, np.float32)], {2: _block_sums(whole, 512)}, 1e-5, 1e-4
    )


@case(LEARN, "03_threadsync|04_perf|05_warp|06_limiter", "reduction_kernel(_[12])?")
def padded_sums(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 900)
    whole = np.concatenate([x, np.zeros(124, np.float32)])
    out = np.zeros(4, np.float32)
    return Launch(4, 256, [out, x, 900], {0: _block_sums(whole, 256)}, 1e-5, 1e-4, 1024)


@case(LEARN, "07_warp_sync|08_coop|09_loop", "reduction_kernel")
def strided_sums(name: Name, rng: Rng) -> Launch:
    """The sum over all blocks' sums: which elements a block takes is its own affair."""
    x = _floats(rng, 5000)
    out = np.zeros(1, np.float32)
    total = np.array([x.sum(dtype=np.float64)])
    return Launch(1, 256, [out, x, x.size], {0: total}, 1e-5, 1e-3, 1024)


@case(LEARN, "10_atomic", "atomic_reduction_kernel", "reduction_(blk|wrp)_atmc_kernel")
def atomic_sums(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 1024)
    total = np.array([x.sum(dtype=np.float64)])
    return Launch(4, 256, [np.zeros(1, np.float32), x, x.size], {0: total}, 1e-5, 1e-3)


@case(COFFEE, "sum_reduction/(diverged|bank|no_conf)", "sumR.*", "sum_r.*")
def coffee_sums(name: Name, rng: Rng) -> Launch:
    each = 256
    x = _ints(rng, 2 * each)
    return Launch(2, 256, [x, np.zeros(2, np.int32)], {1: _block_sums(x, each)}, 0, 0)


# ---- scans


@case(PMPP, "scan/scan.cu", "Kogge_Stone_inclusive_scan", "Brent_Kung_inclusive_scan")
def inclusive_scan(name: Name, rng: Rng) -> Launch:
    each = 256 if "Kogge" in name.kernel else 512
    x = _floats(rng, 2 * each)
    sums = x.astype(float).reshape(2, each).cumsum(1)
    args = [x, np.zeros_like(x), x.size, np.zeros(2, np.float32)]
    return Launch(2, 256, args, {1: sums, 3: sums[:, -1]}, 1e-4, 1e-4)


@case(PMPP, "scan/scan.cu", "three_phase_parallel_inclusive_scan")
def three_phase_scan(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 8192)
    args = [x, np.zeros_like(x), x.size, np.zeros(1, np.float32)]
    return Launch(1, 512, args, {1: x.astype(float).cumsum()}, 1e-3, 1e-3)


@case(LEARN, "03_scan/scan_v1", "scan_v1_kernel")
def quadratic_scan(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 256)
    expected = x.astype(float).cumsum()
    return Launch(2, 128, [np.zeros_like(x), x, 256], {0: expected}, 1e-4, 1e-4)


@case(LEARN, "scan_v2|pack_n", "scan_v2_kernel")
def tree_scan(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 1024)
    expected = x.astype(float).cumsum()
    return Launch(1, 512, [np.zeros_like(x), x, 1024], {0: expected}, 1e-4, 1e-3, 4096)


# ---- histograms, stencils, bodies


@case(
    PMPP, "histogram.cu|histogram_test", "histogram_kernel", "histogram_shared", "simple_histogram"
)
def histogram(name: Name, rng: Rng) -> Launch:
    bins = 128
    x = rng.integers(0, bins, 3000).astype(np.uint32)
    args = [x, np.zeros(bins, np.uint32), 3000, bins]
    return Launch(4, 256, args, {1: np.bincount(x, minlength=bins)}, 0, 0, 4 * bins)


@case(LEARN, "n_body", "calculateBodyForce")
def bodies(name: Name, rng: Rng) -> Launch:
    n, dt = 256, 0.01
    p, v = _floats(rng, n, 4), _floats(rng, n, 4)
    apart = p[None, :, :3].astype(float) - p[:, None, :3]
    inverse = ((apart**2).sum(2) + 1e-9) ** -1.5
    expected = v.astype(float)
    expected[:, :3] += dt * (apart * inverse[..., None]).sum(1)
    return Launch(2, 128, [p, v, dt, n], {1: expected}, 1e-3, 1e-3)


# ---- transposes


@case(FRESHMAN, "26_transform", "transform.*")
def transposes(name: Name, rng: Rng) -> Launch:
    rows = columns = 64
    x = _floats(rng, rows, columns)
    wide = 2 if "Unroll" in name.kernel else 1
    grid = (columns // 8 // wide, rows // 8)
    return Launch(grid, (8, 8), [x, np.zeros_like(x), columns, rows], {1: x.T}, 0, 0)


@case(BLOG, "transpose/transpose", "copy.*", "transpose.*")
def blog_transposes(name: Name, rng: Rng) -> Launch:
    """The first of the tiles' rows and columns: the sample's matrix is 1024 x 1024."""
    n = 1024
    x = _floats(rng, n, n)
    expected = np.full((n, n), np.nan, np.float32)
    part = (slice(0, 64), slice(0, 96)) if "copy" in name.kernel else (slice(0, 96), slice(0, 64))
    expected[part] = (x if "copy" in name.kernel else x.T)[part]
    return Launch((n // 32, n // 32), (32, 8), [np.zeros_like(x), x], {0: expected}, 0, 0)


@case(BLOG, "shared-memory.cu", "staticReverse", "dynamicReverse")
def reverse(name: Name, rng: Rng) -> Launch:
    x = _ints(rng, 64)
    return Launch(1, 64, [x, 64], {0: x[::-1].copy()}, 0, 0, 256)


# ---- products


@case(OPTIMIZE, "sgemm_v", "Sgemm")
def products(name: Name, rng: Rng) -> Launch:
    n = 256
    a, b = _floats(rng, n, n), _floats(rng, n, n)
    args = [a, b, np.zeros((n, n), np.float32), n, n, n]
    return Launch((2, 2), (16, 16), args, {2: a.astype(float) @ b}, 1e-4, 1e-3)


@case("how-to-optim-algorithm", "gemv", "Sgemv_v[012]")
@case(OPTIMIZE, "Sgemv", "Sgemv_v[012]")
def vector_products(name: Name, rng: Rng) -> Launch:
    rows, columns = 64, {"0": 32, "1": 128, "2": 16}[name.kernel[-1]]
    a, x = _floats(rng, rows, columns), _floats(rng, columns)
    per_warp = 2 if name.kernel[-1] == "2" else 1
    args = [a, x, np.zeros(rows, np.float32), rows, columns]
    return Launch(rows // 4 // per_warp, (32, 4), args, {2: a.astype(float) @ x}, 1e-4, 1e-4)


@case(PMPP, "labs/mat_vec_mul", "mat_vec_mul")
def simple_vector_product(name: Name, rng: Rng) -> Launch:
    n = 100
    a, x = _floats(rng, n, n), _floats(rng, n)
    return Launch(4, 32, [np.zeros(n, np.float32), a, x, n], {0: a.astype(float) @ x}, 1e-4, 1e-4)


@case(LEARN, "(?<!04_cuda_assert/)sgemm.cu", "sgemm.*kernel(_[AB])?")
def scaled_products(name: Name, rng: Rng) -> Launch:
    n = 64
    a, b, c = (_floats(rng, n, n) for _ in range(3))
    expected = 1.5 * (a.astype(float) @ b) + 0.5 * c
    args = [a, b, c, n, n, n, 1.5, 0.5]
    return Launch((4, 4), (16, 16), args, {2: expected}, 1e-4, 1e-3)


@case("CUDA-C", "mat_mul", ".*sq_mat_mul_kernel")
@case("lectures", "tiling", "matrixMul(Simple|Tiled)")
def square_products(name: Name, rng: Rng) -> Launch:
    n = 64
    a, b = _floats(rng, n, n), _floats(rng, n, n)
    grid = math.ceil(n / 16)
    args = [a, b, np.zeros((n, n), np.float32), n]
    return Launch((grid, grid), (16, 16), args, {2: a.astype(float) @ b}, 1e-4, 1e-3)


@case(BLOG, "simpleTensorCoreGEMM", "wmma_example")
def tensor_core_product(name: Name, rng: Rng) -> Launch:
    n = 128
    a, b = (_floats(rng, n, n).astype(np.float16).astype(np.float32) for _ in range(2))
    c = _floats(rng, n, n)
    product = 2 * (a.T.astype(float) @ b.T) + 2 * c.T  # all are column-major
    args = [a.astype(np.float16), b.astype(np.float16), c, n, n, n, 2.0, 2.0]
    return Launch((2, 2), (128, 4), args, {2: product.T}, 1e-3, 1e-2)
