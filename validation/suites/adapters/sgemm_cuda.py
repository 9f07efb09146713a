"""SGEMM_CUDA: C = alpha A B + beta C, row-major, of sizes that all tiles divide."""

from __future__ import annotations

import numpy as np

from suites.reference import Launch, Name, case

SUITE = "SGEMM_CUDA"
M, N, K = 256, 256, 64
ALPHA, BETA = 0.5, 3.0


def _launch(
    grid: tuple[int, ...], block: tuple[int, ...] | int, rng: np.random.Generator
) -> Launch:
    a = rng.standard_normal((M, K), np.float32)
    b = rng.standard_normal((K, N), np.float32)
    c = rng.standard_normal((M, N), np.float32)
    expected = ALPHA * (a.astype(np.float64) @ b) + BETA * c
    args = [M, N, K, ALPHA, a, b, BETA, c]
    return Launch(grid, block, args, {7: expected}, 1e-5, 1e-5)


@case(SUITE, "", "sgemm_naive")
def naive(name: Name, rng: np.random.Generator) -> Launch:
    return _launch((M // 32, N // 32), (32, 32), rng)


@case(SUITE, "", "sgemm_global_mem_coalesce", "sgemm_shared_mem_block")
def one_output_per_thread(name: Name, rng: np.random.Generator) -> Launch:
    return _launch((M // 32, N // 32), 1024, rng)


@case(SUITE, "", "sgemm1DBlocktiling")
def column_per_thread(name: Name, rng: np.random.Generator) -> Launch:
    bm, bn, _, tm = name.numbers()
    return _launch((N // bn, M // bm), bm * bn // tm, rng)


@case(SUITE, "", "sgemm2DBlocktiling", "sgemmVectorize", "sgemmResolveBank(Conflicts|ExtraCol)")
def tile_per_thread(name: Name, rng: np.random.Generator) -> Launch:
    bm, bn, _, tm, tn = name.numbers()
    return _launch((N // bn, M // bm), bm * bn // (tm * tn), rng)


@case(SUITE, "", "sgemmAutotuned")
def autotuned(name: Name, rng: np.random.Generator) -> Launch:
    bm, bn, *_ = name.numbers()
    return _launch((N // bn, M // bm), 256, rng)


@case(SUITE, "", "sgemmWarptiling", "sgemmDoubleBuffering", "runSgemmDoubleBuffering2")
def tile_per_warp(name: Name, rng: np.random.Generator) -> Launch:
    bm, bn, *_, threads = name.numbers()
    return _launch((N // bn, M // bm), threads, rng)


@case(SUITE, "simplest_kernel", "kernel")
def simplest(name: Name, rng: np.random.Generator) -> Launch:
    rows, row = 8, 4
    x, y = np.divmod(np.arange(rows * row), row)
    a, b = (np.zeros(rows * row, np.uint32) for _ in range(2))
    return Launch(1, rows * row, [a, b, row], {0: x, 1: y}, 0, 0)
