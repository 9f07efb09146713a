"""The corpus: kernels of the kinds people write, and the tables that say what they must compute."""

from . import table_arrays, table_collective, table_language, table_networks, table_ptx  # noqa: F401
from .cases import CASES

__all__ = ["CASES"]
