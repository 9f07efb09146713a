"""Calls of public kernels and their results by NumPy: importing a module registers its cases."""

from suites.adapters import llmc, sgemm_cuda

__all__ = ["llmc", "sgemm_cuda"]
