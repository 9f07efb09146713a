"""The corpus: kernels of the kinds people write, and the tables that say what they must compute."""

from . import (  # noqa: F401
    table_arrays,
    table_collective,
    table_language,
    table_networks,
    table_ptx,
    table_tensor,
)
from .cases import CASES

__all__ = ["CASES"]
