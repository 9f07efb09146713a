"""Times variants on a GPU, and fits the cost model of "auto" to the times."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple, Union

import numpy as np

from .. import _core
from .._device.devices import Device, devices
from .._render.document import Node, Paragraph, Table, as_text, in_notebook
from .._render.progress import over
from .._render.rows import Rows, params
from .._render.table import Right
from .._trace.observe import _measure
from .._variants import cost_model
from .._variants.choices import ACCURACIES, ALIGNMENTS, alignment_of
from .._variants.cost_model import Timing
from .._variants.registry import variants as rows_of
from ..errors import NoDeviceError

Shape = tuple[int, ...]
Named = Union[str, "tuple[str, Mapping[str, int]]"]

ALL_DTYPES = ("float32", "float64", "float16", "bfloat16")  # of a gemm; a transpose takes any
MIN_TIMES = 7  # of a row, to fit its costs; with few of them most are 0

# The (M, N, K) that "auto" is fitted to: few and many tiles, short and long sums, few rows and few
# columns, also with odd pitches.
SHAPES: tuple[Shape, ...] = (
    *[(n, n, n) for n in (64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096)],
    *[(16384, 256, 1024), (128, 65536, 256), (4096, 4096, 64), (8192, 8192, 128)],
    *[(64, 64, 16384), (256, 256, 16384), (512, 512, 4096), (1024, 1024, 8192)],
    *[(1, 8192, 8192), (8192, 1, 8192), (4, 4096, 4096), (16, 8192, 8192), (64, 4096, 4096)],
    *[
        (1, 1024, 1024),
        (1024, 1, 1024),
        (8192, 8, 4096),
        (8, 8, 65536),
        (16, 16, 16),
        (8, 2048, 64),
    ],
    *[(61, 67, 71), (251, 257, 263), (509, 521, 523), (777, 889, 999), (1021, 1031, 1033)],
    *[(2039, 2053, 2063), (4093, 4099, 4111), (10001, 301, 1001), (101, 2001, 31)],
    *[(41, 41, 8001), (401, 401, 4001), (1, 1025, 1025), (7, 5001, 2001), (2001, 101, 2001)],
    *[
        (3, 3, 3),
        (1, 1, 100001),
        (1025, 1, 1025),
        (5001, 7, 2001),
        (15, 8191, 8193),
        (2, 8193, 8191),
    ],
    *[(32, 4096, 2048), (4096, 48, 1024), (33, 4097, 4095), (2047, 47, 4095)],
    *[(3001, 3003, 1), (2001, 3001, 9)],
    *[(1, 4096, 1024), (1, 16384, 256), (1, 64, 16384), (1, 2048, 512), (1, 256, 4096)],
    *[(1, 4097, 1023), (16383, 1, 255), (2, 4096, 4096), (4096, 8, 1024), (3, 1025, 1027)],
    *[(2001, 5, 333)],
)


class Line(NamedTuple):
    """The time of a variant for one shape."""

    op: str
    variant: str
    params: dict[str, int]
    dtype: str
    shape: Shape
    ms: float  # median
    best_ms: float
    rate: float  # gemm: TFLOP/s; transpose: TB/s read plus written
    batch: int = 1
    layout: str = "NN"  # of a gemm; T: the operand is the transpose of a row-major array

    @property
    def call(self) -> tuple[str, Shape, int, str]:
        """What was computed: equal in the lines of several variants."""
        return self.dtype, self.shape, self.batch, self.layout


@dataclass(frozen=True, repr=False)
class Bench:
    """The result of smemkern.bench, a sequence of lines, one per time."""

    lines: Rows[Line]
    device: Device

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Line:
        return self.lines[index]

    def _nodes(self) -> list[Node]:
        """A table in which the fastest variant of each shape is highlighted."""
        if not self.lines:
            return list(self.lines._nodes())
        rows = [
            (
                f"{line.op} {line.variant}",
                params(line.params),
                line.dtype,
                Right(" x ".join(map(str, line.shape))),
                Right(f"{line.ms:.4g}"),
                Right(f"{line.best_ms:.4g}"),
                Right(
                    f"{line.rate:.4g}",
                    "good" if line.ms == self._fastest_ms[line.call] else "",
                ),
            )
            for line in self
        ]
        unit = "TB/s" if self[0].op == "transpose" else "TFLOP/s"
        header = ("variant", "parameters", "dtype", "shape", "ms", "best ms", unit)
        return [Paragraph(f"{self.device.name}: {self.device.description}"), Table(header, rows)]

    __repr__ = as_text
    _repr_html_ = in_notebook

    def to_pandas(self) -> Any:
        """The lines as a pandas.DataFrame; needs pandas."""
        return self.lines.to_pandas()

    def plot(self, ax: Any = None) -> Any:
        """Plots rates by shape, with a line per variant. Needs matplotlib; returns the Axes."""
        from ..plot import pyplot

        plt = pyplot()
        if ax is None:
            _, ax = plt.subplots()
        shapes = list(dict.fromkeys(line.shape for line in self))
        for name in dict.fromkeys(_name(line) for line in self):
            own = {line.shape: line.rate for line in self if _name(line) == name}
            at = [i for i, shape in enumerate(shapes) if shape in own]
            ax.plot(at, [own[shapes[i]] for i in at], marker="o", label=name)
        ax.set_xticks(
            range(len(shapes)), [" x ".join(map(str, s)) for s in shapes], rotation=60, ha="right"
        )
        ax.set_ylabel("TB/s" if self.lines and self[0].op == "transpose" else "TFLOP/s")
        ax.set_title(self.device.description)
        ax.legend()
        return ax

    def retune(self, store: bool = True) -> Rows[Fit]:
        """Fit the cost model by which "auto" chooses to these times.

        Parameters
        ----------
        store : bool
            Store the fit under this GPU's name, for this process and later ones.

        Returns
        -------
        Rows of Fit
            How well the model predicts the times of each row.

        Raises
        ------
        ValueError
            If a row of "auto"'s table has times here, but too few for a fit.
        """
        __tracebackhide__ = True
        gpu = self.device.description
        timings, fits = self.fitted(cost_model.load(gpu))
        if store:
            facts = {"gpu": gpu, "date": date.today().isoformat()}
            cost_model.write(cost_model.stored(gpu), timings, facts)
            _core.set_timings(0, None)
        return fits

    def fitted(self, table: Sequence[Timing]) -> tuple[list[Timing], Rows[Fit]]:
        """The table, with the rows that have times here fitted to them; and the quality of fit."""
        __tracebackhide__ = True
        timings, fits = list(table), []
        for i, timing in enumerate(timings):
            terms, times, fastest = self._of(timing)
            if 0 < len(times) < MIN_TIMES:  # of one order; then as many as there are of both
                terms, times, fastest = self._of(timing._replace(along=-1))
            if times:
                if len(times) < MIN_TIMES:
                    raise ValueError(
                        f"{timing.name} of {timing.dtype} ({_kind(timing)}) has {len(times)} times "
                        f"here, but {MIN_TIMES} are needed; run smemkern.bench without shapes"
                    )
                cost, error = fit(np.array(terms), np.array(times), np.array(fastest))
                timings[i] = timing._replace(microseconds=tuple(cost))
                fits.append(Fit(timing.name, timing.dtype, _kind(timing), len(times), error))
        return timings, Rows(fits)

    def _of(self, timing: Timing) -> tuple[list[tuple[float, ...]], list[float], list[float]]:
        """What a row of "auto" is fitted to: terms, microseconds, and those of the fastest."""
        terms, times, fastest = [], [], []
        for line in self:
            m, n, _ = line.shape
            fitting = timing.side == 0 or min(m, n) <= timing.side
            if line[:4] == timing[:4] and fitting:
                alignment = alignment_of(line.shape, line.dtype, line.layout)
                for _, _, own in _predict([timing], line, self.device, alignment):
                    terms.append(own)
                    times.append(line.ms * 1e3)
                    fastest.append(self._fastest_ms[line.call] * 1e3)
        return terms, times, fastest

    @cached_property
    def _fastest_ms(self) -> dict[tuple[str, Shape, int, str], float]:
        """Milliseconds of the fastest variant, by what was computed."""
        fastest: dict[tuple[str, Shape, int, str], float] = {}
        for line in self:
            fastest[line.call] = min(line.ms, fastest.get(line.call, math.inf))
        return fastest


class Fit(NamedTuple):
    """How well a row's predictions agree with its times."""

    variant: str
    dtype: str
    operands: str  # "rows at multiples of 16 bytes", 4, or 1; and the order, if it matters
    times: int
    error: float  # weighted mean of |predicted / measured - 1|


def fit(terms: np.ndarray, times: np.ndarray, fastest: np.ndarray) -> tuple[list[float], float]:
    """Costs that predict `times` from `terms`: (costs, weighted mean of the errors).

    What is far slower than the fastest variant has a small weight: "auto" does not choose it, so
    its time need not be predicted well. But if a first fit predicts that it is fast, "auto" would
    choose it, so the second fit gives it the weight of a fast one.
    """
    near = times
    for _ in range(2):
        weights = np.minimum(1, 1.5 * fastest / near)
        cost, error = _least_squares(terms, times, weights)
        near = np.clip(terms @ cost, 1e-9, times)
    return cost, error


def _least_squares(
    terms: np.ndarray, times: np.ndarray, weights: np.ndarray
) -> tuple[list[float], float]:
    """Nonnegative least squares of the relative errors: (costs, weighted mean of the errors)."""
    a = weights[:, None] * terms / times[:, None]
    cost = _nonnegative(a, weights)
    error = np.sum(np.abs(a @ cost - weights)) / np.sum(weights)
    return [float(f"{x:.4g}") for x in cost], float(error)


def _nonnegative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The x >= 0 with the least |a x - b|, by the active sets of Lawson and Hanson (1974)."""
    scale = np.linalg.norm(a, axis=0)
    scale[scale == 0] = 1
    a = a / scale
    x, free = np.zeros(a.shape[1]), np.zeros(a.shape[1], bool)
    for _ in range(3 * len(x)):
        gain = np.where(free, -np.inf, a.T @ (b - a @ x))
        if free.all() or gain.max() <= 1e-9 * np.linalg.norm(b):
            break
        free[gain.argmax()] = True
        while True:
            best = np.zeros_like(x)
            best[free] = np.linalg.lstsq(a[:, free], b, rcond=None)[0]
            low = free & (best <= 0)
            if not low.any():
                break
            x += np.min(x[low] / (x[low] - best[low])) * (best - x)  # to the first bound
            free &= x > 1e-12
            x[~free] = 0
        x = best
    return x / scale


def bench(
    shapes: Iterable[Shape] | None = None,
    *,
    op: str = "gemm",
    variants: Iterable[Named] | None = None,
    dtypes: Sequence[str] = ("float32",),
    device: str | None = None,
    seconds: float = 0.02,
) -> Bench:
    """Time variants on a GPU, on random data.

    Parameters
    ----------
    shapes : iterable of (M, N, K), or of (rows, columns) for a transpose, optional
        None: the shapes that "auto" is fitted to, or transposes of 1024, 4096 and 16384; on the
        emulator 256.
    op : "gemm" or "transpose"
    variants : iterable of str or (str, params), optional
        None: the variants and parameters that "auto" chooses among; all of a transpose.
    dtypes : sequence of str
        "float32", "float64", "float16", "bfloat16" (needs ml_dtypes).
    device : str, optional
        "cuda" or "cuda:1"; None: the first GPU. "emu" times the emulator itself.
    seconds : float
        Time per measurement, which repeats the kernel 3 to 60 times.

    Returns
    -------
    Bench
        A line per variant and shape. Times are of kernels between CUDA events, without transfers.

    Raises
    ------
    NoDeviceError
        If there is no GPU and `device` is not "emu".

    Examples
    --------
    >>> smemkern.bench([(1024, 1024, 1024)], variants=["tiled", "pipelined"])  # doctest: +SKIP
    >>> smemkern.bench(dtypes=("float32", "float64")).retune()  # doctest: +SKIP
    """
    __tracebackhide__ = True
    if isinstance(shapes, str):
        raise TypeError(f"shapes must be tuples, as [(1024, 1024, 1024)], not {shapes!r}; see op=")
    known = {row.name: row for row in rows_of(op)}
    on = _device(device) if shapes is None else None
    shapes = _shapes(op, on) if on else tuple(shapes or ())
    _check(op, shapes, dtypes, seconds)
    on = on or _device(device)
    if variants is None:
        variants = _candidates(op, dtypes, on)
    chosen = []
    for entry in variants:
        name, options = (entry, {}) if isinstance(entry, str) else entry
        if name not in known:
            raise ValueError(f"{op} has no variant {name!r}; there are: {', '.join(known)}")
        if (name, dict(options)) not in chosen:
            chosen.append((name, dict(options)))
    work = [
        (shape, dtype, name, options)
        for shape in shapes
        for dtype in dtypes
        for name, options in chosen
        if known[name].dtypes[0] not in ALL_DTYPES or dtype in known[name].dtypes
    ]
    made: dict[Any, tuple[np.ndarray, ...]] = {}
    lines = []
    for shape, dtype, name, options in over(work, "bench", "times"):
        if (shape, dtype) not in made:
            made = {(shape, dtype): _operands(op, shape, dtype)}
        times = _times(op, made[shape, dtype], seconds, name, options, on.name)
        ms = statistics.median(times)
        size = np.dtype(dtype).itemsize
        amount = 2 * math.prod(shape) * (size if op == "transpose" else 1)
        unit = 1e-9  # from operations per ms to 10^12 per second
        lines.append(
            Line(op, name, options, dtype, tuple(shape), ms, min(times), amount / ms * unit)
        )
    return Bench(Rows(lines), on)


def _shapes(op: str, on: Device) -> tuple[Shape, ...]:
    """The shapes that are timed if none are given. On the emulator SHAPES would take an hour."""
    if on.name == "emu":
        return ((256, 256, 256) if op == "gemm" else (256, 256),)
    return SHAPES if op == "gemm" else ((1024, 1024), (4096, 4096), (16384, 16384))


def _check(op: str, shapes: Iterable[Shape], dtypes: Sequence[str], seconds: float) -> None:
    """Checks the arguments, so that errors are not raised after minutes of measuring."""
    wanted = "(m, n, k)" if op == "gemm" else "(rows, columns)"
    for shape in shapes:
        right = isinstance(shape, Sequence) and len(shape) == wanted.count(",") + 1
        if not right or not all(isinstance(n, (int, np.integer)) and n > 0 for n in shape):
            raise ValueError(f"a shape of {op} is {wanted}, each at least 1, not {shape!r}")
    for dtype in dtypes:
        if op == "gemm" and dtype not in ALL_DTYPES:
            raise ValueError(f"dtypes of gemm are {', '.join(ALL_DTYPES)}, not {dtype!r}")
    if not seconds > 0:
        raise ValueError(f"seconds should be above 0, not {seconds!r}")


def _device(name: str | None) -> Device:
    __tracebackhide__ = True
    found = devices()  # the last one is the emulator
    for device in found:
        if device.name == ("cuda:0" if name in (None, "cuda") else name):
            return device
    if len(found) == 1 and (name is None or name.startswith("cuda")):
        raise NoDeviceError(
            f"bench times a GPU; {_core.config()['driver']}. device='emu' times the emulator "
            "itself; smemkern.trace counts accesses"
        )
    known = ", ".join(device.name for device in found)
    raise NoDeviceError(
        f"there is no device {name!r} to time; there are: {known}; device='emu' times the emulator"
    )


def _predict(
    timings: Sequence[Timing], line: Line, on: Device, alignment: int
) -> list[tuple[int, float, tuple[float, ...]]]:
    """(index, microseconds, terms) of each timing of that alignment whose variant runs there, at
    any accuracy."""
    m, n, k = line.shape
    return _core.predict(
        timings,
        timings[0].op,
        line.dtype,
        ACCURACIES[-1],
        (m, n, k, line.batch),
        on.sm,
        on.multiprocessors or 1,
        line.layout,
        alignment,
    )


def _candidates(op: str, dtypes: Sequence[str], on: Device) -> list[Named]:
    """The variants and parameters that "auto" chooses among on a device; or else all variants."""
    if op != "gemm":
        major, minor = on.compute_capability or (99, 0)
        return [row.name for row in rows_of(op) if row.min_sm <= 10 * major + minor]
    timings = [t for t in cost_model.load(on.description) if t.op == op]
    least = [Line(op, "", {}, dtype, (1, 1, 1), 0.0, 0.0, 0.0) for dtype in dtypes if timings]
    indices = {
        i
        for line in least
        for alignment in ALIGNMENTS
        for i, _, _ in _predict(timings, line, on, alignment)
    }
    return [(timings[i].variant, timings[i].params) for i in sorted(indices)]


def _operands(op: str, shape: Shape, dtype: str) -> tuple[np.ndarray, ...]:
    if dtype == "bfloat16":
        import ml_dtypes  # noqa: F401 - registers the dtype
    rng = np.random.default_rng(2026)
    if op == "transpose":
        sizes = [shape]
    else:
        m, n, k = shape
        sizes = [(m, k), (k, n)]
    return tuple(rng.standard_normal(size, dtype="f4").astype(dtype) for size in sizes)


def _times(
    op: str,
    arrays: tuple[np.ndarray, ...],
    seconds: float,
    name: str,
    params: Mapping[str, int],
    where: str,
) -> list[float]:
    __tracebackhide__ = True
    _, [once] = _measure(op, *arrays, variant=name, device=where, repeat=1, **params)
    repeat = min(max(int(seconds * 1e3 / max(once, 1e-3)), 3), 60)
    return _measure(op, *arrays, variant=name, device=where, repeat=repeat, **params)[1]


def _kind(timing: Timing) -> str:
    order = {0: ", the larger operand across K", 1: ", the larger operand along K"}
    return f"rows at multiples of {timing.alignment} bytes{order.get(timing.along, '')}"


def _name(line: Line) -> str:
    return Timing(line.op, line.variant, line.params, line.dtype, 1, 0, ()).name
