"""The demonstration: every variant run, checked against NumPy, timed and counted, in one table."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

with contextlib.suppress(ImportError):
    import ml_dtypes  # noqa: F401 - makes "bfloat16" a dtype

from . import reference
from ._blocks import Block, Paragraph, Table
from ._core import gemm
from ._devices import devices
from ._observe import Trace, _measure, trace
from ._progress import over
from ._registry import Variant, variants
from ._rows import factor
from ._table import Right

Array = np.ndarray[Any, Any]

COUNTED = 256  # n of the matrices that are traced; a GPU is timed at a larger one
TIMED_ON_GPU = 4096
ODD = (67, 61, 73)  # M, N, K of a second check, which fit no tile
PROBE_ELEMENTS = 1 << 16


class Line(NamedTuple):
    """A variant's outcome."""

    row: Variant
    milliseconds: float
    rate: float  # GFLOP/s or GB/s
    unit: str
    trace: Trace
    error: float  # in units of the bound that is allowed: more than 1 is wrong; nan is wrong

    @property
    def correct(self) -> bool:
        return self.error <= 1

    def cells(self) -> tuple[object, ...]:
        requests = self.trace.shared_requests
        ideal = sum(site.ideal for site in self.trace.shared)
        return (
            f"{self.row.op} {self.row.name}",
            self.row.summary,
            Right(f"{self.milliseconds:.3f}"),
            Right(f"{self.rate:{',.0f' if self.rate >= 1000 else '.3g'}} {self.unit:<7}"),
            requests,
            self.trace.shared_wavefronts,
            factor(self.trace.shared_wavefronts, ideal) if requests else Right("-"),
            Right(f"{self.error:.2g}") if self.correct else Right(f"{self.error:.2g} WRONG", "bad"),
        )

    def data(self) -> dict[str, Any]:
        """For machines."""
        return {
            "op": self.row.op,
            "variant": self.row.name,
            "ms": self.milliseconds,
            "rate": self.rate,
            "unit": self.unit,
            "requests": self.trace.shared_requests,
            "wavefronts": self.trace.shared_wavefronts,
            "sectors": sectors(self),
            "conflict_factor": self.trace.conflict_factor,
            "error": self.error,
            "correct": self.correct,
        }


HEADER = (
    *("variant", "what differs", "ms", "rate   ", "requests", "wavefronts", "factor", "error"),
)


# ---- what is computed, and how far off a result may be


class Product(NamedTuple):
    """A product, what it is exactly, and the error that rounding can make of it."""

    a: Array
    b: Array
    exact: Array
    bound: Array  # reference.gemm_bound

    def error(self, result: Array) -> float:
        return float(np.max(abs(result - self.exact) / self.bound))


def product(m: int, n: int, k: int, dtype: str, row: Variant) -> Product:
    rng = np.random.default_rng(m + n + k)
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    return Product(a, b, *reference.gemm_bound(a, b, product_bits=row.product_bits))


def exact_error(result: Array, expected: Array) -> float:
    return 0.0 if result.shape == expected.shape and np.array_equal(result, expected) else np.inf


def worst(*errors: float) -> float:
    """The largest; nan if there is one, which max() would pass over."""
    return float(np.max(errors))


# ---- runs


def measured(row: Variant, device: str, *args: Array) -> tuple[Array, float]:
    """The result, and the shortest time: what is longer was disturbed."""
    result, times = _measure(row.op, *args, variant=row.name, device=device, repeat=5)
    return result, min(times)


def known_dtypes(row: Variant) -> list[str]:
    """Those of a row that NumPy knows: bfloat16 comes with ml_dtypes."""

    def is_known(name: str) -> bool:
        try:
            np.dtype(name)
        except TypeError:
            return False
        return True

    return [name for name in row.dtypes if is_known(name)]


def run_gemm(row: Variant, device: str) -> Line:
    n = COUNTED if device == "emu" else TIMED_ON_GPU
    dtypes = known_dtypes(row)
    even, odd = product(n, n, n, dtypes[0], row), product(*ODD, dtypes[-1], row)
    result, milliseconds = measured(row, device, even.a, even.b)
    odd_result, _ = measured(row, device, odd.a, odd.b)
    small = np.s_[:COUNTED, :COUNTED]
    counted = trace(row.op, even.a[small], even.b[small], variant=row.name)
    error = worst(even.error(result), odd.error(odd_result))
    return Line(row, milliseconds, 2 * n**3 / milliseconds / 1e6, "GFLOP/s", counted, error)


def run_transpose(row: Variant, device: str) -> Line:
    rng = np.random.default_rng(0)
    n = COUNTED if device == "emu" else TIMED_ON_GPU
    a = rng.standard_normal((n, n), dtype=np.float32)
    result, milliseconds = measured(row, device, a)
    odd = rng.standard_normal(ODD[:2])
    odd_result, _ = measured(row, device, odd)
    counted = trace(row.op, a[:COUNTED, :COUNTED], variant=row.name)
    error = worst(exact_error(result, a.T), exact_error(odd_result, odd.T))
    return Line(row, milliseconds, 2 * a.nbytes / milliseconds / 1e6, "GB/s", counted, error)


def run_probe(row: Variant, device: str) -> Line:
    x = np.random.default_rng(0).standard_normal(PROBE_ELEMENTS, dtype=np.float32)
    result, milliseconds = measured(row, device, x)
    counted = trace(row.op, x, variant=row.name)
    error = exact_error(result, reference.probe(x, variant=row.name))
    moved = 32 * sum(site.sectors for site in counted.global_)
    return Line(row, milliseconds, moved / milliseconds / 1e6, "GB/s", counted, error)


RUN: dict[str, Callable[[Variant, str], Line]] = {
    "gemm": run_gemm,
    "transpose": run_transpose,
    "probe": run_probe,
}


def why_not(row: Variant, capability: tuple[int, int] | None) -> str:
    """Why a row cannot run on a device (None: the emulator); "" if it can."""
    if capability and row.min_sm >= 90 and divmod(row.min_sm, 10) != capability:
        return "it is for GPUs of compute capability {}.{}".format(*divmod(row.min_sm, 10))
    if row.op == "gemm" and not known_dtypes(row):
        return f"NumPy knows {row.dtypes[0]} by the package ml_dtypes, which is not imported"
    return ""


# ---- what the numbers say


def sectors(line: Line) -> int:
    return sum(site.sectors for site in line.trace.global_)


def conclusion(lines: list[Line], device: str) -> str:
    """A paragraph out of the measured numbers."""
    gemm = {line.row.name: line for line in lines if line.row.op == "gemm"}
    transpose = {line.row.name: line for line in lines if line.row.op == "transpose"}
    conflicted, padded, swizzle = gemm["conflicted"], gemm["padded"], gemm["swizzle"]
    tiled, register_tiled = gemm["tiled"], gemm["register_tiled"]
    column = max(site.worst for site in conflicted.trace.shared)
    fewer_sectors = sectors(gemm["naive"]) / sectors(gemm["coalesced"])
    fewer_again = sectors(gemm["coalesced"]) / sectors(tiled)
    fewer_requests = tiled.trace.shared_requests / register_tiled.trace.shared_requests
    fastest = max(gemm.values(), key=lambda line: line.rate)
    said = [
        f"GEMM: lanes along columns (coalesced) move {fewer_sectors:.1f} times fewer sectors of "
        f"global memory than lanes along rows (naive); tiles in shared memory (tiled) move "
        f"{fewer_again:.1f} times fewer again.",
        f"Walking down a column of a tile (conflicted) costs up to {column} wavefronts a request "
        f"and {conflicted.trace.conflict_factor:.1f} times what is needed overall; for the same "
        f"requests a padding column (padded) brings that to {padded.trace.conflict_factor:.2f} and "
        f"column XOR row (swizzle), which wastes no memory, to "
        f"{swizzle.trace.conflict_factor:.2f}.",
        f"Outputs kept in registers (register_tiled) ask shared memory {fewer_requests:.1f} times "
        f"less often than tiled, at a factor of {register_tiled.trace.conflict_factor:.2f}.",
        f"Transpose: the plain tile pays {transpose['tiled'].trace.conflict_factor:.1f} times what "
        f"is needed, padded {transpose['padded'].trace.conflict_factor:.2f}, swizzle "
        f"{transpose['swizzle'].trace.conflict_factor:.2f}.",
        f"On device '{device}' {fastest.row.name} is the fastest GEMM, "
        f"{fastest.rate / gemm['naive'].rate:.1f} times naive.",
    ]
    if device == "emu":
        said.append(
            "These times are the emulator's own and say little about a GPU's; requests, wavefronts "
            "and sectors are what a GPU would count."
        )
    return " ".join(said)


class Demo(NamedTuple):
    """Every variant's outcome on a device."""

    device: str
    described: str
    lines: list[Line]
    left_out: list[tuple[Variant, str]]  # and why

    @property
    def wrong(self) -> list[str]:
        return [f"{line.row.op} {line.row.name}" for line in self.lines if not line.correct]

    def _blocks(self) -> list[Block]:
        n = COUNTED if self.device == "emu" else TIMED_ON_GPU
        blocks: list[Block] = [
            Paragraph(
                f"device {self.device}{self.described}\n"
                f"gemm {n}^3, transpose {n}^2, of 32 bits or the row's first type; checked there, "
                "and at odd sizes in its last type\n"
                "requests, wavefronts, factor: shared memory, wavefronts / fewest possible, n = "
                f"{COUNTED}\n"
                "error: against NumPy in float64, 1 is the most that rounding can do"
            ),
            Table(HEADER, [line.cells() for line in self.lines]),
            Paragraph(textwrap.fill(conclusion(self.lines, self.device), 100)),
        ]
        blocks += [
            Paragraph(f"{row.op} {row.name} was left out: {reason}")
            for row, reason in self.left_out
        ]
        blocks += [Paragraph(f"WRONG: {', '.join(self.wrong)}", "bad")] if self.wrong else []
        return blocks


def demonstrate(device: str | None = None) -> Demo:
    """Run every variant on a device: the best there is, or the one named."""
    known = devices()
    name = device or known[0].name
    one = np.ones((1, 1))
    gemm(one, one, variant="naive", device=name)  # a device that is not there is refused at once
    described = [f" ({d.description})" for d in known if name in (d.name, d.name.partition(":")[0])]
    capability = next((d.compute_capability for d in known if name in d.name), None)
    reasons = [(row, why_not(row, capability)) for row in variants()]
    runnable = [row for row, reason in reasons if not reason]
    lines = [RUN[row.op](row, name) for row in over(runnable, "demo", "variants")]
    left_out = [(row, reason) for row, reason in reasons if reason]
    return Demo(name, described[0] if described else "", lines, left_out)
