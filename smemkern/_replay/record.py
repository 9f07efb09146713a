"""Runs a call on the emulator and records a window of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._compiler.debug_info import variables
from .._compiler.demangle import demangled, variable_name
from .._compiler.shared_arrays import known_arrays
from .._trace import hazards
from .._trace.again import Again, adapted, again
from .._trace.launch import Blocks, Launch, block_numbers
from .._trace.rows import base_name
from .._variants.registry import kernel_file
from .recording import joined, split

STEPS = 200_000
MAX_BYTES = 256 << 20


class Job(NamedTuple):
    """What to run, and what of it to record."""

    call: Again
    blocks: NDArray[np.uint64] | None  # to run; None: all
    recorded: NDArray[np.uint64] | None  # of these, to record; None: all
    warps: NDArray[np.uint32] | None


class Window(NamedTuple):
    first: int = 0
    steps: int = STEPS
    max_bytes: int = MAX_BYTES


# ---- the call ----


def _waits_for_grid(what: Any, options: dict[str, Any]) -> bool:
    """Whether all blocks of the launch have to run together."""
    kernel = isinstance(what, _core.Kernel)
    return bool(options.get("cooperative")) or (kernel and "%envreg" in what.ptx)


def _warp_numbers(warps: int | Sequence[int] | None) -> NDArray[np.uint32] | None:
    if warps is None:
        return None
    given = np.atleast_1d(np.asarray(warps, np.int64 if warps == [] else None))
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise TypeError(f"warps should be an int or a list of ints, not {warps!r}")
    if not given.size or given.min() < 0 or given.max() >= 32:
        raise ValueError(f"warps={warps!r}: a block has warps 0 to 31, and one has to be chosen")
    return np.unique(given).astype(np.uint32)


def call_of(
    what: Any, args: tuple[Any, ...], options: dict[str, Any], equal_writes: bool = False
) -> Again:
    """The call, with copies of its arrays. Raises what the call itself would raise."""
    __tracebackhide__ = True
    return again(*adapted(what, args, options), equal_writes)


def job_of(
    call: Again, blocks: Blocks | None = None, warps: int | Sequence[int] | None = None
) -> Job:
    """The job that records these blocks (None: the first one) and warps (None: all).

    Raises
    ------
    ValueError, TypeError
        If there is no such block or warp.
    """
    __tracebackhide__ = True
    chosen = block_numbers(1 if blocks is None else blocks, call.launch.grids)
    together = _waits_for_grid(call.what, call.options)
    return Job(
        call,
        None if together else chosen,
        chosen if together else None,
        _warp_numbers(warps),
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


def _ptx_of(call: Again) -> str | None:
    from pathlib import Path

    if isinstance(call.what, _core.Kernel):
        return call.what.ptx
    file = Path(_core.config()["images"], f"{call.launch.image}.ptx")
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _describe_arrays(header: dict[str, Any], call: Again, places: Any) -> None:
    """Names, types and shapes of the arguments' arrays."""
    if call.numbers is None:
        for name, array in zip(call.names, header["arrays"], strict=False):
            array["name"] = name
        given = [*call.args, *(None,) * len(header["arrays"])]
        for array, value in zip(header["arrays"], map(_array_of, given), strict=False):
            if isinstance(value, np.ndarray):
                _describe_array(array, value, 0)
        return
    for argument, buffer, offset in reversed(places or ()):
        array = header["arrays"][buffer]
        value = _array_of(call.args[2 + argument]) if 2 + argument < len(call.args) else None
        number = call.numbers[argument] if argument < len(call.numbers) else -1
        array["name"] = call.names[number] if number >= 0 else None
        array["argument"] = argument
        if isinstance(value, np.ndarray):
            _describe_array(array, value, offset)


def _array_of(value: Any) -> Any:
    return value.array if isinstance(value, _core.TensorMap) else value


def _describe_array(array: dict[str, Any], value: NDArray[Any], offset: int) -> None:
    array["dtype"] = value.dtype.name
    array["shape"] = list(value.shape)
    array["strides"] = list(value.strides)
    array["offset"] = offset


def _describe_hazards(header: dict[str, Any], call: Again, raw: Sequence[tuple[Any, ...]]) -> None:
    if call.numbers is not None:
        raw = hazards.renumbered(raw, call.numbers)
    arrays = known_arrays(_ptx_of(call), call.launch.sources)
    for described, one in zip(header["hazards"], raw, strict=True):
        found, benign = hazards.rows([one], call.names, call.values, lambda _: arrays)
        row = (*found, *benign)[0]
        described["message"] = row.message
        described["cure"] = row.cure


def _describe_locals(header: dict[str, Any], ptx: str | None) -> None:
    """The source's variables, with the numbers of the registers that have them."""
    header["locals"] = []
    functions = {of["name"]: number for number, of in enumerate(header["functions"])}
    for variable in variables(ptx or ""):
        number = functions.get(variable.function)
        if number is None:
            continue
        described = variable._asdict() | {"function": number}
        registers = _register_numbers(header, number)
        loaded = _loaded_parameters(header, number) if variable.parameter else {}
        described["places"] = [
            {
                "from": place.begin,
                "to": place.end,
                "register": registers.get(place.register or "", loaded.get(place.symbol or "")),
                "symbol": place.symbol,
                "offset": place.offset,
            }
            for place in variable.places
        ]
        header["locals"].append(described)


def _register_numbers(header: dict[str, Any], function: int) -> dict[str, int]:
    of = header["functions"][function]
    first = of["first_register"]
    return {
        header["registers"][number]["name"]: number
        for number in range(first, first + of["registers"])
    }


def _loaded_parameters(header: dict[str, Any], function: int) -> dict[str, int]:
    """The register into which a parameter is loaded, by the parameter's name in the PTX."""
    of = header["functions"][function]
    found: dict[str, int] = {}
    for number in range(of["first_instruction"], of["first_instruction"] + of["instructions"]):
        one = header["instructions"][number]
        if one["opcode"] == "ld" and len(one["writes"]) == 1 and "[" in one["text"]:
            found.setdefault(one["text"].partition("[")[2].rstrip("] "), one["writes"][0])
    return found


def _complete(data: bytes, call: Again, raw: tuple[Any, ...], places: Any) -> bytes:
    header, sections = split(data)
    kernel = header["kernel"] or call.launch.kernel
    header["name"] = demangled(kernel).written if kernel.startswith("_Z") else kernel
    header["op"] = None if call.numbers is not None else call.what
    header["variant"] = call.launch.variant
    header["title"] = call.launch.title
    header["ptx"] = _ptx_of(call)
    for file in header["files"]:
        file["text"] = _text_of(call.launch, file["name"])
        file["name"] = base_name(file["name"])
    for variable in header["shared"]:
        variable["label"] = variable_name(variable["name"])
    _describe_locals(header, header["ptx"])
    _describe_arrays(header, call, places)
    _describe_hazards(header, call, raw[3])
    return joined(header, sections)


# ---- the run ----


def record(job: Job, window: Window, progress: Any = None) -> bytes:
    """Runs the job and returns its recording, with a complete header."""
    __tracebackhide__ = True
    call = job.call
    known = known_arrays(_ptx_of(call), call.launch.sources)
    arrays = [(name, *shape[:2]) for name, _, _, *shape in known.values() if shape[0]]
    _result, _times, raw, data, places = _core.observe(
        call.what,
        call.args,
        call.options,
        trace=True,
        hazards=True,
        equal_writes=call.equal_writes,
        blocks=job.blocks,
        progress=progress,
        recording=(*window, job.recorded, job.warps, arrays),
    )
    assert raw is not None and data is not None
    return _complete(data, call, raw, places)
