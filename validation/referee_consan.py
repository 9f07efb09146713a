"""The tests of ConSan, the race detector of Triton: see referee_triton.py."""

from referee_triton import cases, extra

__all__ = ["FOLDER", "cases", "extra"]
FOLDER = "triton-lang/triton, python/test/gluon/test_consan.py"
