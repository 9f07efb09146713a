"""Runs that report counts (trace) or times (_measure)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _core
from .._compiler.shared_arrays import Known, known_arrays
from .._device.architectures import architecture
from .._render.document import Node, Paragraph, Table, as_text, text
from .._render.progress import Meter, Progress
from . import hazards as found_hazards
from . import watch
from .again import OPERANDS, Again, adapted, again, bytes_of
from .hazards import Hazards
from .launch import Blocks, Launch, block_numbers
from .rows import GlobalRow, SharedRow, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from .._device.occupancy import Occupancy
    from .machine_code import MachineCode


_MAX_KEPT = 64 << 20  # bytes of arguments that a trace keeps for its replay


class Trace:
    """The counts of a run on the emulator.

    Attributes
    ----------
    result
        What the operation returned; None if only some of the blocks ran.
    shared : Rows of SharedRow
    global_ : Rows of GlobalRow
    instructions : dict
        Warp instructions by opcode.
    warp_instructions : int
        Their sum.
    thread_instructions : dict
        Thread instructions by opcode; counts the lanes whose guard predicate was true.
    barriers : int
        Arrivals of warps at block barriers.
    flops : int
        Floating-point operations: 2 for an fma, 1 for add, mul, div, sqrt, ..., 2mnk for a matrix
        instruction; the rule is in csrc/emu/cost/flops.h.
    blocks, grid_blocks : int
        The blocks that ran, and all blocks of the launches.
    launch : Launch
        Kernel, variant, grid, block and shared memory.
    hazards : Rows of Hazard
        Races and other mistakes that the run revealed; see docs/hazards.md.
    benign : Rows of Hazard
        Findings that do no harm: reads whose value a compare-and-swap checks (kind "cas-read"),
        mbarriers without a fence after their initialisation (kind "proxy-init") or initialised
        twice ("init-again"), and shuffles that read lanes outside their mask ("shuffle-outside").
    checked : bool
        Whether the run looked for hazards.
    machine_code : MachineCode or None
        If the trace was asked for it: `resources` (registers per thread, spills, ... by ptxas;
        None without ptxas), and `note`, which says what is missing.
    incomplete : bool
        Whether a fault, such as an access out of bounds, ended the run. Then the counts are those
        up to the fault, result is None, and no array was written.
    """

    def __init__(
        self,
        result: object,
        raw: tuple[Any, ...],
        hazards: tuple[Hazards, Hazards],
        launch: Launch,
        machine_code: MachineCode | None = None,
        call: Again | None = None,
    ) -> None:
        self._call = call
        sites, opcodes, totals = raw[:3]
        self.hazards, self.benign = hazards
        self.checked, self.incomplete = raw[4:6]
        self.shared, self.global_ = rows(sites, machine_code.rows if machine_code else None)
        self.machine_code = machine_code
        self.instructions = {opcode: counts[0] for opcode, counts in opcodes.items()}
        self.thread_instructions = {opcode: counts[1] for opcode, counts in opcodes.items()}
        self.warp_instructions: int = totals["warp_instructions"]
        self.barriers: int = totals["barriers"]
        self.flops: int = totals["flops"]
        self.blocks: int = totals["blocks_traced"]
        self.grid_blocks: int = totals["grid_blocks"]
        self.launch = launch._replace(shared_bytes=totals["shared_bytes"])
        whole = not self.incomplete and self.blocks == self.grid_blocks
        self.result = result if whole else None

    @property
    def shared_requests(self) -> int:
        return sum(row.requests for row in self.shared)

    @property
    def shared_wavefronts(self) -> int:
        return sum(row.wavefronts for row in self.shared)

    @property
    def conflict_factor(self) -> float:
        """Shared wavefronts / ideal wavefronts; nan if shared memory was not used."""
        ideal = sum(row.ideal for row in self.shared)
        return self.shared_wavefronts / ideal if ideal else float("nan")

    @property
    def machine_conflict_factor(self) -> float:
        """The same after ptxas merges neighbouring accesses."""
        ideal = sum(row.machine_ideal for row in self.shared)
        wavefronts = sum(row.machine_wavefronts for row in self.shared)
        return wavefronts / ideal if ideal else float("nan")

    @property
    def occupancy(self) -> Occupancy | None:
        """Resident blocks per SM, with the registers that ptxas allocates; None without those."""
        from .._device.occupancy import of_resources

        resources = self.machine_code and self.machine_code.resources
        if not resources or not all(self.launch.block):
            return None
        dynamic = max(self.launch.shared_bytes - resources.static_shared, 0)
        return of_resources(math.prod(self.launch.block), resources, dynamic)

    @property
    def bytes_moved(self) -> dict[str, int]:
        """Bytes: global_read, global_written, shared_read, shared_written.

        For global memory: the 32-byte sectors that warps moved, ignoring caches; of a multicast,
        those that each block receives. For shared memory: the bytes that active lanes accessed.
        Atomics count as read and written.
        """
        moved = {}
        for name, way in (("read", "read"), ("written", "write")):
            ways = (way, "both")
            moved[f"global_{name}"] = sum(
                32 * r.sectors for r in self.global_ if r.direction in ways
            )
            moved[f"shared_{name}"] = sum(r.bytes for r in self.shared if r.direction in ways)
        return moved

    @property
    def arithmetic_intensity(self) -> float:
        """`flops` per byte of global memory moved (see bytes_moved); nan if none was moved."""
        moved = self.bytes_moved
        total = moved["global_read"] + moved["global_written"]
        return self.flops / total if total else float("nan")

    @property
    def coverage(self) -> str | None:
        """ "traced 4 of 16384 blocks", or None if all of them ran."""
        if self.blocks == self.grid_blocks:
            return None
        return f"traced {self.blocks} of {self.grid_blocks} blocks"

    def annotate(self, file: str | None = None) -> str:
        """The source with counts in the margin, as text.

        A line's counts include code of other lines that was inlined at it; "+" marks such lines.
        The inlined code's own lines show these counts too.

        Parameters
        ----------
        file : str or None
            One file, as named in the rows; None: all files that have counts. Their text is known
            if they belong to this package or to the Kernel.
        """
        __tracebackhide__ = True
        from .listing import nodes

        return text(nodes(self, file))

    def to_pandas(self) -> Any:
        """A DataFrame of the rows: first shared memory, then global; column `space` says which.

        `cost` is wavefronts or sectors. Needs pandas.
        """
        import pandas as pd  # type: ignore[import-untyped]

        table = []
        every: list[SharedRow | GlobalRow] = [*self.shared, *self.global_]
        for row in every:
            shared = isinstance(row, SharedRow)
            cost = row.wavefronts if isinstance(row, SharedRow) else row.sectors
            fields = ("file", "line", "op", "width", "requests")
            table.append(
                {"space": "shared" if shared else "global"}
                | {field: getattr(row, field) for field in fields}
                | {"cost": cost, "ideal": row.ideal, "worst": row.worst, "bytes": row.bytes}
                | {"callers": " < ".join(f"{file}:{line}" for file, line in row.callers)}
            )
        columns = "space file line op width requests cost ideal worst bytes callers".split()
        return pd.DataFrame(table, columns=columns)

    def replay(
        self,
        blocks: Blocks | None = None,
        warps: int | Sequence[int] | None = None,
        first: int = 0,
        steps: int | None = None,
        max_bytes: int | None = None,
    ) -> Any:
        """Step to and fro through the same call: it runs again, on its arguments as they were.

        The parameters and the result, a Replay, are those of smemkern.replay.

        Raises
        ------
        ValueError
            If a trace's arguments were too large to keep a copy (64 MiB).
        """
        __tracebackhide__ = True
        from .._replay import record, replay

        if self._call is None:
            raise ValueError(
                "the arguments of this trace are larger than the 64 MiB that a trace keeps, or it "
                "was made by a watch: call smemkern.replay(kernel, ...) in place of trace.replay()"
            )
        window = replay.window_of(
            first,
            record.STEPS if steps is None else steps,
            record.MAX_BYTES if max_bytes is None else max_bytes,
        )
        return replay.started(record.job_of(self._call, blocks, warps), window)

    def plot(self) -> Any:
        """Plots the wavefronts and the ideal of each line, and the banks of the worst request.

        Returns
        -------
        numpy.ndarray of matplotlib.axes.Axes
            Lines and worst request; one Axes if no line accesses shared memory.
        """
        from .plot import plot

        return plot(self)

    def to_html(self, file: str | os.PathLike[str] | None = None) -> str:
        """The trace as a self-contained HTML page; also written to `file` if that is given."""
        from .page import page

        text = page(self)
        if file is not None:
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)
        return text

    def _repr_html_(self) -> str:
        from .page import markup

        return markup(self)

    def _nodes(self) -> list[Node]:
        by_count = sorted(self.instructions.items(), key=lambda item: -item[1])
        counts: list[tuple[int, str]] = [(count, opcode) for opcode, count in by_count[:8]]
        if len(by_count) > 8:
            others = sum(count for _, count in by_count[8:])
            counts.append((others, f"{len(by_count) - 8} others"))
        nodes: list[Node] = [Paragraph(self.coverage)] if self.coverage else []
        if self.shared:
            every = bool(self.machine_code and self.machine_code.rows)
            nodes += [self.shared._table(), *self.shared.joined_table(every)]
        nodes += [self.global_._table()] if self.global_ else []
        nodes += self._machine_nodes()
        nodes.append(
            Paragraph(
                f"{self.warp_instructions} warp instructions, {self.barriers} barrier arrivals"
            )
        )
        nodes.append(Table(("count", "warp instruction"), counts))
        nodes += [Paragraph(f"hazard: {row.message}", "bad") for row in self.hazards]
        nodes += [Paragraph(f"note: {row.message}") for row in self.benign]
        return nodes

    def _machine_nodes(self) -> list[Node]:
        if self.machine_code is None:
            return []
        resources, _, note = self.machine_code
        told = [f"machine code was not read: {note}"] if note else []
        if resources:
            told = [resources.told(), *told]
        occupancy = self.occupancy
        if occupancy:
            told.append(f"occupancy: {occupancy.told()}")
        return [Paragraph("\n".join(told))] if told else []

    __repr__ = as_text


def _ptx_of(what: str | _core.Kernel, launch: Launch) -> str | None:
    """The PTX of a Kernel, or of a variant if its image is prebuilt."""
    if isinstance(what, _core.Kernel):
        return what.ptx
    file = Path(_core.config()["images"], f"{launch.image}.ptx")
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _traced(
    what: Any,
    args: tuple[Any, ...],
    kw: dict[str, Any],
    hazards: bool = True,
    equal_writes: bool = False,
    only_if_clean: bool = False,
    blocks: Blocks | None = None,
    progress: bool | Progress = False,
    machine_code: bool | str = False,
) -> Trace:
    __tracebackhide__ = True
    arch = None if isinstance(machine_code, bool) else architecture(machine_code).sm
    what, args, kw, launch, call = adapted(what, args, kw)
    kept = None
    if bytes_of(args, kw) <= _MAX_KEPT:
        kept = again(what, args, kw, launch, call, equal_writes)
    with Meter("trace", "blocks") as meter:
        result, _times, raw = _core.observe(
            what,
            args,
            kw,
            trace=True,
            hazards=hazards,
            equal_writes=equal_writes,
            only_if_clean=only_if_clean,
            blocks=None if blocks is None else block_numbers(blocks, launch.grids),
            progress=meter if progress is True else progress or None,
            by_instruction=bool(machine_code),
        )
    assert raw is not None
    machine = None
    if machine_code:
        from .machine_code import read

        machine = read(_ptx_of(what, launch), arch, raw[6], complete=not raw[5])

    def known(_variables: Iterable[str]) -> Known:
        return known_arrays(_ptx_of(what, launch), launch.sources)

    if call is None:
        operands = OPERANDS[what]
        names = [*operands, "the result", "the workspace"]
        arrays: tuple[object, ...] = (*(None for _ in operands), result, None)
        found = found_hazards.rows(raw[3], names, arrays, known)
    else:
        renumbered = found_hazards.renumbered(raw[3], call.numbers)
        found = found_hazards.rows(renumbered, call.names, call.values, known)
    made = Trace(result, raw, found, launch, machine, kept)
    watch.seen(made)
    return made


def trace(
    what: Any,
    *args: Any,
    hazards: bool = True,
    equal_writes: bool = False,
    blocks: Blocks | None = None,
    progress: bool | Progress = False,
    machine_code: bool | str = False,
    **kw: Any,
) -> Trace:
    """Run an operation or a kernel on the emulator, count, and look for hazards.

    Parameters
    ----------
    what : "gemm", "transpose", "probe", Kernel, or a kernel of another tool
        A kernel of Triton, Numba, CuPy or cuda.core, or text of CUDA C++ or PTX:
        docs/integrations.md has an example for each.
    *args, **kw
        The arguments of the operation, or of a call of the kernel: grid, block, and one argument
        per parameter. name= chooses a kernel of a text or module that has several.
    hazards : bool
        Look for races and other mistakes. Without it a run is faster, and a fault raises.
    equal_writes : bool
        Also report races between writes of the same value, such as `flag = true`.
    blocks : int, slice, range, list of int, or tuple (x, y, z), optional
        Run only these blocks, which shortens traces of large grids. An int is a number of blocks
        from the first one on; the others select by block number, counted x first, then y, z, and on
        through the launches of a batch. `result` is then None, arrays given to a Kernel hold what
        these blocks wrote, and a block that waits for one that does not run never ends.
    progress : bool or function, optional
        True shows a bar once a trace has taken two seconds, in a terminal or notebook; this needs
        tqdm. A function is called as function(blocks done, blocks in total) about 20 times per
        second and at the end; an exception that it raises ends the run.

    Returns
    -------
    Trace
        Exact counts, by rules that were compared with Nsight Compute's counters of the same names.

    Raises
    ------
    ValueError
        If there is no such operation or block, or if `device` is a GPU.

    Examples
    --------
    >>> t = smemkern.trace("gemm", a, b, variant="conflicted")  # doctest: +SKIP
    >>> max(t.shared, key=lambda row: row.worst)  # doctest: +SKIP
    """
    __tracebackhide__ = True
    return _traced(
        what,
        args,
        kw,
        hazards,
        equal_writes,
        blocks=blocks,
        progress=progress,
        machine_code=machine_code,
    )


def check(
    what: Any,
    *args: Any,
    equal_writes: bool = False,
    blocks: Blocks | None = None,
    progress: bool | Progress = False,
    **kw: Any,
) -> Hazards:
    """Run a kernel on the emulator, and return the races and other mistakes that the run revealed.

    Parameters
    ----------
    what : Kernel, or a kernel of another tool
        What trace accepts; docs/integrations.md has an example for each tool.
    *args, **kw
        The arguments of its call: grid, block, one argument per parameter.
    equal_writes, blocks, progress
        As for trace.

    Returns
    -------
    Hazards
        Empty if there are none. Arrays hold what the kernel has written, unless a fault ended it.

    Examples
    --------
    >>> import numpy as np, smemkern
    >>> reverse = '''
    ... __global__ void reverse(int *x) {
    ...     __shared__ int tile[64];
    ...     tile[threadIdx.x] = x[threadIdx.x];
    ...     x[threadIdx.x] = tile[63 - threadIdx.x];
    ... }'''
    >>> [hazard.kind for hazard in smemkern.check(reverse, 1, 64, np.arange(64, dtype="i4"))]
    ['RAW']
    """
    __tracebackhide__ = True
    return _traced(what, args, kw, True, equal_writes, blocks=blocks, progress=progress).hazards


def _measure(
    op: str | _core.Kernel, *args: Any, repeat: int = 5, **kw: Any
) -> tuple[np.ndarray[Any, Any], list[float]]:
    """Run an operation once, then `repeat` more times with timing: (result, [ms, ...]).

    Private; for the demo and for benchmarks/. On a GPU the times are of CUDA events around the
    launches, without transfers; on "emu" they are wall-clock times of the launches.

    _measure("gemm", a, b, variant="tiled", device="cuda", repeat=20, tile=16)
    """
    result, times, _raw = _core.observe(op, args, kw, repeat=repeat)
    return result, times
