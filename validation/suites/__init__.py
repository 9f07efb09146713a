"""Kernels that others published: what they are, how they compile, and what is expected of them."""
