"""Which roof limits a kernel: arithmetic, device memory, L1, or shared memory.

An operation has 2 M N K FLOPs and must move each matrix at least once. No kernel is faster than the
slower of the two. A variant also needs wavefronts of shared memory and sectors of L1: an SM serves
one wavefront and 4 sectors per clock. Both are counted, not assumed: the emulator runs the variant
at two small sizes, and the difference is the cost per unit of work.

    textbook    naive reads 2 M N K elements of global memory, tiled 2 M N K / TILE

These reads are counted too (`reads`). L1 and L2 serve most of them, so only the compulsory bytes
are charged to device memory. The counts are of the PTX. If ptxas merges shared loads into wider
ones, the machine code needs fewer wavefronts, and that roof is higher than computed here
(docs/models.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._device.ceilings import Ceilings, ceilings
from .._render.document import Facts, Heading, Node, Table, in_notebook
from .._render.rows import Rows
from .._render.table import Bar, Right
from .._variants.registry import Variant, variants

SECTORS_PER_CLOCK = 4  # of an SM's L1: 128 bytes
SIDE, SHORT, LONG = 256, 128, 256  # sizes of the counted runs: multiples of every variant's tiles


class Traffic(NamedTuple):
    """A variant's memory traffic per unit of work (gemm: M N K; transpose: an element)."""

    reads: float  # elements of global memory
    l1_clocks: float
    wavefronts: float


class VariantRoof(NamedTuple):
    """A variant and its roofs."""

    variant: str
    reads: float  # elements of global memory read, by all threads together
    wavefronts: float  # of shared memory
    intensity: float  # FLOP (transpose: bytes moved) per byte of these reads
    binding: str  # the lowest roof
    attainable: float  # TFLOP/s (gemm) or TB/s (transpose) under that roof
    seconds: dict[str, float]  # minimum time by each roof: "compute", "memory", "L1", "shared"


class Roofline(NamedTuple):
    """The result of smemkern.roofline."""

    op: str
    shape: tuple[int, ...]
    dtype: str
    flops: int
    bytes: int  # compulsory: each matrix moved once
    intensity: float  # FLOP/byte
    binding: str  # "compute" or "memory"
    attainable: float  # TFLOP/s (gemm) or TB/s (transpose)
    seconds: dict[str, float]  # minimum time by each roof
    ceilings: Ceilings

    @property
    def unit(self) -> str:
        return "TFLOP/s" if self.flops else "TB/s"

    @property
    def variants(self) -> Rows[VariantRoof]:
        """The roofs of every variant for this dtype, counted on the emulator in about 1 second.

        Variants that use matrix units, or that the emulator cannot run, are omitted.
        """
        counted = (_counted(self, row) for row in variants(self.op))
        return Rows(row for row in counted if row is not None)

    def _nodes(self) -> list[Node]:
        slowest = max(self.seconds.values())
        roofs = [
            (name, Right(f"{1e6 * s:.4g}"), Bar(s / slowest)) for name, s in self.seconds.items()
        ]
        shape = " x ".join(map(str, self.shape))
        facts = [
            ("work", f"{self.flops / 1e9:.4g} GFLOP" if self.flops else "none"),
            ("moves at least", f"{self.bytes / 1e6:.4g} MB"),
            ("intensity", f"{self.intensity:.4g} FLOP/byte"),
            ("attainable", f"{self.attainable:.4g} {self.unit}, bound by {self.binding}"),
            ("roofs of", f"{self.ceilings.device}, {self.ceilings.source}"),
        ]
        header = ("roof", "microseconds", "")
        return [Heading(f"{self.op} {shape} {self.dtype}"), Facts(facts), Table(header, roofs)]

    def _repr_html_(self) -> str:
        return in_notebook(self)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return (
            f"<Roofline of {self.op} {shape} {self.dtype}: {self.flops / 1e9:.4g} GFLOP, "
            f"{self.bytes / 1e6:.4g} MB, {self.intensity:.4g} FLOP/byte; bound by {self.binding}: "
            f"{self.attainable:.4g} {self.unit} on {self.ceilings.device}>"
        )


def _itemsize(dtype: Any) -> tuple[str, int]:
    if isinstance(dtype, str) and dtype in ("bfloat16", "tf32"):
        return dtype, {"bfloat16": 2, "tf32": 4}[dtype]
    __tracebackhide__ = True
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise ValueError(
            f"dtype {dtype!r} is not known; pass one of NumPy's, 'bfloat16' or 'tf32'"
        ) from None
    return kind.name, kind.itemsize


def _compute_roof(roofs: Ceilings, dtype: str) -> float:
    half = "float16 matrix" if "float16 matrix" in roofs.compute else "bfloat16 matrix"
    units = {"float16": half, "bfloat16": "bfloat16 matrix", "tf32": "tf32 matrix"}
    __tracebackhide__ = True
    unit = units.get(dtype, dtype)
    if unit not in roofs.compute:
        known = ", ".join(roofs.compute)
        raise ValueError(
            f"no arithmetic roof is known for {dtype} on {roofs.device}; known are: {known}"
        )
    return roofs.compute[unit]


def roofline(
    op: str, shape: tuple[int, ...], dtype: Any, device: str | Ceilings | None = None
) -> Roofline:
    """The roofs of an operation, and of each of its variants.

    Parameters
    ----------
    op : "gemm" or "transpose"
    shape : tuple of int
        (M, N, K) or (M, N), preceded by any batch dimensions.
    dtype : dtype or str
        The elements' type; for a gemm also "bfloat16" and "tf32". For "float32" and "float64" the
        arithmetic roof is that of the units outside the matrix units.
    device : str or Ceilings, optional
        A device for smemkern.ceilings, or its result. Without a GPU the default is the table of an
        H200; `ceilings.source` says which was used.

    Returns
    -------
    Roofline
        FLOPs, compulsory bytes, arithmetic intensity, the binding roof and the attainable rate.
        `.variants` has the same for every variant, with its own traffic.

    Raises
    ------
    ValueError
        For an unknown operation or dtype, or an illegal shape.

    Examples
    --------
    >>> import smemkern
    >>> smemkern.roofline("gemm", (4096, 4096, 4096), "float32", "H200").binding
    'compute'
    >>> smemkern.roofline("gemm", (4096, 4096, 4), "float32", "H200").binding
    'memory'
    """
    __tracebackhide__ = True
    sizes = {"gemm": 3, "transpose": 2}
    if op not in sizes:
        raise ValueError(f"op should be 'gemm' or 'transpose', not {op!r}")
    shape = tuple(shape)
    if len(shape) < sizes[op] or any(not isinstance(n, int | np.integer) or n < 1 for n in shape):
        wanted = "(..., M, N, K)" if op == "gemm" else "(..., M, N)"
        raise ValueError(f"shape of {op} should be {wanted}, of positive integers, not {shape}")
    name, itemsize = _itemsize(dtype)
    roofs = device if isinstance(device, Ceilings) else ceilings(device)
    m, n = (int(x) for x in shape[-sizes[op] :][:2])
    batch = int(np.prod([int(x) for x in shape[: -sizes[op]]], dtype=object))
    if op == "gemm":
        k = int(shape[-1])
        flops, moved = 2 * batch * m * n * k, batch * (m * k + k * n + m * n) * itemsize
        seconds = {"compute": flops / _compute_roof(roofs, name), "memory": moved / roofs.memory}
    else:
        flops, moved = 0, 2 * batch * m * n * itemsize
        seconds = {"memory": moved / roofs.memory}
    binding, attainable = _lowest(seconds, flops or moved)
    return Roofline(
        op, shape, name, flops, moved, flops / moved, binding, attainable, seconds, roofs
    )


def _lowest(seconds: Mapping[str, float], work: float) -> tuple[str, float]:
    binding = max(seconds, key=lambda roof: seconds[roof])
    return binding, work / seconds[binding] / 1e12


def _counted(whole: Roofline, row: Variant) -> VariantRoof | None:
    itemsize = _itemsize(whole.dtype)[1]
    name = whole.dtype if whole.op == "gemm" else f"b{8 * itemsize}"
    traffic = traffic_of(whole.op, row.name, name) if name in row.dtypes else None
    if traffic is None:
        return None
    work = whole.flops / 2 if whole.flops else whole.bytes / (2 * itemsize)
    roofs = whole.ceilings
    seconds = {
        **whole.seconds,
        "L1": work * traffic.l1_clocks / roofs.wavefronts,
        "shared": work * traffic.wavefronts / roofs.wavefronts,
    }
    binding, attainable = _lowest(seconds, whole.flops or whole.bytes)
    reads = work * traffic.reads
    intensity = (whole.flops or whole.bytes) / (reads * itemsize)
    wavefronts = work * traffic.wavefronts
    return VariantRoof(row.name, reads, wavefronts, intensity, binding, attainable, seconds)


_counted_before: dict[tuple[str, str, str], Traffic | None] = {}


def traffic_of(op: str, variant: str, dtype: str) -> Traffic | None:
    """A variant's traffic per unit of work; None if the emulator cannot run it."""
    key = (op, variant, dtype)
    if key not in _counted_before:
        _counted_before[key] = _count(*key)
    return _counted_before[key]


def _count(op: str, variant: str, dtype: str) -> Traffic | None:
    short: tuple[Any, ...]
    long: tuple[Any, ...]
    if op == "gemm":
        kind = np.dtype(dtype)
        short, long = ((np.ones((SIDE, k), kind), np.ones((k, SIDE), kind)) for k in (SHORT, LONG))
        work = SIDE * SIDE * (LONG - SHORT)
    else:
        kind = np.dtype(f"V{int(dtype[1:]) // 8}")
        short, long = ((np.zeros((SIDE, n), kind),) for n in (SIDE, 2 * SIDE))
        work = SIDE * SIDE
    try:
        before = _run(op, short, variant, kind.itemsize)
        after = before and _run(op, long, variant, kind.itemsize)
    except _core.UnsupportedInstructionError:
        return None
    if before is None or after is None:
        return None
    return Traffic(*((b - a) / work for a, b in zip(before, after, strict=True)))


def _run(op: str, operands: Any, variant: str, itemsize: int) -> Traffic | None:
    """The counts of one run; None for kernels that use matrix units."""
    from .._trace.observe import trace

    run = trace(op, *operands, variant=variant, device="emu")
    if any(opcode.startswith(("mma", "wgmma", "wmma")) for opcode in run.instructions):
        return None
    reads = sum(
        row.requests * 32 * row.width / itemsize
        for row in run.global_
        if row.op in ("load", "copy_async")
    )
    # Bulk copies fill shared memory without loads by threads, so they do not go through L1.
    copied = [row for row in run.global_ if row.op == "bulk"]
    reads += sum(row.bytes / itemsize for row in copied if row.direction == "read")
    clocks = sum(
        max(row.requests, row.sectors / SECTORS_PER_CLOCK)
        for row in run.global_
        if row.op != "bulk"
    )
    return Traffic(reads, clocks, sum(row.wavefronts for row in run.shared))
