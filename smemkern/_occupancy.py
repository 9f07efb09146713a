"""How many blocks of a kernel an SM holds at once, and what keeps it from holding more.

An SM gives every resident block warps, registers and shared memory, each in its own unit:

    registers       a warp takes registers x 32, rounded up to 256. Each of the 4 schedulers has a
                    quarter of the register file, and no warp is split between two of them.
    shared memory   a block takes its bytes plus what the driver reserves (1 KiB from sm_80 on),
                    rounded up to 128 bytes (256 before sm_80), out of what the carve-out leaves.
    warps, blocks   a fixed number of each.
    barriers        from sm_90 on; only kernels with more than one named barrier meet that limit.

The rules and units are those that cuda_occupancy.h of the CUDA Toolkit documents;
tests/test_occupancy.py holds this file against it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _architectures as table
from ._architectures import Architecture, architecture
from ._blocks import Block, Heading, Paragraph, Table, in_notebook
from ._table import Bar, Cell, Right

UNLIMITED = np.iinfo(np.int32).max  # a limit that does not bind: the kernel uses none of it
LIMITERS = ("registers", "shared memory", "warps", "blocks", "barriers")


class Occupancy(NamedTuple):
    """What smemkern.occupancy returns: plain numbers, or arrays if it was given arrays."""

    blocks: Any  # that an SM holds at once; 0: the kernel cannot start
    warps: Any
    fraction: Any  # of the warps that an SM can hold
    limiter: Any  # the first of LIMITERS that binds
    limits: dict[str, Any]  # blocks that each resource would allow; UNLIMITED where unused
    registers: Any  # that a block takes, as allocated
    shared_bytes: Any  # that a block takes, as allocated, with the driver's share
    arch: Architecture

    @property
    def limiters(self) -> tuple[str, ...]:
        """All that bind, of a single result."""
        if np.ndim(self.blocks):
            raise ValueError("limiters is for one result; of arrays, compare limits with blocks")
        return tuple(name for name in LIMITERS if self.limits[name] == self.blocks)

    def _blocks(self) -> list[Block]:
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
                f"{self.arch.sm} ({self.arch.name}): {self.blocks} blocks an SM, {self.warps} of "
                f"{self.arch.warps} warps, {self.fraction:.1%}"
            ),
            Paragraph(
                f"limited by {' and '.join(self.limiters)}\na block takes {self.registers} "
                f"registers and {self.shared_bytes} bytes of shared memory"
            ),
            Table(("resource", "blocks it allows", ""), limits),
        ]

    def _curve(self, names: Any = None) -> list[Block]:
        """One-dimensional arrays as a table, whose rows `names` has, or their index."""
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


def _integers(name: str, value: Any, least: int) -> Any:
    __tracebackhide__ = True
    given = np.asarray(value)
    if given.dtype.kind not in "iu":
        raise TypeError(f"{name} should be an integer or an array of them, not {given.dtype}")
    if given.size and given.min() < least:
        raise ValueError(f"{name} should be at least {least}, not {given.min()}")
    return given.astype(np.int64)


def _round_up(value: Any, unit: int) -> Any:
    return -(-value // unit) * unit


def _by_registers(arch: Architecture, registers: Any, warps: Any) -> Any:
    a_warp = _round_up(registers * table.WARP, table.REGISTER_UNIT)
    per_partition = arch.registers // table.PARTITIONS // np.maximum(a_warp, 1)
    blocks = per_partition * table.PARTITIONS // warps
    too_many = registers > table.REGISTERS_PER_THREAD
    return np.where(registers == 0, UNLIMITED, np.where(too_many, 0, blocks))


def _by_shared(arch: Architecture, allocated: Any, limit: int, carveout: int | None) -> Any:
    sizes = np.array(arch.carveouts)
    share = 100 if carveout is None else carveout
    preferred = sizes[np.searchsorted(sizes, share * arch.shared_per_sm // 100)]
    # The preference gives way to a block that needs more.
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
    """Blocks of a kernel that one SM holds at once.

    Parameters
    ----------
    threads : int or array of int
        Threads of a block.
    registers : int or array of int
        Registers of a thread, as `cuobjdump -res-usage` or `nvcc -Xptxas -v` prints them.
    shared_bytes : int or array of int
        Shared memory of a block given at launch (dynamic), in bytes.
    arch : str, int or pair
        "sm_90", "9.0", 90, (9, 0), or a device such as "H200".
    static_bytes : int or array of int
        Shared memory declared in the source (static), in bytes; added to shared_bytes.
    carveout : int, optional
        Percentage of the SM's memory that is asked for as shared (0..100), as
        cudaFuncAttributePreferredSharedMemoryCarveout; None: as much as there is.
    barriers : int or array of int
        Named barriers that the kernel uses; __syncthreads() alone is 1.
    opt_in : bool
        False: without opting in a block gets at most 48 KiB.

    Returns
    -------
    Occupancy
        Of plain numbers; of arrays of the broadcast shape if any argument is an array, so that a
        whole curve is one call.

    Raises
    ------
    TypeError, ValueError
        For what no kernel could have: fewer than 1 thread, negative sizes, an unknown
        architecture. What a kernel could ask for but an SM cannot give has 0 blocks.

    Notes
    -----
    Equal to cuda_occupancy.h of CUDA 13.0 on random inputs, all architectures, up to 255 registers,
    which is the most a thread can have (that header lets 256 pass). Clusters are not modelled.

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
    if carveout is not None and not 0 <= carveout <= 100:
        raise ValueError(f"carveout should be a percentage, 0..100, not {carveout}")
    threads = _integers("threads", threads, 1)
    registers = _integers("registers", registers, 0)
    dynamic = _integers("shared_bytes", shared_bytes, 0)
    static = _integers("static_bytes", static_bytes, 0)
    barriers = _integers("barriers", barriers, 0)
    shape = np.broadcast_shapes(*(x.shape for x in (threads, registers, dynamic, static, barriers)))

    warps = -(-threads // table.WARP)
    allocated = _round_up(dynamic + static + row.shared_reserved, row.shared_unit)
    most = row.shared_per_block if opt_in else table.SHARED_PER_BLOCK_DEFAULT
    named = row.blocks if row.sm in _FEW_BARRIERS else 2 * row.blocks
    counted = row.compute_capability >= (9, 0)
    limits = {
        "registers": _by_registers(row, registers, warps),
        "shared memory": _by_shared(row, allocated, most + row.shared_reserved, carveout),
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
        """A number for numbers, an array for arrays."""
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
    )


# These have one barrier for each block that fits, the others of compute capability 9.0 and up two.
_FEW_BARRIERS = ("sm_110", "sm_120", "sm_121")
