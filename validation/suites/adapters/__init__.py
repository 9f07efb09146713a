"""Calls of public kernels and their results by NumPy: importing a module registers its cases."""

from suites.adapters import leetcuda, llmc, sgemm_cuda

__all__ = ["leetcuda", "llmc", "sgemm_cuda"]
