"""The tests of ConSan, the race detector of Triton: see labels/triton.py."""

from labels.triton import cases, extra

__all__ = ["FOLDER", "cases", "extra"]
FOLDER = "triton-lang/triton, python/test/gluon/test_consan.py"
