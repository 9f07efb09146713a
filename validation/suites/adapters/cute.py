"""CUTLASS, examples/cute/tutorial: C = alpha A B + beta C, with structs of layouts as parameters.

Layouts that are known at compile time are empty structs, which are one byte; what remains is the
problem's shape, and one stride per matrix. C is by columns. A and B are by rows where their stride
is `tuple<int, C<1>>`, else by columns.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from suites.reference import Array, Launch, Name, case

SUITE = "CuTe tutorials"
M, N, K = 128, 256, 256
ALPHA, BETA = 0.5, 2.0
EMPTY = bytes(1)


def _operands(name: Name, rng: np.random.Generator, dtype: Any) -> tuple[list[Array], Array]:
    """A, B and C as they are stored, and the result as it will be."""
    a, b, c = (rng.standard_normal(shape).astype(dtype) for shape in ((M, K), (N, K), (N, M)))
    expected = ALPHA * (b.astype(float) @ a.astype(float).T) + BETA * c
    by_rows = bool(re.search(r"tuple<int, cute::C<1> ?>", name.text))
    stored = [x if by_rows else np.ascontiguousarray(x.T) for x in (a, b)]
    return [*stored, c], expected


def _stride(name: Name, rows: int) -> np.int32:
    by_rows = bool(re.search(r"tuple<int, cute::C<1> ?>", name.text))
    return np.array(K if by_rows else rows, np.int32)


def _launch(
    name: Name, rng: np.random.Generator, dtype: Any, threads: int, empty: int, last: list[Any]
) -> Launch:
    """`empty` structs follow each of A's and B's strides; `last` follows C's stride."""
    (a, b, c), expected = _operands(name, rng, dtype)
    shape = np.array([M, N, K], np.int32)
    args: list[Any] = [shape.tobytes(), EMPTY]
    args += [a, _stride(name, M).tobytes(), *[EMPTY] * empty]
    args += [b, _stride(name, N).tobytes(), *[EMPTY] * empty]
    at = len(args)
    args += [c, np.array(M, np.int32).tobytes(), *last]
    args += [ALPHA, BETA] if dtype == np.float32 else [np.float16(ALPHA), np.float16(BETA)]
    loose = 1e-4 if dtype == np.float32 else 1e-2 * float(np.abs(expected).max())
    shared = 0 if dtype == np.float32 else 200 << 10
    return Launch((M // 128, N // 128), threads, args, {at: expected}, 1e-4, loose, shared)


@case(SUITE, "sgemm_(1|2|sm70).cu", "gemm_device")
def simple(name: Name, rng: np.random.Generator) -> Launch:
    return _launch(name, rng, np.float32, 256, 2, [EMPTY, EMPTY])


@case(SUITE, "sgemm_sm80.cu", "gemm_device")
def ampere(name: Name, rng: np.random.Generator) -> Launch:
    return _launch(name, rng, np.float16, 128, 3, [EMPTY, EMPTY])


@case(SUITE, "wgmma_sm90.cu", "gemm_device")
def hopper(name: Name, rng: np.random.Generator) -> Launch:
    """The MMA holds that it accumulates, once for each of its two levels."""
    accumulate = np.array([1, 1], np.int32).tobytes()
    return _launch(name, rng, np.float16, 128, 2, [accumulate])
