"""Registers, arrays, barriers, hazards and explanations of the current step, as lines of text."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from . import show
from .expressions import Array, Cell, Scope, Wrong
from .lanes import lane_states, waiting_at_barriers
from .machine import READS, Access, Machine, lanes_of
from .session import Session

Lines = list[str]


def register_lines(session: Session, text: str) -> Lines:
    """The registers of the current function, or those that are named."""
    scope, header = session.scope, session.machine.header
    names = text.split()
    lines: Lines = []
    for index, register in enumerate(header["registers"]):
        name = register["name"]
        if names and name not in names and name[1:] not in [one.lstrip("%$") for one in names]:
            continue
        if not scope.is_of_function(index):
            continue
        try:
            values = scope.register_value(index)
        except Wrong:
            continue
        lines += show.value_lines(session, values, "", f"{name:<8}{register['type']:<6}")
    if not lines:
        raise Wrong("no such register has been written" if names else "no register is written yet")
    return lines


def local_lines(session: Session) -> Lines:
    variables = session.machine.variables(session.warp, session.step)
    lines: Lines = []
    arrays = {array.name for array in session.scope.arrays()}  # info shared lists these
    for name, values in variables.items():
        if name in arrays:
            continue
        if values.ndim == 1:
            lines += show.value_lines(session, values, "", f"{name} = ")
        else:
            lines.append(show.cut(f"{name}{''.join(f'[{n}]' for n in values.shape[1:])}"))
    return lines or ["No variables: they need a kernel compiled with -G."]


def shared_lines(session: Session) -> Lines:
    scope, lines = session.scope, []
    for array in scope.arrays():
        kind = session.machine.header["memories"][array.memory]["kind"]
        shape = "".join(f"[{n}]" for n in array.shape)
        where = f"byte {array.offset}" if kind == "shared" else "global memory"
        lines.append(show.cut(f"{kind:<8}{array.dtype.name:<9}{array.name}{shape}, at {where}"))
    return lines or ["No arrays."]


def barrier_lines(session: Session) -> Lines:
    """Who waits at which barrier of the block in focus, and who does not yet."""
    machine = session.machine
    block = machine.header["warps"][session.warp]["block"]
    waiting: dict[int, list[str]] = {}
    others: Lines = []
    for warp, one in enumerate(machine.header["warps"]):
        if one["block"] != block or not one["recorded"]:
            continue
        at = waiting_at_barriers(machine, warp, session.step)
        for barrier in sorted({number for number, _ in at.values()}):
            lanes = [lane for lane, (number, _) in at.items() if number == barrier]
            place = at[lanes[0]][1]
            text = f"warp {one['warp']} lanes {show.runs(lanes)} at {place}"
            waiting.setdefault(barrier, []).append(text)
        left = [
            lane
            for lane, state in enumerate(lane_states(machine, warp, session.step))
            if state.what in ("active", "waits for other lanes")
        ]
        if left:
            others.append(f"warp {one['warp']} lanes {show.runs(left)}")
    if not waiting:
        return ["No thread of the block waits at a barrier."]
    lines: Lines = []
    for barrier, who in waiting.items():
        lines.append(f"barrier {barrier}: waiting")
        lines += [show.cut(f"  {one}") for one in who]
    if others:
        lines.append("not there yet")
        lines += [show.cut(f"  {one}") for one in others]
    return lines


# ---- hazards ----


def _hazard(machine: Machine, number: int) -> dict[str, Any]:
    hazards = machine.header["hazards"]
    if not 1 <= number <= len(hazards):
        raise Wrong(f"there is no hazard {number}; info hazards lists them")
    found: dict[str, Any] = hazards[number - 1]
    return found


def hazard_lines(session: Session, number: int, short: bool = False) -> Lines:
    """The sentence, the steps of the accesses, and the cure."""
    hazard = _hazard(session.machine, number)
    note = "(benign) " if hazard["benign"] else ""
    lines = show.wrapped(f"{number}. {note}{hazard['message']}")
    steps = sorted({one["step"] for one in hazard["parties"] if one.get("step") is not None})
    if steps:
        lines.append(f"   step{'s' * (len(steps) > 1)} {' and '.join(map(str, steps))}")
    if not short and hazard.get("cure"):
        lines += show.wrapped(f"cure: {hazard['cure']}", "   ")
    return lines


def hazard_place(session: Session, number: int) -> tuple[Cell, str, int, int, str]:
    """(place, kind of watchpoint, warp, lane, description) of the access that ran first."""
    machine = session.machine
    hazard = _hazard(machine, number)
    parties = [one for one in hazard["parties"] if one.get("step") is not None]
    if not parties:
        raise Wrong(f"the accesses of hazard {number} are not in the recording")
    first = min(parties, key=lambda one: one["step"])
    where = machine.warp_of_thread(first["block"], first["thread"])
    cell = _cell_of(machine, hazard, where)
    if where is None or cell is None:
        raise Wrong(f"hazard {number} is not about an element of an array of the recording")
    warp, lane = where
    kind = "watch"
    if machine.first <= first["step"] < machine.end:
        ops = {access.op for access in machine.accesses(first["step"])}
        kind = "rwatch" if ops and ops <= READS - {"atomic"} else "watch"
    scope = Scope(machine, warp, first["step"])
    name = (
        scope.name_of(cell) if cell.array.name != "element" else f"the element of hazard {number}"
    )
    thread = show.xyz(first["thread"])
    return cell, kind, warp, lane, f"{name} by thread {thread}"


def _cell_of(machine: Machine, hazard: dict[str, Any], where: Any) -> Cell | None:
    if where is None or hazard.get("offset") is None:
        return None
    memory: int | None = None
    if hazard["space"] == "shared":
        memory = machine.block_of(where[0])["shared"]
    elif hazard.get("array") is not None:
        memory = next(
            (
                index
                for index, one in enumerate(machine.header["memories"])
                if one["kind"] == "array" and one["array"] == hazard["array"]
            ),
            None,
        )
    if memory is None:
        return None
    named = Scope(machine, where[0], machine.first).at_offset(memory, hazard["offset"])
    if named is not None:
        return named
    dtype = np.dtype({1: "u1", 2: "u2", 8: "u8"}.get(hazard["width"], "u4"))
    array = Array("element", memory, 0, dtype, (0,), (dtype.itemsize,))
    return Cell(array, np.asarray(hazard["offset"], np.int64))


# ---- explanations ----


def explanation(session: Session) -> Lines:
    """Words for each access of the current instruction, and for hazards that it is part of."""
    machine, at = session.machine, session.need_at()
    lines: Lines = []
    for access in machine.accesses(at):
        if access.space == "shared":
            lines += _access_words(machine, access)
        else:
            lines += show.wrapped(show.access_head(machine, access) + ".")
    for number, hazard in enumerate(machine.header["hazards"], 1):
        if at in [party.get("step") for party in hazard["parties"]]:
            lines += ["", *hazard_lines(session, number)]
    return lines or ["This instruction accesses no memory."]


def _access_words(machine: Machine, access: Access) -> Lines:
    """The words of the recording, or the same ones made here."""
    array = _array_of(machine, access)
    text = access.explanation or _core.explain_request(_request(access), _declared(array))
    lines = show.wrapped(text)
    if array is not None and access.wavefronts > access.ideal:
        layout = array.get("layout") or _layout(machine, array)
        lines += show.wrapped(f"{array['label']}: {layout}") if layout else []
    return lines


def _request(access: Access) -> tuple[Any, ...]:
    addresses = tuple(int(at) for at in access.addresses)
    mask = sum(1 << lane for lane in access.lanes)
    return access.op, addresses, mask, access.width, access.wavefronts, access.ideal


def _array_of(machine: Machine, access: Access) -> dict[str, Any] | None:
    """The shared array of the first lane's address."""
    at = int(access.addresses[access.lanes[0]])
    for one in machine.header["shared"]:
        if one["offset"] <= at < one["offset"] + one["bytes"]:
            found: dict[str, Any] = one
            return found
    return None


def _declared(array: dict[str, Any] | None) -> tuple[Any, ...] | None:
    if array is None:
        return None
    element, cols = array.get("element") or 0, array.get("cols") or 0
    return array["label"], array["offset"], array["bytes"], element, cols


_REQUESTS = 64  # that a layout is chosen for


def _layout(machine: Machine, array: dict[str, Any]) -> str | None:
    low, high = array["offset"], array["offset"] + array["bytes"]
    requests = machine.shared_requests(low, high, _REQUESTS)
    return _core.explain_layout([_request(one) for one in requests], _declared(array) or ())


__all__ = [
    "barrier_lines",
    "explanation",
    "hazard_lines",
    "hazard_place",
    "lanes_of",
    "register_lines",
    "shared_lines",
]
