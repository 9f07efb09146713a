"""The demonstration: runs, checks, times and traces every variant. _cli/demo.py prints it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

with contextlib.suppress(ImportError):
    import ml_dtypes  # noqa: F401 - registers the dtype "bfloat16"

from . import reference
from ._core import gemm
from ._device.devices import devices
from ._render.document import Facts, Heading, Node, Paragraph
from ._render.rows import factor
from ._render.table import Note, Right
from ._trace.observe import Trace, _measure, trace
from ._variants.registry import Variant, variants

Array = np.ndarray[Any, Any]

COUNTED = 256  # n of the matrices that are traced; the emulator is also timed at this size
TIMED_ON_GPU = 4096
ODD = (67, 61, 73)  # M, N, K of a second check; not multiples of any tile
PROBE_ELEMENTS = 1 << 16


class Line(NamedTuple):
    """The results of one variant."""

    row: Variant
    milliseconds: float
    rate: float  # GFLOP/s or GB/s
    unit: str
    trace: Trace
    error: float  # relative to the allowed bound: more than 1, or nan, is wrong

    @property
    def correct(self) -> bool:
        return self.error <= 1

    def cells(self) -> tuple[object, ...]:
        requests = self.trace.shared_requests
        ideal = sum(site.ideal for site in self.trace.shared)
        return (
            self.row.name,
            Right(f"{self.milliseconds:.3f}"),
            Right(f"{self.rate:{',.0f' if self.rate >= 1000 else '.3g'}}"),
            requests,
            self.trace.shared_wavefronts,
            factor(self.trace.shared_wavefronts, ideal) if requests else Right("-"),
            Right(f"{self.error:.2g}") if self.correct else Right(f"{self.error:.2g} WRONG", "bad"),
            Note(self.row.summary, "dim"),
        )

    def data(self) -> dict[str, Any]:
        """The same for --json."""
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


# ---- inputs, and bounds of the error


class Product(NamedTuple):
    """The operands of a product, its exact result, and a bound of the rounding error."""

    a: Array
    b: Array
    exact: Array
    bound: Array  # reference.gemm_bound

    def error(self, result: Array) -> float:
        return float(np.max(abs(result - self.exact) / self.bound))


def product(m: int, n: int, k: int, dtype: str, row: Variant) -> Product:
    rng = np.random.default_rng(m + n + k)
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    return Product(a, b, *reference.gemm_bound(a, b, **reference.bound_keywords(row)))


def exact_error(result: Array, expected: Array) -> float:
    return 0.0 if result.shape == expected.shape and np.array_equal(result, expected) else np.inf


def worst(*errors: float) -> float:
    """The largest error, or nan if there is one; max() might ignore a nan."""
    return float(np.max(errors))


# ---- runs


def measured(row: Variant, device: str, *args: Array) -> tuple[Array, float]:
    """The result, and the shortest of the times, which was disturbed least."""
    repeat = 1 if device == "emu" else 5  # a GPU's are of microseconds
    result, times = _measure(row.op, *args, variant=row.name, device=device, repeat=repeat)
    return result, min(times)


def ran(row: Variant, device: str, *args: Array) -> Array:
    """The result alone."""
    return _measure(row.op, *args, variant=row.name, device=device, repeat=0)[0]


def known_dtypes(row: Variant) -> list[str]:
    """The dtypes of a row that NumPy has; bfloat16 needs ml_dtypes."""

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
    odd_result = ran(row, device, odd.a, odd.b)
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
    odd_result = ran(row, device, odd)
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
        return "it runs only on compute capability {}.{}".format(*divmod(row.min_sm, 10))
    if row.op == "gemm" and not known_dtypes(row):
        return f"its dtype {row.dtypes[0]} needs the package ml_dtypes, which is not installed"
    return ""


# ---- conclusions


def sectors(line: Line) -> int:
    return sum(site.sectors for site in line.trace.global_)


def conclusion(lines: list[Line], device: str) -> list[tuple[str, str]]:
    """(technique, what the counts show) for each technique."""
    gemm = {line.row.name: line for line in lines if line.row.op == "gemm"}
    transpose = {line.row.name: line for line in lines if line.row.op == "transpose"}
    tiled, registers = gemm["tiled"], gemm["register_tiled"]
    column = max(site.worst for site in gemm["conflicted"].trace.shared)
    fewer_sectors = sectors(gemm["naive"]) / sectors(gemm["coalesced"])
    fewer_again = sectors(gemm["coalesced"]) / sectors(tiled)
    fewer_requests = tiled.trace.shared_requests / registers.trace.shared_requests

    def factor_of(line: Line) -> str:
        return f"{line.trace.conflict_factor:.{1 if line.trace.conflict_factor > 2 else 2}f}"

    found = [
        (
            "coalesced",
            f"{fewer_sectors:.1f} times fewer sectors of global memory than naive: consecutive "
            "lanes compute consecutive columns, not rows",
        ),
        ("tiled", f"{fewer_again:.1f} times fewer sectors again: tiles are kept in shared memory"),
        (
            "conflicted",
            f"up to {column} wavefronts per request, conflict factor "
            f"{factor_of(gemm['conflicted'])}: lanes read down a column",
        ),
        (
            "padded",
            f"the same requests at factor {factor_of(gemm['padded'])}: rows are one word longer",
        ),
        (
            "swizzle",
            f"the same requests at factor {factor_of(gemm['swizzle'])}, without wasting memory: "
            "column XOR row",
        ),
        (
            "register_tiled",
            f"{fewer_requests:.1f} times fewer requests than tiled, at factor "
            f"{factor_of(registers)}: outputs are kept in registers",
        ),
        (
            "transpose",
            f"factor {factor_of(transpose['tiled'])} for tiled, "
            f"{factor_of(transpose['padded'])} for padded, "
            f"{factor_of(transpose['swizzle'])} for swizzle",
        ),
    ]
    if device != "emu":
        fastest = max(gemm.values(), key=lambda line: line.rate)
        times = fastest.rate / gemm["naive"].rate
        found.append(("fastest", f"{fastest.row.name}, {times:.0f} times as fast as naive"))
    return found


LOOK_CLOSER = (
    ("trace gemm --variant conflicted --annotate", "the line that conflicts"),
    ("banks --stride 32", "why it conflicts"),
    ("check --help", "check your own kernel"),
)


class Demo(NamedTuple):
    """The results of all variants on a device."""

    device: str
    described: str
    lines: list[Line]
    left_out: list[tuple[Variant, str]]  # with the reason

    @property
    def wrong(self) -> list[str]:
        return [f"{line.row.op} {line.row.name}" for line in self.lines if not line.correct]

    def about(self) -> list[Node]:
        n = COUNTED if self.device == "emu" else TIMED_ON_GPU
        clock = "; times are of the emulator, not of a GPU" if self.device == "emu" else ""
        about = [
            ("ms, rate", f"for gemm {n}^3, transpose {n}^2{clock}"),
            ("requests, wavefronts", f"of shared memory for size {COUNTED}, as a GPU counts them"),
            ("factor", "wavefronts / the fewest possible: 1.00 is free of bank conflicts"),
            ("error", "against NumPy in float64 / bound of rounding errors: at most 1 is correct"),
        ]
        return [
            Paragraph(f"device {self.device}{self.described}: all variants, run and checked"),
            Facts(about),
        ]

    def end(self) -> list[Node]:
        nodes: list[Node] = [
            Heading("What the counts show"),
            Facts(conclusion(self.lines, self.device)),
        ]
        closer = [(f"python -m smemkern {command}", why) for command, why in LOOK_CLOSER]
        nodes += [Heading("Look closer"), Facts(closer)]
        nodes += [
            Paragraph(f"{row.op} {row.name} was left out: {reason}")
            for row, reason in self.left_out
        ]
        nodes += [Paragraph(f"WRONG: {', '.join(self.wrong)}", "bad")] if self.wrong else []
        return nodes


def header(row: Variant) -> tuple[str, ...]:
    """Of the table of a row's operation."""
    unit = "GFLOP/s" if row.op == "gemm" else "GB/s"
    return (row.op, "ms", unit, *"requests wavefronts factor error".split(), "what it is")


def widest(rows: Sequence[Variant]) -> tuple[object, ...]:
    """A row of that table with cells as wide as those of these variants."""
    digits = (Right("0" * n) for n in (8, 8, 8, 10, 6, 6))
    return (*(max((row.name for row in rows), key=len), *digits), longest_note(rows))


def longest_note(rows: Sequence[Variant]) -> Note:
    return Note(max((row.summary for row in rows), key=len), "dim")


def prepare(device: str | None = None) -> tuple[Demo, list[Variant]]:
    """A Demo without results, and what runs on the device: the first GPU, or else the emulator."""
    known = devices()
    name = device or known[0].name
    one = np.ones((1, 1))
    gemm(one, one, variant="naive", device=name)  # raises at once if there is no such device
    described = [f" ({d.description})" for d in known if name in (d.name, d.name.partition(":")[0])]
    capability = next((d.compute_capability for d in known if name in d.name), None)
    reasons = [(row, why_not(row, capability)) for row in variants()]
    left_out = [(row, reason) for row, reason in reasons if reason]
    runnable = [row for row, reason in reasons if not reason]
    return Demo(name, described[0] if described else "", [], left_out), runnable
