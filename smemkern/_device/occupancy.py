"""The number of blocks of a kernel that are resident on an SM, and the resources that limit it.

An SM allocates to each resident block, in units:

    registers       registers per thread x 32 per warp, rounded up to a multiple of 256. Each of the
                    4 schedulers has a quarter of the register file; a warp's are in one quarter.
    shared memory   the block's bytes plus those that the driver reserves (1 KiB from sm_80 on),
                    rounded up to a multiple of 128 bytes (256 before sm_80), of the carve-out.
    warps, blocks   an SM has a fixed number of each.
    barriers        from sm_90 on; limits only kernels with more than one named barrier.

The rules and units are those of cuda_occupancy.h of the CUDA Toolkit; tests/test_occupancy.py
compares this file with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._compiler.cuda_tools import Resources, ToolError, compiled
from .._core import Kernel
from .._render.document import Heading, Node, Paragraph, Table, in_notebook
from .._render.table import Bar, Cell, Right
from . import architectures as table
from .architectures import Architecture, architecture

UNLIMITED = np.iinfo(np.int32).max  # the limit of a resource that the kernel does not use
ESTIMATE = "estimate from the PTX"
PERCENT = 100  # a larger carve-out is in bytes
LIMITERS = ("registers", "shared memory", "warps", "blocks", "barriers")


class Occupancy(NamedTuple):
    """The result of smemkern.occupancy: numbers, or arrays if an argument was an array."""

    blocks: Any  # resident per SM; 0: the kernel cannot be launched
    warps: Any  # resident per SM
    fraction: Any  # of the warps that an SM can hold
    limiter: Any  # the first of LIMITERS that binds
    limits: dict[str, Any]  # blocks that each resource would allow; UNLIMITED if it is not used
    registers: Any  # allocated per block
    shared_bytes: Any  # allocated per block, including what the driver reserves
    arch: Architecture
    registers_from: str = "given"  # of a Kernel: "ptxas ... for sm_90", "estimate ..."
    registers_per_thread: Any = 0

    @property
    def limiters(self) -> tuple[str, ...]:
        """All resources that bind; only for a result that is not an array."""
        if np.ndim(self.blocks):
            raise ValueError("limiters needs a single result; for arrays compare limits and blocks")
        return tuple(name for name in LIMITERS if self.limits[name] == self.blocks)

    def told(self) -> str:
        """A result that is not an array, in half a sentence."""
        return (
            f"{self.blocks} blocks per SM, {self.warps} of {self.arch.warps} warps, "
            f"{self.fraction:.1%}, limited by {' and '.join(self.limiters)}"
        )

    def _nodes(self) -> list[Node]:
        if np.ndim(self.blocks):
            return [Heading(repr(self)[1:-1]), *self._curve()]
        limits = [
            (
                name,
                Right("-") if limit == UNLIMITED else limit,
                Cell("binds", "strong") if limit == self.blocks else "",
            )
            for name, limit in self.limits.items()
        ]
        return [
            Heading(
                f"{self.arch.sm} ({self.arch.name}): {self.blocks} blocks per SM, {self.warps} of "
                f"{self.arch.warps} warps, {self.fraction:.1%}"
            ),
            Paragraph(
                f"limited by {' and '.join(self.limiters)}\na block takes {self.registers} "
                f"registers and {self.shared_bytes} bytes of shared memory"
                f"{self._origin()}"
            ),
            Table(("resource", "blocks it allows", ""), limits),
        ]

    def _origin(self) -> str:
        if self.registers_from == "given":
            return ""
        return f"\n{self.registers_per_thread} registers per thread: {self.registers_from}"

    def _curve(self, names: Any = None) -> list[Node]:
        """One-dimensional arrays as a table, with `names` or indices as its first column."""
        if np.ndim(self.blocks) != 1 or len(self.blocks) > 64:
            return [Paragraph("plot it, or look at .blocks and .limiter")]
        header = ("" if names is None else "threads", "blocks", "warps", "share", "", "limited by")
        rows = [
            (int(name), int(b), int(w), Right(f"{f:.1%}"), Bar(float(f)), str(limiter))
            for name, b, w, f, limiter in zip(
                range(len(self.blocks)) if names is None else names,
                *(self.blocks, self.warps, self.fraction, self.limiter),
                strict=True,
            )
        ]
        return [Table(header, rows)]

    def _repr_html_(self) -> str:
        return in_notebook(self)

    def __repr__(self) -> str:
        if np.ndim(self.blocks):
            shape = np.shape(self.blocks)
            return f"<Occupancy on {self.arch.sm}: arrays of shape {shape}>"
        left = ", ".join(
            f"{name} {'-' if limit == UNLIMITED else limit}" for name, limit in self.limits.items()
        )
        return (
            f"<Occupancy on {self.arch.sm}: {self.blocks} blocks, {self.warps} warps, "
            f"{self.fraction:.1%}; limited by {' and '.join(self.limiters)} (blocks by {left})>"
        )


def _integers(name: str, value: Any, low: int) -> Any:
    __tracebackhide__ = True
    given = np.asarray(value)
    if given.dtype.kind not in "iu":
        raise TypeError(f"{name} should be an integer or an array of them, not {given.dtype}")
    if given.size and given.min() < low:
        raise ValueError(f"{name} should be at least {low}, not {given.min()}")
    return given.astype(np.int64)


def _round_up(value: Any, unit: int) -> Any:
    return -(-value // unit) * unit


def _by_registers(arch: Architecture, registers: Any, warps: Any) -> Any:
    per_warp = _round_up(registers * table.WARP, table.REGISTER_UNIT)
    per_partition = arch.registers // table.PARTITIONS // np.maximum(per_warp, 1)
    blocks = per_partition * table.PARTITIONS // warps
    too_many = registers > table.REGISTERS_PER_THREAD
    return np.where(registers == 0, UNLIMITED, np.where(too_many, 0, blocks))


def _by_shared(arch: Architecture, allocated: Any, limit: int, carveout: int | None) -> Any:
    sizes = np.array(arch.carveouts)
    wanted = arch.shared_per_sm if carveout is None else carveout
    if wanted <= PERCENT:
        wanted = wanted * arch.shared_per_sm // 100
    preferred = sizes[np.searchsorted(sizes, wanted)]
    # A block that needs more gets a larger carve-out than the preferred one.
    available = np.where(
        allocated <= preferred,
        preferred,
        sizes[np.minimum(np.searchsorted(sizes, allocated), len(sizes) - 1)],
    )
    blocks = np.where(allocated > 0, available // np.maximum(allocated, 1), UNLIMITED)
    return np.where(allocated > limit, 0, blocks)


def occupancy(
    threads: Any,
    registers: Any,
    shared_bytes: Any = 0,
    arch: str | int | tuple[int, int] = "sm_90",
    *,
    static_bytes: Any = 0,
    carveout: int | None = None,
    barriers: Any = 1,
    opt_in: bool = True,
) -> Occupancy:
    """The number of blocks of a kernel that are resident on one SM.

    Parameters
    ----------
    threads : int or array of int
        Threads per block.
    registers : int, array of int, or Kernel
        Registers per thread, as printed by `cuobjdump -res-usage` or `nvcc -Xptxas -v`. Of a
        Kernel ptxas tells them, and its static shared memory and barriers, if it is installed;
        else registers are estimated from the PTX, which `registers_from` then says.
    shared_bytes : int or array of int
        Dynamic shared memory per block, in bytes.
    arch : str, int or pair
        "sm_90", "9.0", 90, (9, 0), or a device such as "H200".
    static_bytes : int or array of int
        Static shared memory per block, in bytes; added to shared_bytes.
    carveout : int, optional
        The preferred size of shared memory: in percent of the largest (0..100), as set by
        cudaFuncAttributePreferredSharedMemoryCarveout, or in bytes (above 100). The driver takes
        the next larger size that the architecture supports. None: as much as possible.
    barriers : int or array of int
        Named barriers that the kernel uses; __syncthreads() alone is 1.
    opt_in : bool
        False: the kernel does not opt in to more than 48 KiB of shared memory per block.

    Returns
    -------
    Occupancy
        Numbers; arrays of the broadcast shape if any argument is an array, so that a whole curve
        takes one call.

    Raises
    ------
    TypeError, ValueError
        For what no kernel can have: fewer than 1 thread, negative sizes, an unknown architecture.
        A kernel that needs more than an SM has gets 0 blocks.

    Notes
    -----
    Equal to cuda_occupancy.h of CUDA 13.0 on random inputs, all architectures, up to 255 registers,
    the maximum per thread (that header also accepts 256). Clusters are not modelled.

    Examples
    --------
    >>> import smemkern
    >>> smemkern.occupancy(256, 64, 49152).limiter
    'registers'
    >>> smemkern.occupancy([128, 256, 512], 128, arch="sm_80").blocks
    array([4, 2, 1])
    """
    __tracebackhide__ = True
    row = architecture(arch)
    if carveout is not None and not 0 <= carveout <= row.shared_per_sm:
        raise ValueError(
            f"carveout should be a percentage, 0..100, or bytes up to {row.shared_per_sm}, "
            f"not {carveout}"
        )
    origin = "given"
    if isinstance(registers, Kernel):
        registers, own_bytes, own_barriers, origin = _of_kernel(registers, row.sm)
        static_bytes = np.add(static_bytes, own_bytes)
        barriers = np.maximum(barriers, own_barriers)
    threads = _integers("threads", threads, 1)
    registers = _integers("registers", registers, 0)
    dynamic = _integers("shared_bytes", shared_bytes, 0)
    static = _integers("static_bytes", static_bytes, 0)
    barriers = _integers("barriers", barriers, 0)
    shape = np.broadcast_shapes(*(x.shape for x in (threads, registers, dynamic, static, barriers)))

    warps = -(-threads // table.WARP)
    allocated = _round_up(dynamic + static + row.shared_reserved, row.shared_unit)
    limit = row.shared_per_block if opt_in else table.SHARED_PER_BLOCK_DEFAULT
    named = row.blocks if row.sm in _FEW_BARRIERS else 2 * row.blocks
    counted = row.compute_capability >= (9, 0)
    limits = {
        "registers": _by_registers(row, registers, warps),
        "shared memory": _by_shared(row, allocated, limit + row.shared_reserved, carveout),
        "warps": np.where(threads > table.THREADS_PER_BLOCK, 0, row.warps // warps),
        "blocks": np.asarray(row.blocks),
        "barriers": np.where((barriers > 0) & counted, named // np.maximum(barriers, 1), UNLIMITED),
    }
    limits = {name: np.broadcast_to(limit, shape) for name, limit in limits.items()}
    blocks = np.minimum.reduce([limits[name] for name in LIMITERS])
    limiter = np.select([limits[name] == blocks for name in LIMITERS], LIMITERS, "")
    per_block = _round_up(registers * table.WARP, table.REGISTER_UNIT) * warps
    resident = blocks * warps

    def given(result: Any) -> Any:
        """A number if all arguments are numbers, else an array."""
        return np.broadcast_to(result, shape).copy() if shape else result.item()

    return Occupancy(
        blocks=given(blocks),
        warps=given(resident),
        fraction=given(resident / row.warps),
        limiter=given(limiter),
        limits={name: given(limit) for name, limit in limits.items()},
        registers=given(per_block),
        shared_bytes=given(allocated),
        arch=row,
        registers_from=origin,
        registers_per_thread=given(registers),
    )


def _of_kernel(kernel: Kernel, arch: str) -> tuple[int, int, int, str]:
    """Registers, static shared memory and barriers of a Kernel, and who said so."""
    try:
        r = compiled(kernel.ptx, kernel.name, arch).resources
    except ToolError as error:
        return kernel.live_registers, kernel.shared_bytes, 1, f"{ESTIMATE}: {error}"
    return r.registers, r.static_shared, r.barriers, f"ptxas {r.ptxas} for {r.arch}"


def of_resources(threads: int, resources: Resources, shared_bytes: int) -> Occupancy:
    """Of a compiled kernel with so many threads and bytes of dynamic shared memory per block."""
    arch = resources.arch.rstrip("af")
    found = occupancy(
        threads,
        resources.registers,
        shared_bytes,
        arch,
        static_bytes=resources.static_shared,
        barriers=resources.barriers,
    )
    return found._replace(registers_from=f"ptxas {resources.ptxas} for {resources.arch}")


# These have as many barriers as resident blocks; the others from sm_90 on have twice as many.
_FEW_BARRIERS = ("sm_110", "sm_120", "sm_121")
