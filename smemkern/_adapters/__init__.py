"""Kernels of other libraries, as calls of a Kernel."""
