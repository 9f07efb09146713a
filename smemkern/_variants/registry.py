"""The registry of variants. Its rows come from csrc/kernels/variants.toml."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._render.document import Facts, Heading, Node, Table, in_notebook
from .._render.rows import Rows

if TYPE_CHECKING:
    from pathlib import Path


_FOLDERS = ("", "library", "include")  # of a kernel's source, and of what it includes


def kernel_file(name: str) -> Path | None:
    """The file of that name among the kernels' sources and headers; None if there is none."""
    from pathlib import Path

    folder = Path(_core.config()["kernels"])
    files = (folder / below / name for below in _FOLDERS)
    return next((file for file in files if file.is_file()), None)


class Param(NamedTuple):
    """A parameter of a variant. `legal` holds every value that it may have."""

    default: int
    legal: range | tuple[int, ...]
    doc: str


class Variant(NamedTuple):
    """One technique: a kernel file and its row in the registry."""

    op: str
    name: str
    summary: str
    differs_from: str | None  # the variant one step below it on the ladder
    min_sm: int  # 80: compute capability 8.0
    dtypes: tuple[str, ...]  # such as "float32"; for transposes sizes in bits, "b8" to "b128"
    params: Mapping[str, Param]
    accuracy: str  # of its results; smemkern.gemm explains the names
    product_bits: int | None  # correct bits of each product; None: all that the type has
    strides: str  # operands read in place: contiguous "rows", "rows or columns", or "any" strides

    def _nodes(self) -> list[Node]:
        legal = [(name, p.default, _legal(p), p.doc) for name, p in self.params.items()]
        facts = [
            ("what it is", self.summary),
            ("differs from", self.differs_from or "-"),
            ("dtypes", ", ".join(self.dtypes)),
            ("runs on", f"sm_{self.min_sm} and later"),
            ("reads in place", self.strides),
        ]
        if self.accuracy != "float32":
            facts.append(("accuracy", self.accuracy))
        if self.product_bits is not None:
            facts.append(("bits per product", str(self.product_bits)))
        nodes: list[Node] = [Heading(f"{self.op} {self.name}"), Facts(facts)]
        return nodes + ([Table(("parameter", "default", "legal", "what"), legal)] if legal else [])

    def _repr_html_(self) -> str:
        return in_notebook(self)

    @property
    def source(self) -> str:
        """The kernel's CUDA C source."""
        name = f"{self.op}_{self.name}.cu"
        file = kernel_file(name)
        if file is None:
            raise FileNotFoundError(f"kernel source {name} is not in {_core.config()['kernels']}")
        return file.read_text(encoding="utf-8")


def _legal(param: Param) -> str:
    if isinstance(param.legal, range) and len(param.legal) > 4 and param.legal.step == 1:
        return f"{param.legal[0]} to {param.legal[-1]}"
    return ", ".join(map(str, param.legal))


class Variants(Rows[Variant]):
    """Rows of the registry."""

    __slots__ = ()

    def _table(self) -> Table:
        header = ("variant", "what it is", "differs from", "from", "dtypes", "parameters")
        return Table(
            header,
            [
                (
                    f"{row.op} {row.name}",
                    row.summary,
                    row.differs_from or "",
                    f"sm_{row.min_sm}",
                    ", ".join(row.dtypes),
                    ", ".join(f"{name}={p.default}" for name, p in row.params.items()),
                )
                for row in self
            ],
        )


def _variant(row: tuple[Any, ...]) -> Variant:
    op, name, summary, differs_from, min_sm, dtypes, params, *rest = row
    named = MappingProxyType({param: Param(*values) for param, *values in params})
    return Variant(op, name, summary, differs_from, min_sm, dtypes, named, *rest)


_rows = Variants()


def variants(op: str | None = None) -> Variants:
    """The rows of the registry, in ladder order.

    Parameters
    ----------
    op : "gemm", "transpose", "probe" or None
        None: all operations.

    Returns
    -------
    Rows of Variant

    Raises
    ------
    ValueError
        If there is no such operation.
    """
    global _rows
    __tracebackhide__ = True
    if not _rows:
        _rows = Variants(_variant(row) for row in _core.variants())
    if op is None:
        return _rows
    ops = list(dict.fromkeys(row.op for row in _rows))
    if op not in ops:
        raise ValueError(f"there is no operation {op!r}; there are: {', '.join(ops)}")
    return Variants(row for row in _rows if row.op == op)
