"""The launches of a call: their description in a trace, and the selection of blocks to run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core

Extent = tuple[int, int, int]
Blocks = int | slice | Sequence[int]


class Launch(NamedTuple):
    """The launches of one call."""

    kernel: str  # the entry's name
    op: str  # "gemm", "transpose", "probe", "Kernel"
    variant: str | None
    image: str | None  # with dtype and parameters: "gemm_tiled-float32-tile16-pad0"
    grids: tuple[Extent, ...]  # one per launch; most calls have one launch
    block: Extent
    sources: Mapping[str, str]  # of a Kernel: file name to text
    shared_bytes: int = 0  # per block, static and dynamic
    header_of: Callable[[str], str] = lambda _: ""  # of a Kernel: the text of a header of CUDA's

    @property
    def title(self) -> str:
        """The kernel's unmangled name, without namespaces and parameter types."""
        mangled = re.match(r"_ZN?(\d+\w+)", self.kernel)
        rest, name = mangled[1] if mangled else "", ""
        while length := re.match(r"\d+", rest):
            start = length.end()
            name, rest = rest[start : start + int(length[0])], rest[start + int(length[0]) :]
            if not self.kernel.startswith("_ZN"):
                break
        return name or self.kernel


def _extent(given: int | tuple[int, ...]) -> Extent:
    lengths = (given,) if isinstance(given, int) else tuple(given)
    x, y, z = (*lengths, 1, 1)[:3]
    return (int(x), int(y), int(z))


def launch_of(what: str | _core.Kernel, args: tuple[Any, ...], kw: dict[str, Any]) -> Launch:
    """The launches that a call would make. Raises what the call itself would raise."""
    __tracebackhide__ = True
    if isinstance(what, _core.Kernel):
        sources = {"": what.ptx, **what._origin.texts}
        try:
            grid, block = _extent(args[0]), _extent(args[1])
        except (IndexError, TypeError, ValueError):  # the call will raise for these
            grid = block = (1, 1, 1)
        return Launch(what.name, "Kernel", None, None, (grid,), block, sources)._replace(
            header_of=lambda name: what._origin.text_of(name, what.ptx) or ""
        )
    if kw.get("device") is not None:
        kw = kw | {"device": "emu"}  # the call itself refuses any other device
    plan = _core.plan(what, args, kw)
    launches = plan["launches"]
    block = launches[0]["block"] if launches else (0, 0, 0)
    grids = tuple(launch["grid"] for launch in launches)
    return Launch(plan["entry"], what, plan["variant"], plan["image"], grids, block, {})


def block_numbers(blocks: Blocks, grids: Sequence[Extent]) -> np.ndarray[Any, Any]:
    """The numbers of the selected blocks, ascending, counted through all launches of the call.

    Raises
    ------
    ValueError, TypeError
        If a block does not exist, or if no block is selected.
    """
    __tracebackhide__ = True
    total = sum(math.prod(grid) for grid in grids)
    if isinstance(blocks, tuple):
        if len(blocks) != 3:
            raise ValueError(
                f"blocks={blocks}: a tuple is one block (x, y, z); pass a list of numbers"
            )
        grid = grids[0] if grids else (0, 0, 0)
        if any(not 0 <= at < length for at, length in zip(blocks, grid, strict=True)):
            raise ValueError(f"blocks={blocks}: the grid is {grid}")
        x, y, z = blocks
        chosen = np.array([x + grid[0] * (y + grid[1] * z)])
    elif isinstance(blocks, slice):
        numbers = range(*blocks.indices(total))
        chosen = np.arange(numbers.start, numbers.stop, numbers.step)
    elif isinstance(blocks, (int, np.integer)):
        chosen = np.arange(min(int(blocks), total))
    else:
        chosen = np.asarray(blocks)
        if chosen.size and (chosen.ndim != 1 or chosen.dtype.kind not in "iu"):
            raise TypeError(
                f"blocks should be an int, a slice, (x, y, z) or a list of ints, not {blocks!r}"
            )
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < total:
            raise ValueError(f"blocks={blocks!r}: the grid has {total} blocks, counted from 0")
    if chosen.size == 0:
        raise ValueError(f"blocks={blocks!r} selects none of the grid's {total} blocks")
    return np.unique(chosen).astype(np.uint64)
