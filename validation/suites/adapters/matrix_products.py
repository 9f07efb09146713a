"""Matrix products step by step: Turing SGEMM, NVIDIA_SGEMM_PRACTICE and cuda_hgemm."""

from __future__ import annotations

import numpy as np

from suites.reference import Launch, Name, case

Rng = np.random.Generator


@case("Turing SGEMM", "utils.cu", r"mysgemm_v\d+")
@case("NVIDIA_SGEMM_PRACTICE", "utils.cu", r"mysgemm_v[2-9]")
def sgemm(name: Name, rng: Rng) -> Launch:
    """Turing's matrices are column-major, the other's row-major. The tiles are the host's."""
    step, n = int(name.kernel[len("mysgemm_v") :]), 128
    a, b, c = (rng.standard_normal((n, n), np.float32) for _ in range(3))
    numbers = name.numbers()
    if name.template:  # the other's, from its second step on
        tile, threads = numbers[0], {2: 1024, 3: 512}.get(step, 256)
    else:
        tile = 32 if step < 7 else 64 if step == 7 else 128
        threads = (32, 32) if step < 3 else 1024 if step < 5 else 256
    first, second = (a, b) if name.template else (b, a)
    expected = 1.5 * (first.astype(float) @ second) + 0.5 * c
    args = [n, n, n, 1.5, a, b, 0.5, c]
    return Launch((n // tile, n // tile), threads, args, {7: expected}, 1e-4, 1e-3)


@case("cuda_hgemm", "src/", "(mma|wmma|simt).*Kernel")
def hgemm(name: Name, rng: Rng) -> Launch:
    """B is column-major. Kernels with tiles take blocks in sixteen columns per row of the grid."""
    m, n, k = 256, 256, 96
    a, b = (rng.standard_normal((r, k)).astype(np.float16) for r in (m, n))
    expected = a.astype(float) @ b.astype(float).T
    args = [a, b, np.zeros((m, n), np.float16), m, n, k]
    if name.kernel == "simtNaiveKernel":
        grid, block = (n // 16, m // 16), (16, 16)
    elif "Naive" in name.kernel:
        grid, block = (n // (16 if "wmma" in name.kernel else 8), m // 16), (32, 1)
    else:
        grid, block = (16, m // 256, 1), (256, 1)
    shared = 0 if "Naive" in name.kernel else 128 << 10
    return Launch(grid, block, args, {2: expected}, 2e-2, 0.3, shared)
