"""The kernels of triton_kernels.py and numba_kernels.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from suites.reference import Array, Launch, Name, case

Rng = np.random.Generator
THREADS = 128  # of a block of Triton: four warps
SHARED_BYTES = 96 << 10  # more than any of its kernels uses


def _floats(rng: Rng, *shape: int, dtype: Any = np.float32) -> Array:
    return rng.standard_normal(shape).astype(dtype)


# ---- Triton: after the kernel's own parameters come two pointers to scratch memory


def _triton(grid: Any, args: list[Any], expected: dict[int, Array], rtol: float = 1e-5) -> Launch:
    return Launch(grid, THREADS, [*args, None, None], expected, rtol, rtol, SHARED_BYTES)


@case("Triton", "", "vector_add")
def vector_add(name: Name, rng: Rng) -> Launch:
    x, y = _floats(rng, 3000), _floats(rng, 3000)
    return _triton(3, [x, y, np.zeros_like(x), x.size], {2: x + y}, 0)


@case("Triton", "", "softmax_rows")
def softmax(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 5, 781)
    powers = np.exp(x.astype(float))
    expected = powers / powers.sum(1, keepdims=True)
    return _triton(5, [x, np.zeros_like(x), 781], {1: expected})


@case("Triton", "", "normalize_rows")
def layer_norm(name: Name, rng: Rng) -> Launch:
    x, weight, bias = _floats(rng, 5, 781), _floats(rng, 781), _floats(rng, 781)
    centred = x.astype(float) - x.astype(float).mean(1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    args = [x, np.zeros_like(x), weight, bias, 781]
    return _triton(5, args, {1: scaled * weight + bias}, 1e-4)


@case("Triton", "", "matrix_product")
def product(name: Name, rng: Rng) -> Launch:
    a, b = _floats(rng, 128, 96, dtype=np.float16), _floats(rng, 96, 192, dtype=np.float16)
    expected = a.astype(float) @ b.astype(float)
    args = [a, b, np.zeros(expected.shape, np.float32), 128, 192, 96]
    return _triton((2, 3), args, {2: expected}, 1e-4)


@case("Triton", "", "attention")
def attention(name: Name, rng: Rng) -> Launch:
    q, k, v = (_floats(rng, 128, 64, dtype=np.float16) for _ in range(3))
    powers = np.exp(q.astype(float) @ k.T.astype(float) / 8)
    expected = powers / powers.sum(1, keepdims=True) @ v
    args = [q, k, v, np.zeros(q.shape, np.float32), 0.125, 128]
    return _triton(2, args, {3: expected}, 5e-3)


@case("Triton", "", "running_sum")
def running_sum(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 3, 512)
    return _triton(3, [x, np.zeros_like(x)], {1: x.astype(float).cumsum(1)}, 1e-4)


@case("Triton", "", "sort_rows")
def sort(name: Name, rng: Rng) -> Launch:
    x = rng.integers(-1000, 1000, (3, 256)).astype(np.int32)
    return _triton(3, [x, np.zeros_like(x)], {1: np.sort(x, 1)}, 0)


@case("Triton", "", "count_values")
def count(name: Name, rng: Rng) -> Launch:
    x = rng.integers(0, 64, 3 * 1024).astype(np.int32)
    return _triton(3, [x, np.zeros(64, np.int32)], {1: np.bincount(x, minlength=64)}, 0)


# ---- Numba: an array is its memory's owner twice, size, item size, data, shape and strides


def _numba(grid: Any, block: Any, args: list[Any], out: Array, rtol: float = 1e-5) -> Launch:
    """The last argument is the result."""
    flat: list[Any] = []
    for value in args:
        if isinstance(value, np.ndarray):
            flat += [None, None, value.size, value.itemsize, value, *value.shape, *value.strides]
        else:
            flat.append(value)
    at = max(i for i, value in enumerate(flat) if value is args[-1])
    return Launch(grid, block, flat, {at: out}, rtol, rtol)


@case("Numba", "saxpy.ptx", ".*")
def saxpy(name: Name, rng: Rng) -> Launch:
    x, y = _floats(rng, 1000), _floats(rng, 1000)
    return _numba(8, 128, [2.5, x, y, np.zeros_like(x)], 2.5 * x.astype(float) + y)


@case("Numba", "matrix_product.ptx", ".*")
def numba_product(name: Name, rng: Rng) -> Launch:
    a, b = _floats(rng, 64, 48), _floats(rng, 48, 32)
    out = a.astype(float) @ b
    return _numba((4, 2), (16, 16), [a, b, np.zeros(out.shape, np.float32)], out, 1e-4)


@case("Numba", "total.ptx", ".*")
def total(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 1000)
    if name.kernel.find("warp_total") >= 0:
        x = _floats(rng, 256)
        out = x.astype(float).reshape(-1, 32).sum(1)
        return _numba(2, 128, [x, np.zeros(8, np.float32)], out, 1e-4)
    return _numba(3, 128, [x, np.zeros(1, np.float32)], x.astype(float).sum(keepdims=True), 1e-4)


@case("Numba", "count_values.ptx", ".*")
def numba_count(name: Name, rng: Rng) -> Launch:
    x = rng.integers(0, 50, 1000).astype(np.int32)
    return _numba(2, 128, [x, np.zeros(50, np.int32)], np.bincount(x, minlength=50), 0)


@case("Numba", "heat.ptx", ".*")
def heat(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, 40, 50, dtype=np.float64)
    out = np.zeros_like(x)
    out[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return _numba((5, 7), (8, 8), [x, np.zeros_like(x)], out, 1e-12)


@case("Numba", "functions.ptx", ".*")
def functions(name: Name, rng: Rng) -> Launch:
    x = 5 * _floats(rng, 500, dtype=np.float64)
    out = np.sin(x) + np.exp(-x * x) * np.sqrt(np.abs(x))
    return _numba(4, 128, [x, np.zeros_like(x)], out, 1e-12)
