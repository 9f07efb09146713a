"""Calls of public kernels and their results by NumPy: importing a module registers its cases."""

from suites.adapters import (
    cuda_samples,
    cute,
    fast_cu,
    gpuocelot,
    leetcuda,
    llmc,
    matrix_products,
    python_kernels,
    sgemm_cuda,
    tutorials,
)

__all__ = [
    "cuda_samples",
    "cute",
    "fast_cu",
    "gpuocelot",
    "leetcuda",
    "llmc",
    "matrix_products",
    "python_kernels",
    "sgemm_cuda",
    "tutorials",
]
