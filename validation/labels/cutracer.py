"""The tests of CUTracer, which delays instructions to show races: see labels/triton.py."""

from labels.triton import cases, extra

__all__ = ["FOLDER", "cases", "extra"]
FOLDER = "facebookexperimental/CUTracer, tests/datarace_test"
