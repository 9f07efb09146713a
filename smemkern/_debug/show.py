"""The debugger's output: lines of at most 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._replay.recording import LANES, UNINITIALIZED
from .expressions import Array, Cell, Scope
from .frames import frames
from .lanes import lane_states
from .machine import Access, Machine, Place, lanes_of
from .session import Session

WIDTH = 80
_MAX_ROWS, _MAX_COLUMNS = 32, 16
_BANKS, _BANK_LINES = 32, 16


def wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def cut(text: str, width: int = WIDTH) -> str:
    text = text.expandtabs(8)
    return text if len(text) <= width else text[: width - 3] + "..."


def xyz(at: Sequence[int]) -> str:
    return f"({','.join(map(str, at))})"


def runs(numbers: Sequence[int]) -> str:
    """0-3, 7"""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] + 1 == number:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in found) or "none"


def lanes_named(lanes: list[int]) -> str:
    return f"{'lane' if len(lanes) == 1 else 'lanes'} {runs(lanes)}"


def warp_named(machine: Machine, warp: int) -> str:
    block = machine.block_of(warp)
    return f"block {xyz(block['index'])} warp {machine.header['warps'][warp]['warp']}"


# ---- where ----


def source_line(machine: Machine, place: Place) -> str:
    lines = machine.text_of(place.file)
    text = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    return cut(f"{place.line}\t{text}".rstrip())


def where(session: Session, with_instruction: bool) -> list[str]:
    """The warp in focus, its line and its instruction."""
    machine, at = session.machine, session.at
    if at is None:
        return [f"{warp_named(machine, session.warp)} has ended (step {session.step})"]
    place = machine.place(at)
    function = frames(machine, at)[0].function
    lanes = lanes_named(lanes_of(machine.active(at)))
    step = f"step {at} of {machine.header['total']}"
    lines = wrapped(
        f"{function} () at {place}, {warp_named(machine, session.warp)}, {lanes}, {step}"
    )
    if place.file is not None:
        lines.append(source_line(machine, place))
    if with_instruction or place.file is None:
        lines.append(instruction_line(machine, at))
    return lines


def instruction_line(machine: Machine, step: int) -> str:
    return cut(f"=> {' '.join(machine.instruction(step)['text'].split())}")


def listing(session: Session, file: str | None, low: int, high: int) -> list[str]:
    machine = session.machine
    text = machine.text_of(file)
    here = session.current()
    marked = {(file, here[1])} if here[0] == file else set()
    return [
        cut(f"{number}{'>' if (file, number) in marked else ''}\t{text[number - 1]}".rstrip())
        for number in range(max(low, 1), min(high, len(text)) + 1)
    ]


def backtrace(session: Session) -> list[str]:
    at = session.need_at()
    return [
        cut(f"#{number:<3}{frame.function} () at {frame.place}")
        if frame.function != "inlined code"
        else cut(f"#{number:<3}inlined code at {frame.place}")
        for number, frame in enumerate(frames(session.machine, at))
    ]


# ---- values ----


def number(value: Any, form: str = "") -> str:
    """In gdb's formats: x, d, u, t, f; by type without one."""
    if form == "f" and value.dtype.kind in "iu":
        value = value.view(f"f{value.dtype.itemsize}") if value.dtype.itemsize > 1 else value
    if form in ("x", "t", "d", "u") and value.dtype.kind == "f":
        value = value.view(f"u{value.dtype.itemsize}")
    if form in ("x", "t", "u", "d") and value.dtype.kind in "iu":
        kind = "i" if form == "d" else "u"
        whole = int(value.astype(f"{kind}{value.dtype.itemsize}"))
        return f"{whole:#x}" if form == "x" else f"{whole:b}" if form == "t" else str(whole)
    if value.dtype.kind == "b":
        return "true" if value else "false"
    return f"{value:.7g}" if value.dtype.kind == "f" else str(value)


def lane_table(values: NDArray[Any], lanes: Sequence[int], form: str) -> list[str]:
    """Values by lane, as many in a row as fit."""
    texts = [number(values[lane], form) for lane in lanes]
    width = max(map(len, texts), default=1) + 2
    fitting = [n for n in (16, 8, 4, 2) if n * width + 10 <= WIDTH]
    per_row = fitting[0] if fitting else 1
    rows = []
    for first in range(0, len(texts), per_row):
        some = lanes[first : first + per_row]
        label = f"{some[0]}" if len(some) == 1 else f"{some[0]}-{some[-1]}"
        if list(some) != list(range(some[0], some[-1] + 1)):
            label = f"{some[0]},..{some[-1]}"
        rows.append(
            cut(f"  {label:>6}:" + "".join(t.rjust(width) for t in texts[first:][:per_row]))
        )
    return rows


def value_lines(session: Session, values: NDArray[Any], form: str, prefix: str) -> list[str]:
    """One number if all lanes in focus have the same one, else a table."""
    if session.lane is not None and values.ndim:
        return [prefix + number(values[session.lane], form)]
    at = session.at
    lanes = lanes_of(session.machine.active(at)) if at is not None else list(range(LANES))
    if not values.ndim:
        return [prefix + number(values[()], form)]
    shown = values[lanes]
    if len({one.tobytes() for one in shown}) == 1:
        return [prefix + number(shown[0], form) + ("" if len(lanes) == 1 else " in all lanes")]
    return [f"{prefix}by lane", *lane_table(values, lanes, form)]


def element_text(scope: Scope, cell: Cell) -> str:
    if not is_written(scope, cell.array, cell.offsets[None])[0]:
        return "- (never written)"
    return number(scope.load(cell)[()])


def cell_lines(session: Session, scope: Scope, cell: Cell, form: str, prefix: str) -> list[str]:
    """An element, and who wrote it; elements by lane."""
    offsets = cell.offsets
    if session.lane is not None and offsets.ndim:
        offsets = offsets[session.lane]
    values = scope.load(Cell(cell.array, offsets))
    if offsets.ndim:
        return value_lines(session, values, form, prefix)
    if not is_written(scope, cell.array, offsets[None])[0]:
        return [f"{prefix}- (never written)"]
    text = prefix + number(values[()], form)
    writer = scope.machine.writer(cell.array.memory, int(offsets), scope.step)
    if writer is None or writer.warp is None:
        return [text]
    who = f"written by {warp_named(scope.machine, writer.warp)} lane {writer.lane}"
    when = "" if writer.step is None else f", step {writer.step}"
    at = "" if writer.instruction is None else f", {scope.machine.places[writer.instruction]}"
    return wrapped(f"{text} ({who}{when}{at})")


def array_lines(scope: Scope, array: Array, first: tuple[int, ...], form: str) -> list[str]:
    """The elements of an array, or of a row of it."""
    shape, strides = array.shape[len(first) :], array.strides[len(first) :]
    offset = array.offset + sum(i * s for i, s in zip(first, array.strides, strict=False))
    shape = tuple(min(n, _MAX_ROWS if k < len(shape) - 1 else n) for k, n in enumerate(shape))
    rows = np.ndindex(shape[:-1])
    lines: list[str] = []
    for row in list(rows)[:_MAX_ROWS]:
        at = offset + sum(i * s for i, s in zip(row, strides, strict=False))
        lines += _row_lines(scope, array, (*first, *row), at, shape[-1], strides[-1], form)
        if len(lines) > _MAX_ROWS:
            return [*lines[:_MAX_ROWS], "  ... (print one row or element)"]
    return lines


def _row_lines(
    scope: Scope, array: Array, row: tuple[int, ...], at: int, n: int, stride: int, form: str
) -> Iterator[str]:
    n = min(n, 64 * _MAX_COLUMNS)
    offsets = at + stride * np.arange(n)
    values = scope.load(Cell(array, offsets))
    written = is_written(scope, array, offsets)
    texts = [number(v, form) if w else "-" for v, w in zip(values, written, strict=True)]
    width = max(map(len, texts), default=1) + 1
    name = array.name + "".join(f"[{i}]" for i in row)
    label = len(f"{name}[{n}]") + 3
    per_row = max(1, min(_MAX_COLUMNS, (WIDTH - label) // width))
    for first in range(0, n, per_row):
        some = "".join(text.rjust(width) for text in texts[first : first + per_row])
        yield cut(f"  {f'{name}[{first}]':<{label - 2}}{some}")


def is_written(scope: Scope, array: Array, offsets: NDArray[np.int64]) -> list[bool]:
    """False: shared memory that no thread has written."""
    machine = scope.machine
    if machine.header["memories"][array.memory]["kind"] != "shared":
        return [True] * len(offsets)
    words = machine.words(array.memory, scope.step)[offsets // 4]
    return [
        int(word) != UNINITIALIZED or machine.writer(array.memory, offset, scope.step) is not None
        for word, offset in zip(words, offsets.tolist(), strict=True)
    ]


# ---- accesses ----


def access_head(machine: Machine, access: Access) -> str:
    what = f"{access.op} of {access.width} byte{'s' * (access.width != 1)}"
    text = f"{what} by {lanes_named(access.lanes)} in {access.space} memory"
    unit = {"shared": "wavefront", "global": "sector"}.get(access.space)
    if unit and (cost := access.wavefronts):
        text += f": {cost} {unit}{'s' * (cost != 1)}, ideal {access.ideal}"
    return text


def banks(machine: Machine, access: Access) -> list[str]:
    """Wavefront by wavefront, which lane each bank serves; "+": more lanes of the same word."""
    lines: list[str] = []
    last = int(access.wavefront_index.max(initial=0))
    is_shared, wave = False, 0
    while wave <= last and len(lines) < _BANK_LINES:
        served: dict[int, list[int]] = {}
        for lane in access.lanes:
            if access.wavefront_index[lane] == wave:
                for bank in lane_banks(access, lane):
                    served.setdefault(bank, []).append(lane)
        lines += _wave_lines(wave, served)
        is_shared |= any(len(lanes) > 1 for lanes in served.values())
        wave += 1
    if wave <= last:
        more = last + 1 - wave
        lines.append(f"... and {more} more wavefront{'s' * (more != 1)}")
    head = f"{'':<9}{'banks':<6}  the lane that each bank serves"
    note = ["+: and other lanes with the same word"] if is_shared else []
    return [head, *lines, *note]


def _wave_lines(wave: int, served: dict[int, list[int]]) -> list[str]:
    """Banks 0 to 15 and 16 to 31, if they serve a lane."""
    lines: list[str] = []
    for half in (range(16), range(16, _BANKS)):
        if any(bank in served for bank in half):
            cells = [_bank_cell(served.get(bank, [])) for bank in half]
            label = "" if lines else f"wave {wave}"
            lines.append(f"{label:<9}{half.start:>2}-{half.stop - 1:<3}{''.join(cells)}")
    return lines


def lane_banks(access: Access, lane: int) -> range:
    first = int(access.addresses[lane]) // 4
    return range(first % _BANKS, first % _BANKS + max(access.width // 4, 1))


def _bank_cell(lanes: list[int]) -> str:
    if not lanes:
        return "   ."
    return f"{lanes[0]}+".rjust(4) if len(lanes) > 1 else f"{lanes[0]}".rjust(4)


def access_table(machine: Machine, access: Access) -> list[str]:
    """Lane, address, bank and wavefront, in two columns of lanes."""
    cells = []
    for lane in access.lanes:
        address = int(access.addresses[lane])
        cell = f"{lane:>4} {address:#x}"
        if access.space == "shared":
            of = lane_banks(access, lane)
            bank = f"{of[0]}" if len(of) == 1 else f"{of[0]}-{of[-1]}"
            wave = access.wavefront_index[lane]
            cell = f"{lane:>4} {address:#8x} {address // 4:>6} {bank:>6} {wave:>5}"
        cells.append(cell)
    shared = f"{'lane':>4} {'byte':>8} {'word':>6} {'bank':>6} {'wave':>5}"
    head = shared if access.space == "shared" else "lane address"
    half = -(-len(cells) // 2)
    both = [
        f"{left:<39}{right}".rstrip()
        for left, right in zip(cells[:half], [*cells[half:], ""], strict=False)
    ]
    return [f"{head:<39}{head if len(cells) > 1 else ''}".rstrip(), *both]


# ---- lanes and warps ----


def lane_lines(session: Session) -> list[str]:
    """The lanes of the warp in groups that are in the same state at the same place."""
    machine = session.machine
    groups: dict[tuple[str, str], int] = {}
    for lane, state in enumerate(lane_states(machine, session.warp, session.step)):
        key = state.what, "" if state.place is None else str(state.place)
        groups[key] = groups.get(key, 0) | 1 << lane
    lines = [f"{'lanes':<18}{'state':<26}at"]
    for (what, place), mask in groups.items():
        lines.append(cut(f"{runs(lanes_of(mask)):<18}{what:<26}{place}".rstrip()))
    return lines


def warp_lines(session: Session) -> list[str]:
    machine = session.machine
    lines = [f"  {'Id':<4}{'block':<12}{'warp':<6}{'lanes':<16}{'state':<20}at"]
    for warp, one in enumerate(machine.header["warps"]):
        if not one["recorded"]:
            continue
        states = lane_states(machine, warp, session.step)
        now = next((s for s in states if s.is_active), None) or states[0]
        present = [s for s in states if s.what != "no thread"] or states
        left = [lane for lane, s in enumerate(states) if s.is_active]
        what = now.what if now.is_active else present[0].what
        mark = "*" if warp == session.warp else " "
        block = xyz(machine.block_of(warp)["index"])
        place = "" if now.place is None else str(now.place)
        lines.append(
            cut(f"{mark} {warp:<4}{block:<12}{one['warp']:<6}{runs(left):<16}{what:<20}{place}")
        )
    return [line.rstrip() for line in lines]
