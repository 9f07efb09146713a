"""Runs a call on the emulator and records a window of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._adapters import calls
from .._compiler.demangle import demangled, shortened
from .._compiler.shared_arrays import declared
from .._trace import hazards
from .._trace.launch import Blocks, Launch, block_numbers, launch_of
from .._trace.rows import base_name
from .._variants.registry import kernel_file
from .recording import joined, split

STEPS = 200_000
MAX_BYTES = 256 << 20
_OPERANDS = {"gemm": ("a", "b"), "transpose": ("a",), "probe": ("x",)}


class Job(NamedTuple):
    """A call that can be run again: its arrays are copies, which no run changes."""

    what: str | _core.Kernel
    args: tuple[Any, ...]
    options: dict[str, Any]
    launch: Launch
    names: tuple[str, ...]  # of the arguments in messages
    numbers: tuple[int, ...] | None  # of the parameters' arguments; None: an operation
    values: tuple[object, ...]
    blocks: NDArray[np.uint64] | None  # to run; None: all
    recorded: NDArray[np.uint64] | None  # of these, to record; None: all
    warps: NDArray[np.uint32] | None
    equal_writes: bool = False


class Window(NamedTuple):
    first: int = 0
    steps: int = STEPS
    max_bytes: int = MAX_BYTES


# ---- the call ----


def _root(array: NDArray[Any]) -> NDArray[Any]:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def copied(value: Any, roots: dict[int, Any]) -> Any:
    """Arrays, also in structs, with memory of their own; those that share memory still do."""
    if type(value) is tuple:
        return tuple(copied(one, roots) for one in value)
    if not isinstance(value, np.ndarray) or type(value) is not np.ndarray:
        return value
    root = _root(value)
    if not (root.flags.c_contiguous or root.flags.f_contiguous) or root.dtype.hasobject:
        return value.copy()
    if id(root) not in roots:
        roots[id(root)] = (root, root.copy(order="A"))
    own = roots[id(root)][1].reshape(-1, order="A").view(np.uint8)
    at = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    made = np.ndarray(value.shape, value.dtype, own, at, value.strides)
    made.flags.writeable = value.flags.writeable
    return made


def _waits_for_grid(what: Any, options: dict[str, Any]) -> bool:
    """Whether all blocks of the launch have to run together."""
    kernel = isinstance(what, _core.Kernel)
    return bool(options.get("cooperative")) or (kernel and "%envreg" in what.ptx)


def _warp_numbers(warps: int | Sequence[int] | None) -> NDArray[np.uint32] | None:
    if warps is None:
        return None
    given = np.atleast_1d(np.asarray(warps))
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise TypeError(f"warps should be an int or a list of ints, not {warps!r}")
    if not given.size or given.min() < 0 or given.max() >= 32:
        raise ValueError(f"warps={warps!r}: a block has warps 0 to 31, and one has to be chosen")
    return np.unique(given).astype(np.uint32)


def job_of(
    what: Any,
    args: tuple[Any, ...],
    options: dict[str, Any],
    blocks: Blocks | None,
    warps: int | Sequence[int] | None,
    equal_writes: bool,
) -> Job:
    """The call as a job. Raises what the call itself would raise."""
    __tracebackhide__ = True
    call = None
    if not isinstance(what, str) or calls.is_source(what):
        call = calls.adapt(what, args, options)
        what, args, options = call.kernel, call.args, call.options
    launch = launch_of(what, args, options)
    if call is not None and call.sources is not None:
        launch = launch._replace(sources=call.sources)
    roots: dict[int, Any] = {}
    together = _waits_for_grid(what, options)
    chosen = block_numbers(1 if blocks is None else blocks, launch.grids)
    if call is None:
        named = (*_OPERANDS[what], "the result", "the workspace")
        values: tuple[object, ...] = (None,) * len(named)
    return Job(
        what,
        tuple(copied(one, roots) for one in args),
        {name: copied(one, roots) for name, one in options.items()},
        launch,
        named if call is None else call.names,
        None if call is None else call.numbers,
        values if call is None else call.values,
        None if together else chosen,
        chosen if together else None,
        _warp_numbers(warps),
        equal_writes,
    )


# ---- the header ----


def _text_of(launch: Launch, file: str) -> str | None:
    """The text of a source file that line information names."""
    name = base_name(file) or ""
    for known in (file, name):
        if known in launch.sources:
            return launch.sources[known]
    if launch.op == "Kernel":
        return launch.header_of(name) or None
    path = kernel_file(name)
    return path.read_text(encoding="utf-8") if path else None


def _ptx_of(job: Job) -> str | None:
    from pathlib import Path

    if isinstance(job.what, _core.Kernel):
        return job.what.ptx
    file = Path(_core.config()["images"], f"{job.launch.image}.ptx")
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _describe_arrays(header: dict[str, Any], job: Job, places: Any) -> None:
    """Names, types and shapes of the arguments' arrays."""
    if job.numbers is None:
        for name, array in zip(job.names, header["arrays"], strict=False):
            array["name"] = name
        given = [*job.args, *(None,) * len(header["arrays"])]
        for array, value in zip(header["arrays"], given, strict=False):
            if isinstance(value, np.ndarray):
                _describe_array(array, value, 0)
        return
    for argument, buffer, offset in reversed(places or ()):
        array = header["arrays"][buffer]
        value = job.args[2 + argument] if 2 + argument < len(job.args) else None
        number = job.numbers[argument] if argument < len(job.numbers) else -1
        array["name"] = job.names[number] if number >= 0 else None
        array["argument"] = argument
        if isinstance(value, np.ndarray):
            _describe_array(array, value, offset)


def _describe_array(array: dict[str, Any], value: NDArray[Any], offset: int) -> None:
    array["dtype"] = value.dtype.name
    array["shape"] = list(value.shape)
    array["strides"] = list(value.strides)
    array["offset"] = offset


def _describe_hazards(header: dict[str, Any], job: Job, raw: Sequence[tuple[Any, ...]]) -> None:
    if job.numbers is not None:
        raw = hazards.renumbered(raw, job.numbers)
    for described, one in zip(header["hazards"], raw, strict=True):
        found, benign = hazards.rows([one], job.names, job.values)
        row = (*found, *benign)[0]
        described["message"] = row.message
        described["cure"] = row.cure


def _complete(data: bytes, job: Job, raw: tuple[Any, ...], places: Any) -> bytes:
    header, sections = split(data)
    kernel = header["kernel"] or job.launch.kernel
    header["name"] = str(demangled(kernel)) if kernel.startswith("_Z") else kernel
    header["op"] = None if job.numbers is not None else job.what
    header["variant"] = job.launch.variant
    header["title"] = shortened(kernel)
    header["ptx"] = _ptx_of(job)
    for file in header["files"]:
        file["text"] = _text_of(job.launch, file["name"])
        file["name"] = base_name(file["name"])
    for variable in header["shared"]:
        name = variable["name"]
        variable["label"] = demangled(name).plain if name.startswith("_Z") else name
    _describe_arrays(header, job, places)
    _describe_hazards(header, job, raw[3])
    return joined(header, sections)


# ---- the run ----


def record(job: Job, window: Window = Window(), progress: Any = None) -> bytes:
    """Runs the job and returns its recording, with a complete header."""
    __tracebackhide__ = True
    sources = [text for name, text in job.launch.sources.items() if name]
    known = declared(_ptx_of(job) or "", sources)
    arrays = [(name, row.element, row.columns) for name, row in known.items()]
    _result, _times, raw, data, places = _core.observe(
        job.what,
        job.args,
        job.options,
        trace=True,
        hazards=True,
        equal_writes=job.equal_writes,
        blocks=job.blocks,
        progress=progress,
        recording=(*window, job.recorded, job.warps, arrays),
    )
    assert raw is not None and data is not None
    return _complete(data, job, raw, places)
