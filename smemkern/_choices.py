"""What variant "auto" chooses among, and what it expects of each."""

from __future__ import annotations

from typing import NamedTuple

from . import _core, _timings
from ._blocks import Table
from ._devices import devices
from ._rows import Rows, params
from ._table import Bar, Right

DTYPES = ("float32", "float64", "float16", "bfloat16")
ACCURACIES = ("float32", "norm", "tf32")
H200 = ("NVIDIA H200", 90, 132)  # whose times the packaged table has


class Choice(NamedTuple):
    """A row that could do it, and how long it is expected to take."""

    variant: str
    params: dict[str, int]
    microseconds: float  # on the GPU


class Choices(Rows[Choice]):
    """Shown with how long each is expected to take."""

    __slots__ = ()

    def _table(self) -> Table:
        slowest = self[-1].microseconds or 1.0
        rows = [
            (row.variant, params(row.params), Right(f"{row.microseconds:.2f}"), Bar(share))
            for row, share in ((row, row.microseconds / slowest) for row in self)
        ]
        return Table(("variant", "parameters", "microseconds", ""), rows)


def choices(
    m: int,
    n: int,
    k: int,
    *,
    dtype: str = "float32",
    accuracy: str = "float32",
    batch: int = 1,
    aligned: bool | None = None,
) -> Choices:
    """The rows that `smemkern.gemm(..., variant="auto")` chooses among, the chosen one first.

    Parameters
    ----------
    m, n, k : int
        C is m x n, sums are k long.
    dtype : "float32", "float64", "float16" or "bfloat16"
    accuracy : "float32", "norm" or "tf32"
        What a float32 product may do with its operands.
    batch : int
        So many products.
    aligned : bool, optional
        Whether rows of the operands begin at multiples of 16 bytes; without it, whether those of
        contiguous operands do.

    Returns
    -------
    Rows of Choice
        For the first GPU here; where there is none, for an H200.

    Raises
    ------
    ValueError
        If there is no such accuracy or dtype, or a size is negative.

    Examples
    --------
    >>> smemkern.choices(4096, 4096, 4096)[0].variant
    'tf32x3'
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
        major, minor = gpus[0].compute_capability or (0, 0)
        name, sm = gpus[0].description, 10 * major + minor
        multiprocessors = gpus[0].multiprocessors or multiprocessors
    if accuracy not in ACCURACIES:
        known = ", ".join(map(repr, ACCURACIES))
        raise ValueError(f"there is no accuracy {accuracy!r}; there are: {known}")
    if aligned is None:
        bits = {"float64": 64, "float32": 32}.get(dtype, 16)
        aligned = n * bits % 128 == 0 and k * bits % 128 == 0
    timings = _timings.load(name)
    shape = (m, n, k, batch)
    fitting = _core.predict(
        timings, "gemm", dtype, accuracy, shape, sm, multiprocessors, 0, aligned
    )
    found = [
        Choice(timings[index].variant, timings[index].params, round(microseconds, 2))
        for index, microseconds, _ in fitting
    ]
    return Choices(sorted(found, key=lambda choice: choice.microseconds))
