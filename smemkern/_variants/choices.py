"""The variants that "auto" chooses among, with their predicted times."""

from __future__ import annotations

from typing import NamedTuple

from .. import _core
from .._device.devices import devices
from .._render.document import Table
from .._render.rows import Rows, params
from .._render.table import Bar, Right
from . import cost_model

DTYPES = ("float32", "float64", "float16", "bfloat16")
ACCURACIES = ("float32", "norm", "tf32", "tf32-norm")
LAYOUTS = ("NN", "NT", "TN", "TT")
H200 = ("NVIDIA H200", 90, 132)  # the GPU on which the packaged table was measured


class Choice(NamedTuple):
    """A variant that "auto" could choose, and its predicted time."""

    variant: str
    params: dict[str, int]
    microseconds: float  # predicted, on the GPU


class Choices(Rows[Choice]):
    """The choices, fastest first; shown with bars of their predicted times."""

    __slots__ = ()

    def _table(self) -> Table:
        slowest = self[-1].microseconds or 1.0
        rows = [
            (row.variant, params(row.params), Right(f"{row.microseconds:.2f}"), Bar(share))
            for row, share in ((row, row.microseconds / slowest) for row in self)
        ]
        return Table(("variant", "parameters", "microseconds", ""), rows)


ALIGNMENTS = (32, 16, 4, 1)  # bytes: a sector; of TMA and 16-byte copies; of cp.async; any


def alignment_of(shape: tuple[int, ...], dtype: str, layout: str = "NN") -> int:
    """Bytes, one of ALIGNMENTS, that rows of contiguous operands begin at multiples of."""
    m, n, k = shape
    size = {"float64": 8, "float32": 4}.get(dtype, 2)
    rows = (k if layout[0] == "N" else m, n if layout[1] == "N" else k)
    return next(bytes for bytes in ALIGNMENTS if all(row * size % bytes == 0 for row in rows))


def choices(
    m: int,
    n: int,
    k: int,
    *,
    dtype: str = "float32",
    accuracy: str = "float32",
    batch: int = 1,
    layout: str = "NN",
    alignment: int | None = None,
) -> Choices:
    """The variants that `smemkern.gemm(..., variant="auto")` chooses among, the chosen one first.

    Parameters
    ----------
    m, n, k : int
        C is m x n, and its sums have k terms.
    dtype : "float32", "float64", "float16" or "bfloat16"
    accuracy : "float32", "norm", "tf32" or "tf32-norm"
        The accuracy required of a float32 or float64 product; see smemkern.gemm.
    batch : int
        The number of products.
    layout : "NN", "NT", "TN" or "TT"
        T: A, or B, is the transpose of a row-major array, as in a.T.
    alignment : 32, 16, 4 or 1, optional
        Bytes that the rows of the operands begin at multiples of. None: those of contiguous
        arrays.

    Returns
    -------
    Rows of Choice
        For the first GPU of this machine, or for an H200 if there is none.

    Raises
    ------
    ValueError
        If there is no such accuracy, dtype, layout or alignment, or a size is negative.

    Examples
    --------
    >>> smemkern.choices(4096, 4096, 4096)[0].variant
    'fp16x3_guarded'
    """
    __tracebackhide__ = True
    sizes = {"m": m, "n": n, "k": k, "batch": batch}
    for size, value in sizes.items():
        if value < 0:
            raise ValueError(f"{size} should not be negative, but is {value!r}")
    if dtype not in DTYPES:
        raise ValueError(f"dtype should be one of {', '.join(DTYPES)}, not {dtype!r}")
    gpus = [d for d in devices() if d.compute_capability]
    name, sm, multiprocessors = H200
    if gpus:
        name, sm = gpus[0].description, gpus[0].sm
        multiprocessors = gpus[0].multiprocessors or multiprocessors
    if accuracy not in ACCURACIES:
        known = ", ".join(map(repr, ACCURACIES))
        raise ValueError(f"there is no accuracy {accuracy!r}; there are: {known}")
    if layout not in LAYOUTS:
        raise ValueError(f"layout should be one of {', '.join(LAYOUTS)}, not {layout!r}")
    if alignment is None:
        alignment = alignment_of((m, n, k), dtype, layout)
    elif alignment not in ALIGNMENTS:
        raise ValueError(f"alignment should be 32, 16, 4 or 1 bytes, not {alignment!r}")
    timings = cost_model.load(name)
    shape = (m, n, k, batch)
    fitting = _core.predict(
        timings, "gemm", dtype, accuracy, shape, sm, multiprocessors, layout, alignment
    )
    found = [
        Choice(timings[index].variant, timings[index].params, round(microseconds, 2))
        for index, microseconds, _ in fitting
    ]
    return Choices(sorted(found, key=lambda choice: choice.microseconds))
