"""The tests of CUTracer, which delays instructions to show races: see referee_triton.py."""

from referee_triton import cases, extra

__all__ = ["FOLDER", "cases", "extra"]
FOLDER = "facebookexperimental/CUTracer, tests/datarace_test"
