"""Tables of results: a tuple of named tuples that prints itself as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from .document import Node, Paragraph, Table, as_text, in_notebook
from .table import Cell, Right

Row = TypeVar("Row", bound=tuple[Any, ...])


class Rows(tuple[Row, ...]):
    """A tuple of named tuples of one type, shown as a table."""

    __slots__ = ()

    def _nodes(self) -> Sequence[Node]:
        return [self._table() if self else Paragraph("(no rows)")]

    def _table(self) -> Table:
        """A column per field. Subclasses with many fields show fewer."""
        return Table(self[0]._fields, [list(map(cell, row)) for row in self])  # type: ignore[attr-defined]

    __repr__ = as_text
    _repr_html_ = in_notebook

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame; needs pandas."""
        import pandas as pd

        return pd.DataFrame(list(self))


def cell(value: object) -> object:
    """The table cell of a field."""
    if isinstance(value, float):
        return Right(f"{value:.4g}")
    if isinstance(value, Mapping):
        return params(value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "-" if value is None else value


def params(given: Mapping[str, object]) -> str:
    """Formats a variant's parameters, or other named numbers: tile=16 pad=1."""
    return " ".join(
        f"{name}={f'{value:.3g}' if isinstance(value, float) else value}"
        for name, value in given.items()
    )


def factor(cost: float, ideal: float) -> Cell:
    """cost / ideal; red if the cost is above the ideal."""
    return (
        Right(f"{cost / ideal:.2f}", "bad" if cost > ideal else "good") if ideal else Right("1.00")
    )
