"""The debugger's commands, with their help, and the interpreter of lines.

Names and habits are gdb's: unambiguous prefixes, and an empty line repeats the last command.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import NamedTuple

from . import show
from .commands import (
    INFO,
    Lines,
    do_advance,
    do_backtrace,
    do_banks,
    do_block,
    do_break,
    do_catch,
    do_condition,
    do_continue,
    do_delete,
    do_enable,
    do_explain,
    do_finish,
    do_goto,
    do_info,
    do_lane,
    do_lanes,
    do_list,
    do_print,
    do_run,
    do_start,
    do_stepi,
    do_steps,
    do_warp,
    do_watch,
    unique,
)
from .expressions import Wrong
from .session import Session


class Command(NamedTuple):
    names: tuple[str, ...]  # the first one is listed
    usage: str  # what follows the name
    help: str
    run: Callable[[Session, str], Lines]
    repeats: bool = False  # an empty line after it runs it again


class Quit(Exception):
    """Ends the session."""


def _help(session: Session, text: str) -> Lines:
    name = text.strip()
    if not name:
        lines = [f"{c.names[0]:<18}{_summary(c.help)}" for c in COMMANDS]
        more = "Type help and a name for more; names may be cut to unambiguous prefixes."
        return [line for one in lines for line in _hanging(one)] + ["", *show.wrapped(more)]
    command = find(name.split()[0])
    names = ", ".join(command.names[1:])
    also = [f"Also: {names}."] if names else []
    usage = f"{command.names[0]} {command.usage}".strip()
    return [
        usage,
        "",
        *(line for one in command.help.split("\n") for line in show.wrapped(one)),
        *also,
    ]


def _summary(text: str) -> str:
    return re.split(r"(?<=\.)\s", text)[0]


def _hanging(text: str) -> Lines:
    return textwrap.wrap(text, show.WIDTH, subsequent_indent=" " * 18, break_on_hyphens=False)


def _quit(session: Session, text: str) -> Lines:
    raise Quit


def _echo(session: Session, text: str) -> Lines:
    return [text.replace("\\n", "").strip()]


_PLACES = "A place is a line (12), FILE:LINE, the name of a function, or *LINE of the PTX."
_STOPS = (
    "It goes on from the warp in focus. Other warps run, too; it stops at breakpoints of this warp "
    "and at watchpoints of all."
)

COMMANDS = [
    Command(
        ("break", "b"),
        "[PLACE] [if CONDITION]",
        "Set a breakpoint.\n"
        + _PLACES
        + "\nA step of any warp stops there, if the condition is true in one of its lanes.",
        do_break(False),
    ),
    Command(
        ("tbreak", "tb"),
        "[PLACE] [if CONDITION]",
        "Set a breakpoint that is deleted at its first stop.",
        do_break(True),
    ),
    Command(
        ("watch",),
        "ELEMENT | hazard N [if CONDITION]",
        "Stop at each write of an element. It stops before the write, in both directions.\n"
        "An element is tile[3][4], part[5] (of the block in focus), x[7] (of an array of the "
        "call), or *ADDRESS (a word of shared memory). watch hazard N watches the first access "
        "of a hazard, of its thread.",
        do_watch("watch"),
    ),
    Command(
        ("rwatch",),
        "ELEMENT [if CONDITION]",
        "Stop at each read of an element.",
        do_watch("rwatch"),
    ),
    Command(
        ("awatch",),
        "ELEMENT [if CONDITION]",
        "Stop at each read or write of an element.",
        do_watch("awatch"),
    ),
    Command(
        ("catch",),
        "conflict [N] | hazard [N] | barrier | exit",
        "Stop at an event: an access to shared memory of over N times its ideal wavefronts "
        "(1 if no N is given), the accesses of hazard N (or the later access "
        "of any), arrivals at barriers, or exits.",
        do_catch,
    ),
    Command(("delete", "d"), "[NUMBERS]", "Delete breakpoints; all, without numbers.", do_delete),
    Command(("disable",), "[NUMBERS]", "Disable breakpoints.", do_enable(False)),
    Command(("enable",), "[NUMBERS]", "Enable breakpoints.", do_enable(True)),
    Command(
        ("condition",),
        "NUMBER [EXPRESSION]",
        "Set or remove a condition of a breakpoint.",
        do_condition,
    ),
    Command(
        ("continue", "c", "fg"),
        "[COUNT]",
        "Go on to the next stop.",
        lambda s, t: do_continue(s, t, True),
        True,
    ),
    Command(
        ("reverse-continue", "rc"),
        "[COUNT]",
        "Go back to the stop before.",
        lambda s, t: do_continue(s, t, False),
        True,
    ),
    Command(("run", "r"), "", "Start again, and go on to the first stop.", do_run),
    Command(("start",), "", "Start again, at the first step.", do_start),
    Command(
        ("step", "s"),
        "[COUNT]",
        "Go to another source line, into calls.\n" + _STOPS,
        do_steps(True, False),
        True,
    ),
    Command(
        ("next", "n"),
        "[COUNT]",
        "Go to another source line, over calls.\n" + _STOPS,
        do_steps(True, True),
        True,
    ),
    Command(
        ("reverse-step", "rs"),
        "[COUNT]",
        "Go back to the beginning of a line, into calls.",
        do_steps(False, False),
        True,
    ),
    Command(
        ("reverse-next", "rn"),
        "[COUNT]",
        "Go back to the beginning of a line, over calls.",
        do_steps(False, True),
        True,
    ),
    Command(
        ("stepi", "si", "nexti", "ni"),
        "[COUNT]",
        "Go to the warp's next PTX instruction.",
        do_stepi(True),
        True,
    ),
    Command(
        ("reverse-stepi", "rsi", "reverse-nexti", "rni"),
        "[COUNT]",
        "Go back to the warp's PTX instruction before.",
        do_stepi(False),
        True,
    ),
    Command(("finish", "fin"), "", "Go on until the innermost call returns.", do_finish(True)),
    Command(
        ("reverse-finish",), "", "Go back to where the innermost call was made.", do_finish(False)
    ),
    Command(
        ("advance", "until", "u"),
        "PLACE | conflict [N] | hazard [N] | barrier | exit",
        "Go on to a place or an event.\n" + _PLACES + "\nEvents are those of catch.",
        do_advance(True),
    ),
    Command(
        ("reverse-advance",),
        "PLACE | conflict [N] | hazard [N] | barrier | exit",
        "Go back to a place or an event.",
        do_advance(False),
    ),
    Command(("goto",), "STEP | begin | end", "Go to a step of the run.", do_goto),
    Command(
        ("print", "p", "inspect"),
        "[/FORMAT] EXPRESSION",
        "Print a value, by lane where lanes differ.\nValues are registers (%r1), threadIdx.x "
        "and other special registers, elements (tile[3][4]), rows and arrays (tile[3], tile), "
        "and expressions of these with C's operators. FORMAT is x, d, u, t or f, as in gdb.",
        do_print,
    ),
    Command(
        ("info", "i"),
        "[WHAT]",
        "Show lanes, banks, barriers, registers, warps, hazards, "
        "breakpoints and others. Without WHAT, the list of them.",
        do_info,
    ),
    Command(("lanes",), "", "Show where each lane of the warp is, and what it accesses.", do_lanes),
    Command(("banks",), "", "Show which lane each bank serves, wavefront by wavefront.", do_banks),
    Command(
        ("explain",),
        "[hazard N]",
        "Explain the access of this instruction in words: its "
        "conflict, and a layout without it. explain hazard N explains a hazard and its cure.",
        do_explain,
    ),
    Command(
        ("backtrace", "bt", "where"),
        "",
        "Show the calls that the warp is in, inlined ones, too.",
        do_backtrace,
    ),
    Command(
        ("list", "l"),
        "[LINE | FILE:LINE | FIRST,LAST]",
        "List the source around the current line.",
        do_list,
        True,
    ),
    Command(
        ("warp", "thread"),
        "[N]",
        "Show the warp in focus, or switch to that Id of info warps.",
        do_warp,
    ),
    Command(
        ("block",),
        "[N | X,Y,Z]",
        "Show the block in focus, or switch to the first warp of one.",
        do_block,
    ),
    Command(
        ("lane",),
        "[N | all]",
        "Focus on one lane, of which print shows values, or on all.",
        do_lane,
    ),
    Command(("echo",), "TEXT", "Print a text.", _echo),
    Command(("help", "h"), "[COMMAND]", "Describe commands.", _help),
    Command(("quit", "q", "exit"), "", "End the debugger.", _quit),
]


def find(name: str) -> Command:
    """The command of a name or an unambiguous prefix of one; raises Wrong."""
    key = unique(name, {one.names[0]: one.names for one in COMMANDS})
    return next(one for one in COMMANDS if one.names[0] == key)


def _printable(text: str) -> str:
    """Sources and names are not trusted: no control characters reach the terminal."""
    return "".join(c if c.isprintable() or c == "\t" else "?" for c in text)


_WITHOUT_RUN = ("info", "explain", "help", "echo", "quit")


class Interpreter:
    """Runs lines of text as commands."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.last = ""

    def run(self, line: str) -> Lines:
        """The output of a line; raises Wrong and Quit."""
        line = line.strip()
        if line.startswith("#"):
            return []
        if not line:
            line = self.last
            if not line:
                return []
        found = re.match(r"([A-Za-z-]+)(.*)", line, re.S)
        if found is None:
            raise Wrong(f"undefined command: {line.split()[0]!r}; try help")
        command = find(found[1])
        if not self.session.machine.header["warps"] and command.names[0] not in _WITHOUT_RUN:
            raise Wrong("nothing has run: the launch was refused; info hazards says why")
        self.last = line if command.repeats else ""
        return [_printable(one) for one in command.run(self.session, found[2])]

    def completions(self, text: str) -> list[str]:
        """What could stand for the last word of a line."""
        words = text.split(" ")
        if len(words) == 1:
            names = [name for command in COMMANDS for name in command.names]
        elif len(words) == 2 and words[0] in ("info", "i"):
            names = [*INFO]
        elif words[0] in ("help", "h"):
            names = [command.names[0] for command in COMMANDS]
        elif words[0] in ("catch", "advance", "reverse-advance"):
            names = ["conflict", "hazard", "barrier", "exit"]
        else:
            names = [array.name for array in self.session.scope.arrays()]
            names += ["threadIdx.x", "blockIdx.x", "blockDim.x", "gridDim.x", "laneid", "warpid"]
        return sorted({name for name in names if name.startswith(words[-1])})
