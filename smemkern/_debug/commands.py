"""What the debugger's commands do; table.py names them.

Each function takes the session and the text after the command's name, and returns lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from . import show
from .expressions import Array, Cell, Scope, Wrong, tokens
from .session import Session, Stop
from .state import barrier_lines, hazard_lines, hazard_place, register_lines, shared_lines

Lines = list[str]


# ---- moving ----


def _stopped(session: Session, stop: Stop, with_instruction: bool = False) -> Lines:
    lines: Lines = []
    if stop.reason:
        lines += ["", *show.wrapped(stop.reason)]
    is_memory = stop.point is not None and stop.point.kind != "breakpoint"
    if stop.point is not None and stop.point.cell is not None:
        lines += _changes(session, stop)
    if session.is_at_end:
        return lines
    return lines + show.where(session, with_instruction or is_memory)


def _changes(session: Session, stop: Stop) -> Lines:
    """The element before the step, and after it."""
    assert stop.point is not None and stop.point.cell is not None
    cell, machine = stop.point.cell, session.machine
    try:
        before, after = (
            show.element_text(Scope(machine, session.warp, step), cell)
            for step in (session.step, session.step + 1)
        )
    except Wrong:  # its contents are not in the recording
        return []
    if stop.point.kind.startswith("read"):
        return [f"Value = {before}"]
    return [f"Old value = {before}", f"New value = {after}"]


def _repeat(text: str, move: Callable[[], Stop]) -> Stop:
    """Moves as often as the number says, unless something stops it before."""
    if text.strip() and not re.fullmatch(r"\d{1,9}", text.strip()):
        raise Wrong(f"expected a number, found {text.strip()!r}")
    stop = Stop()
    for _ in range(int(text or 1)):
        stop = move()
        if stop.reason:
            break
    return stop


def do_continue(session: Session, text: str, forward: bool) -> Lines:
    if not forward and session.step <= session.machine.first == 0:
        return ["", "No more reverse-execution history.", *show.where(session, False)]
    if forward and session.is_at_end:
        raise Wrong("the kernel has ended: reverse-continue goes back, run starts again")
    count = text.strip() or "1"
    if not re.fullmatch(r"\d{1,9}", count):
        raise Wrong(f"expected a number, found {count!r}")
    warp = session.warp
    stop = Stop()
    for _ in range(int(count)):
        stop = session.run(forward)
        if stop.point is None:
            break
    lines = _stopped(session, stop)
    if session.warp != warp and not session.is_at_end:
        lines.insert(0, f"[Switching to {show.warp_named(session.machine, session.warp)}]")
    return lines


def do_run(session: Session, text: str) -> Lines:
    _to_start(session)
    return do_continue(session, "", True)


def do_start(session: Session, text: str) -> Lines:
    _to_start(session)
    return show.where(session, False)


def _to_start(session: Session) -> None:
    if not session.has_step(0):
        raise Wrong("the recording does not begin at the kernel's start")
    session.go(session.machine.first)
    session.is_fresh = True


def do_steps(forward: bool, over_calls: bool) -> Callable[[Session, str], Lines]:
    def run(session: Session, text: str) -> Lines:
        def move() -> Stop:
            return session.line_forward(over_calls) if forward else session.line_back(over_calls)

        return _stopped(session, _repeat(text, move))

    return run


def do_stepi(forward: bool) -> Callable[[Session, str], Lines]:
    return lambda session, text: _stopped(
        session, _repeat(text, lambda: session.instruction(forward)), True
    )


def do_finish(forward: bool) -> Callable[[Session, str], Lines]:
    return lambda session, text: _stopped(session, session.finish(forward))


def do_advance(forward: bool) -> Callable[[Session, str], Lines]:
    def run(session: Session, text: str) -> Lines:
        if not text.strip():
            raise Wrong("advance needs a place: a line, or conflict [N], hazard [N], barrier")
        first = text.split()[0]
        is_event = first in ("conflict", "hazard", "barrier", "exit")
        point = session.add_catch(text) if is_event else session.add_break(text)
        point.is_temporary = True
        session.numbered -= 1
        try:
            stop = session.run(forward)
        finally:
            session.points = [one for one in session.points if one is not point]
        if stop.point is not point:
            return _stopped(session, stop)
        return _stopped(session, Stop(point.what if is_event else "", point if is_event else None))

    return run


def do_goto(session: Session, text: str) -> Lines:
    machine, where = session.machine, text.strip()
    names = {"begin": 0, "start": 0, "end": machine.header["total"]}
    if where not in names and not re.fullmatch(r"\d{1,18}", where):
        raise Wrong("goto needs a step: a number, begin or end")
    step = names[where] if where in names else int(where)
    if step > machine.header["total"]:
        raise Wrong(f"the run has {machine.header['total']} steps")
    if not session.has_step(step):
        raise Wrong(f"the recording has steps {machine.first} to {machine.end}")
    session.go(step)
    session.is_fresh = step == 0
    return ["[The kernel has ended.]"] if session.is_at_end else show.where(session, True)


# ---- points ----


def _split_condition(text: str) -> tuple[str, str | None]:
    where, found, condition = re.fullmatch(r"(.*?)(?:(?:^|\s)(if)\b(.*))?", text, re.S).groups()  # type: ignore[union-attr]
    if found and not condition.strip():
        raise Wrong("expected an expression after if")
    if condition:
        tokens(condition)
    return where.strip(), condition.strip() if condition else None


def do_break(is_temporary: bool) -> Callable[[Session, str], Lines]:
    def run(session: Session, text: str) -> Lines:
        where, condition = _split_condition(text)
        point = session.add_break(where)
        point.condition, point.is_temporary = condition, is_temporary
        name = "Temporary breakpoint" if is_temporary else "Breakpoint"
        return [f"{name} {point.number} at {point.what}"]

    return run


def do_watch(name: str) -> Callable[[Session, str], Lines]:
    def run(session: Session, text: str) -> Lines:
        where, condition = _split_condition(text)
        if not where:
            raise Wrong(f"{name} needs an element, such as tile[3][4], or hazard N")
        if found := re.fullmatch(r"hazard\s+(\d{1,6})", where):
            cell, kind, warp, lane, what = hazard_place(session, int(found[1]))
            point = session.add_watch(kind, what, cell, warp, lane)
        else:
            point = session.add_watch(name, where, session.scope.cell(where))
        point.condition = condition
        return show.wrapped(f"{point.title()}: {point.what}")

    return run


def do_catch(session: Session, text: str) -> Lines:
    where, condition = _split_condition(text)
    point = session.add_catch(where)
    point.condition = condition
    return [f"Catchpoint {point.number} ({point.what})"]


def _numbers(session: Session, text: str) -> list[int]:
    found = []
    for word in text.split():
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", word)
        if not match:
            raise Wrong(f"expected the number of a breakpoint, found {word!r}")
        low, high = int(match[1]), int(match[2] or match[1])
        numbers = [p.number for p in session.points if low <= p.number <= high]
        if not numbers:
            raise Wrong(f"there is no breakpoint number {word}")
        found += numbers
    return found


def do_delete(session: Session, text: str) -> Lines:
    chosen = _numbers(session, text) if text.strip() else [p.number for p in session.points]
    session.points = [point for point in session.points if point.number not in chosen]
    return []


def do_enable(is_enabled: bool) -> Callable[[Session, str], Lines]:
    def run(session: Session, text: str) -> Lines:
        chosen = _numbers(session, text) if text.strip() else [p.number for p in session.points]
        for number in chosen:
            session.point(number).is_enabled = is_enabled
        return []

    return run


def do_condition(session: Session, text: str) -> Lines:
    number, _, condition = text.strip().partition(" ")
    point = session.point(_numbers(session, number)[0]) if number else None
    if point is None:
        raise Wrong("condition needs the number of a breakpoint")
    if condition.strip():
        tokens(condition)
    point.condition = condition.strip() or None
    return [] if point.condition else [f"Breakpoint {point.number} now unconditional."]


# ---- looking ----


def do_print(session: Session, text: str) -> Lines:
    form = ""
    if found := re.match(r"\s*/([xdutf])\s", text + " "):
        form, text = found[1], text[found.end() :]
    if not text.strip():
        raise Wrong("print needs an expression, such as %r1, threadIdx.x or tile[3][4]")
    scope = session.scope
    row = _row_of(scope, text)
    session.values.append(text)
    prefix = f"${len(session.values)} = "
    if row:
        return [f"{prefix}{text.strip()}", *show.array_lines(scope, *row, form)]
    result = scope.evaluated(text)
    if isinstance(result, Cell):
        return show.cell_lines(session, scope, result, form, prefix)
    return show.value_lines(session, result, form, prefix)


def _row_of(scope: Scope, text: str) -> tuple[Array, tuple[int, ...]] | None:
    """An array without all of its indices."""
    found = re.fullmatch(r"\s*([A-Za-z_]\w*)((?:\[\d{1,9}\])*)\s*", text)
    array = next((one for one in scope.arrays() if found and one.name == found[1]), None)
    if array is None or found is None:
        return None
    first = tuple(int(one) for one in re.findall(r"\d+", found[2]))
    if len(first) >= len(array.shape):
        return None
    for index, length in zip(first, array.shape, strict=False):
        if length and index >= length:
            raise Wrong(f"an index of {array.name} is outside 0 to {length - 1}")
    return array, first


def do_list(session: Session, text: str) -> Lines:
    file, line = session.current()
    words = text.strip()
    if found := re.fullmatch(r"(\d{1,9})\s*,\s*(\d{1,9})", words):
        low, high = int(found[1]), int(found[2])
    elif found := re.fullmatch(r"(?:([^:]+):)?(\d{1,9})", words):
        if found[1]:
            files = session.machine.files_named(found[1])
            if not files:
                raise Wrong(f"no source file named {found[1]}")
            file = files[0]
        low = int(found[2]) - 5
        high = low + 9
    elif not words:
        low, high = line - 5, line + 4
    else:
        raise Wrong("list needs a line, FILE:LINE, or two lines: list 5, 20")
    found_lines = show.listing(session, file, low, high)
    if not found_lines:
        raise Wrong("the source has no such lines, or is not in the recording")
    return found_lines


def do_backtrace(session: Session, text: str) -> Lines:
    return show.backtrace(session)


def _each_access(session: Session, form: Callable[..., Lines], only_shared: bool) -> Lines:
    machine = session.machine
    accesses = machine.accesses(session.need_at())
    lines: Lines = []
    for access in accesses:
        if access.space == "shared" or not only_shared:
            lines += [*show.wrapped(show.access_head(machine, access)), *form(machine, access)]
    return lines


def do_lanes(session: Session, text: str) -> Lines:
    return show.lane_lines(session) + (
        _each_access(session, show.access_table, False) if session.at is not None else []
    )


def do_banks(session: Session, text: str) -> Lines:
    lines = _each_access(session, show.banks, True)
    return lines or ["this instruction does not access shared memory: advance conflict"]


def do_explain(session: Session, text: str) -> Lines:
    if found := re.fullmatch(r"\s*hazard\s+(\d{1,6})\s*", text):
        return hazard_lines(session, int(found[1]))
    if text.strip():
        raise Wrong("explain takes no argument, or hazard N")
    if not session.machine.count:
        raise Wrong("nothing has run: the launch was refused; info hazards says why")
    from .state import explanation

    return explanation(session)


def do_warp(session: Session, text: str) -> Lines:
    number = text.strip()
    if not number:
        return [f"[Current warp is {session.warp}: {_focus(session)}]"]
    warps = session.machine.header["warps"]
    if not number.isdigit() or int(number) >= len(warps) or not warps[int(number)]["recorded"]:
        raise Wrong(f"there is no warp {number} in the recording; info warps lists them")
    session.warp = int(number)
    return [f"[Switching to {_focus(session)}]", *show.where(session, False)]


def _focus(session: Session) -> str:
    lane = "" if session.lane is None else f" lane {session.lane}"
    return show.warp_named(session.machine, session.warp) + lane


def do_block(session: Session, text: str) -> Lines:
    words = text.replace(",", " ").replace("(", " ").replace(")", " ").split()
    blocks = session.machine.header["blocks"]
    if not words:
        return [f"[Current block is {show.xyz(session.machine.block_of(session.warp)['index'])}]"]
    if not all(word.isdigit() for word in words):
        raise Wrong("block needs a number, or x,y,z")
    wanted = [int(word) for word in words]
    index = wanted + [0] * (3 - len(wanted))
    for warp, one in enumerate(session.machine.header["warps"]):
        of = blocks[one["block"]]
        is_it = of["number"] == wanted[0] if len(wanted) == 1 else list(of["index"]) == index
        if one["recorded"] and is_it:
            return do_warp(session, str(warp))
    raise Wrong(f"there is no block {text.strip()} in the recording; info warps lists them")


def do_lane(session: Session, text: str) -> Lines:
    word = text.strip()
    if word == "all":
        session.lane = None
        return ["[All lanes]"]
    if not word.isdigit() or int(word) > 31:
        raise Wrong("lane needs a number from 0 to 31, or all")
    session.lane = int(word)
    thread = show.xyz(session.machine.thread(session.warp, session.lane))
    return [f"[Switching to {_focus(session)}, thread {thread}]"]


# ---- info ----


def _info_points(session: Session, text: str) -> Lines:
    if not session.points:
        return ["No breakpoints, watchpoints or catchpoints."]
    lines = [f"{'Num':<4}{'Type':<18}{'Enb':<4}What"]
    for p in session.points:
        lines.append(show.cut(f"{p.number:<4}{p.kind:<18}{'ny'[p.is_enabled]:<4}{p.what}"))
        if p.condition:
            lines.append(show.cut(f"{'':<26}stop only if {p.condition}"))
        if p.hits:
            times = "time" if p.hits == 1 else "times"
            lines.append(f"{'':<26}already hit {p.hits} {times}")
    return lines


def _info_hazards(session: Session, text: str) -> Lines:
    hazards = session.machine.header["hazards"]
    if not hazards:
        return ["No hazards."]
    lines: Lines = []
    for number in range(1, len(hazards) + 1):
        lines += hazard_lines(session, number, short=True)
    return lines


def _info_line(session: Session, text: str) -> Lines:
    return show.where(session, True)


def _info_sources(session: Session, text: str) -> Lines:
    return [
        show.cut(f"{one['name']}{'' if one.get('text') else ' (text not known)'}")
        for one in session.machine.header["files"]
    ] or ["No source files: the recording is of PTX."]


def _info_record(session: Session, text: str) -> Lines:
    header, machine = session.machine.header, session.machine
    more = " (more can be recorded)" if header["truncated"] else ""
    return [
        f"Steps {machine.first} to {machine.end} of {header['total']}{more}; "
        f"now at step {session.step}.",
    ]


def unique(name: str, table: dict[str, tuple[str, ...]], prefix: str = "") -> str:
    """The key that a name, or an unambiguous prefix of one, means."""
    for key, names in table.items():
        if name in names:
            return key
    found = [key for key, names in table.items() if any(one.startswith(name) for one in names)]
    if not found:
        raise Wrong(f"undefined command: {prefix}{name!r}; try help")
    if len(found) > 1:
        raise Wrong(f"ambiguous command {prefix}{name!r}: {', '.join(found)}")
    return found[0]


INFO: dict[str, tuple[str, Callable[[Session, str], Lines]]] = {
    "banks": ("which lane each bank serves in each wavefront", do_banks),
    "barriers": ("which warps wait at which barrier", lambda s, _: barrier_lines(s)),
    "breakpoints": ("breakpoints, watchpoints and catchpoints", _info_points),
    "hazards": ("the hazards of the whole run", _info_hazards),
    "lanes": ("where each lane of the warp is", lambda s, _: show.lane_lines(s)),
    "line": ("the current line and instruction", _info_line),
    "record": ("which steps are recorded", _info_record),
    "registers": ("the registers that the warp has written", register_lines),
    "shared": ("the arrays in shared and global memory", lambda s, _: shared_lines(s)),
    "sources": ("the source files", _info_sources),
    "warps": ("where each warp is", lambda s, _: show.warp_lines(s)),
    "watchpoints": ("the same as info breakpoints", _info_points),
}


def do_info(session: Session, text: str) -> Lines:
    name, _, rest = text.strip().partition(" ")
    if not name:
        return [f"info {key} -- {what}" for key, (what, _) in INFO.items()]
    names: dict[str, tuple[str, ...]] = {key: (key,) for key in INFO}
    names["breakpoints"] += ("b",)
    which = unique(name, names, "info ")
    if not session.machine.header["warps"] and which not in ("hazards", "record", "sources"):
        raise Wrong("nothing has run: the launch was refused; info hazards says why")
    return INFO[which][1](session, rest)
