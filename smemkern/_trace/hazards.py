"""The hazards that a run found, as rows with messages; and checked calls of a Kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from os.path import basename
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from .. import _core
from .._compiler.demangle import demangled
from .._compiler.shared_arrays import Known
from .._compiler.wording import readable
from .._render.document import Listing, Node, Paragraph
from .._render.rows import Rows
from .._render.table import Cell
from .rows import base_name

if TYPE_CHECKING:
    from .observe import Trace

Place = tuple[int, int, int]


class Hazard(NamedTuple):
    """One hazard, with its first occurrence.

    `line` and `other_line` are the two conflicting accesses. `line` is the one that comes later in
    the program, `other_line` the earlier one.
    """

    kind: str  # "RAW", "WAR", "WAW", "uninitialised", "async-read", ... : docs/hazards.md
    line: int  # of the CUDA source, or of the PTX if that has no line information
    other_line: int | None
    block: Place
    threads: tuple[Place, ...]  # of line, and of other_line
    address: str | None  # "shared tile[33]", "argument 2, element (3, 5)"
    message: str
    file: str | None
    other_file: str | None
    other_block: Place  # differs from block if the accesses are of two blocks
    count: int  # type: ignore[assignment]   # occurrences: granules of memory, barriers, ...
    argument: int | None  # of the Kernel; counted from 0, without grid and block
    element: tuple[int, ...] | None  # of that argument
    # The call sites of inlined code, as (file, line), innermost first: of line, and of other_line.
    callers: tuple[tuple[str | None, int], ...] = ()
    other_callers: tuple[tuple[str | None, int], ...] = ()
    cure: str | None = None  # what would order the two accesses, or avoid the one


class Hazards(Rows[Hazard]):
    """The hazards of a run, shown as their messages."""

    __slots__ = ()

    def _nodes(self) -> Sequence[Node]:
        if not self:
            return [Paragraph("no hazards")]
        return [
            Listing([Cell(f"{at}. {row.message}", "bad") for at, row in enumerate(self, 1)]),
        ]


_SHUFFLES = ("shuffle", "shuffle-outside")
_OF_TWO_THREADS = ("barrier", "proxy", "exited", "cas-read", "proxy-init", "init-again")
_RACES = ("RAW", "WAR", "WAW")
_SPACE, _VARIABLE = 3, 8  # in a raw tuple


def rows(
    raw: Sequence[tuple[Any, ...]],
    names: Sequence[str],
    args: Sequence[object],
    arrays: Callable[[Iterable[str]], Known],
) -> tuple[Hazards, Hazards]:
    """Hazards, and benign findings, from _core's raw tuples.

    A hazard's argument number indexes `args` and `names`. arrays: what is known of arrays in shared
    memory with these names.
    """
    variables = {one[_VARIABLE] for one in raw if one[_VARIABLE] and one[_SPACE] == "shared"}
    known = arrays(variables) if variables else {}
    found = [_row(one, names, args, known) for one in raw]
    return (
        Hazards(row for row in found if row.kind not in _core.benign_kinds),
        Hazards(row for row in found if row.kind in _core.benign_kinds),
    )


def renumbered(raw: Sequence[tuple[Any, ...]], numbers: Sequence[int]) -> list[tuple[Any, ...]]:
    """Raw hazards with the numbers of the caller's arguments in place of the parameters'.

    A parameter that a library added, as scratch memory, has number -1, which stands for none.
    """
    at = 6
    return [(*one[:at], numbers[one[at]] if one[at] >= 0 else -1, *one[at + 1 :]) for one in raw]


def _row(
    raw: tuple[Any, ...],
    names: Sequence[str],
    args: Sequence[object],
    arrays: Known,
) -> Hazard:
    kind, party, other, space, offset, width, argument, at, variable, variable_at, count, fault = (
        raw
    )
    *whose, callers = party
    *others, other_callers = other
    file, line, _, text, block, thread = whose
    other_file, other_line, _, other_text, other_block, other_thread = others
    file, other_file = base_name(file), base_name(other_file)
    two = kind in _RACES or kind.startswith("async") or kind in _OF_TWO_THREADS
    element = None
    address = None
    if argument >= 0:
        element, inside = _element(args[argument] if argument < len(args) else None, at)
        address = f"{names[argument]}, {inside}"
    elif variable is not None:
        array = arrays.get(variable, (variable, 0, 0, 0, 0))
        address = f"{space} {_core.explain_element(array, variable_at, width, text)}"
    elif space is not None:
        address = f"{space} memory, byte {offset}"
    row = Hazard(
        kind=kind,
        line=line,
        other_line=other_line or None,
        block=block,
        threads=(thread, other_thread) if two else (thread,) if text else (),
        address=address,
        message=readable(fault or ""),
        file=file,
        other_file=other_file,
        other_block=other_block if two and other_text else block,
        count=count,
        argument=argument if argument >= 0 else None,
        element=element,
        callers=tuple((base_name(of), number) for of, number in callers),
        other_callers=tuple((base_name(of), number) for of, number in other_callers),
    )
    message, cure = _core.explain_hazard(
        kind,
        (file, *whose[1:]),
        (other_file, *others[1:]),
        space,
        count,
        row.message,
        address or "",
    )
    row = row._replace(cure=cure)
    if not fault or kind in _SHUFFLES:
        return row._replace(message=message)
    message = _FOLDERS.sub("", row.message)
    return row._replace(message=f"{message}; that is {address}" if argument >= 0 else message)


_FOLDERS = re.compile(r"(?<=\s)(?:/[^\s/:]+)*/(?=[^\s/:]+:\d)")  # the path in /path/kernel.cu:9


def _arrays_of(member: object) -> list[object]:
    """The arrays in a struct argument, which is a tuple."""
    if isinstance(member, tuple):
        return [array for one in member for array in _arrays_of(one)]
    return [member] if isinstance(member, np.ndarray) else []


def _element(array: object, at: int) -> tuple[tuple[int, ...] | None, str]:
    if isinstance(array, tuple) and (inside := _arrays_of(array)):
        if len(inside) > 1:  # the trace says which argument it is, not which member
            return None, f"byte {at} of one of its arrays"
        array = inside[0]
    if not isinstance(array, np.ndarray) or array.itemsize == 0:
        return None, f"byte {at}"
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        return _strided_element(array, at)
    index, rest = divmod(at, array.itemsize)
    if at < 0:
        return None, f"byte {at}, before its {array.nbytes} bytes"
    if index >= array.size:
        return None, f"byte {at}, past its {array.nbytes} bytes"
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    element = tuple(int(i) for i in np.unravel_index(index, array.shape, order))
    shown = element[0] if len(element) == 1 else element
    return element, f"element {shown}" + (f", byte {rest}" if rest else "")


def _strided_element(array: np.ndarray[Any, Any], at: int) -> tuple[tuple[int, ...] | None, str]:
    """The same of an array with gaps, as kernels take them that are given strides."""
    rest, element = at, [0] * array.ndim
    for axis in sorted(range(array.ndim), key=lambda axis: -array.strides[axis]):
        if array.shape[axis] > 1 and array.strides[axis] > 0:
            element[axis], rest = divmod(rest, array.strides[axis])
    fits = all(0 <= i < n for i, n in zip(element, array.shape, strict=True))
    if min(array.strides) < 0 or not fits or rest >= array.itemsize:
        return None, f"byte {at}"
    shown = element[0] if len(element) == 1 else tuple(element)
    return tuple(element), f"element {shown}" + (f", byte {rest}" if rest else "")


def place(file: str | None, line: int | None) -> str:
    """A line's location, without the file's folders."""
    return f"{basename(file)}:{line}" if file else f"PTX line {line}"


def report(hazards: Sequence[Hazard], entry: str) -> str:
    """All hazards as one text."""
    found = "1 hazard" if len(hazards) == 1 else f"{len(hazards)} hazards"
    lines = [f"kernel {demangled(entry).written}: {found}"]
    lines += [f"  {number}. {row.message}" for number, row in enumerate(hazards, 1)]
    return "\n".join(lines)


def error(trace: Trace, entry: str) -> _core.HazardError:
    """The exception for a trace with hazards; it has attributes .hazards and .trace."""
    raised = _core.HazardError(report(trace.hazards, entry))
    raised.hazards = trace.hazards
    raised.trace = trace
    return raised


def checked_call(kernel: _core.Kernel, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Calls a Kernel that has check=True: on the emulator with hazard detection, then on the GPU.

    The run on the GPU takes place only if `device` names one and no hazard was found.
    """
    __tracebackhide__ = True
    from .observe import _traced

    device = options.get("device")
    on_gpu = isinstance(device, str) and device != "emu"
    emulated = {**options, "device": "emu"}
    given = tuple(_copy(a) for a in args) if on_gpu else args
    trace = _traced(kernel, given, emulated, only_if_clean=True)
    if trace.hazards:
        raise error(trace, kernel.name)
    if on_gpu:
        own = {name: given for name, given in options.items() if name != "max_instructions"}
        _core.observe(kernel, args, own)


def _copy(argument: object) -> object:
    """A copy of an array, so that the emulator's run does not change the caller's."""
    return argument.copy() if isinstance(argument, np.ndarray) else argument
