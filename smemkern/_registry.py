"""The table of techniques as Python sees it; its rows come from csrc/kernels/variants.toml."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from . import _core


class Param(NamedTuple):
    """A parameter of a variant: `legal` holds every value it may have."""

    default: int
    legal: range | tuple[int, ...]
    doc: str


class Variant(NamedTuple):
    """One technique: a kernel file and a row of the table."""

    op: str
    name: str
    summary: str
    differs_from: str | None  # the rung below on the ladder
    min_sm: int  # 80: compute capability 8.0
    dtypes: tuple[str, ...]  # "float32"; transposes move bits: "b8" to "b128"
    params: Mapping[str, Param]
    product_bits: int | None  # that are right of each product; None: all that the type has
    strides: str  # of what is read where it lies: "rows", "rows or columns" (of neighbours), "any"

    @property
    def source(self) -> str:
        """The CUDA C of the kernel."""
        from pathlib import Path

        folder = _core.config()["kernels"]
        return Path(folder, f"{self.op}_{self.name}.cu").read_text(encoding="utf-8")


def _variant(row: tuple[Any, ...]) -> Variant:
    op, name, summary, differs_from, min_sm, dtypes, params, *rest = row
    named = MappingProxyType({param: Param(*values) for param, *values in params})
    return Variant(op, name, summary, differs_from, min_sm, dtypes, named, *rest)


_rows: tuple[Variant, ...] = ()


def variants(op: str | None = None) -> tuple[Variant, ...]:
    """The rows of the registry, in the order of the ladder.

    Parameters
    ----------
    op : "gemm", "transpose", "probe" or None
        None: all of them.

    Returns
    -------
    tuple of Variant

    Raises
    ------
    ValueError
        If there is no such operation.
    """
    global _rows
    if not _rows:
        _rows = tuple(_variant(row) for row in _core.variants())
    if op is None:
        return _rows
    ops = list(dict.fromkeys(row.op for row in _rows))
    if op not in ops:
        raise ValueError(f"there is no operation {op!r}; there are: {', '.join(ops)}")
    return tuple(row for row in _rows if row.op == op)
