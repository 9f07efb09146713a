"""Tables as results: a tuple of named tuples that prints itself."""

from __future__ import annotations

from typing import Any, TypeVar

from ._table import Right, table

Row = TypeVar("Row", bound=tuple[Any, ...])


class Rows(tuple[Row, ...]):
    """A tuple of named tuples of one type, shown as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self:
            return "(no rows)"
        header = self[0]._fields  # type: ignore[attr-defined]
        return table(header, [[_cell(value) for value in row] for row in self])

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame; needs pandas."""
        import pandas as pd

        return pd.DataFrame(list(self))


def _cell(value: object) -> object:
    if isinstance(value, float):
        return Right(f"{value:.4g}")
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "-" if value is None else value
