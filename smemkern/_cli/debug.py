"""python -m smemkern debug: steps to and fro in a run of a kernel, with gdb's commands."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from . import calls, common
from .common import Answer

SUMMARY = "step to and fro in a run of a kernel"
ABOUT = """\
Runs a variant, or your own kernel, on the emulator, records it, and reads commands: gdb's, also
backwards. They set breakpoints and watchpoints, step by line or instruction, print registers and
arrays by lane, and show lanes, banks and hazards, with explanations in words. The same run gives
the same steps each time."""
EXAMPLES = (
    (
        "debug sum.cu --grid 1 --block 64 --arg 'f32[64]=random' --arg f32[1] --arg i32=64 "
        "-ex 'advance hazard 1' -ex 'explain hazard 1'",
        """\
...
(smemkern) explain hazard 1
1. RAW ...
   cure: a __syncthreads() that all threads of the block reach, ...""",
    ),
)
NEXT = "docs/debug.md: a session from start to end; check: the hazards alone; trace: counts."
FOUND = "a command of a script or a pipe is wrong"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    calls.add_call(parser)
    parser.add_argument(
        "-x",
        "--command",
        dest="scripts",
        metavar="FILE",
        action="append",
        default=[],
        type=Path,
        help="run the commands of a file first; repeatable",
    )
    parser.add_argument(
        "-ex",
        "--eval-command",
        dest="evaluated",
        metavar="TEXT",
        action="append",
        default=[],
        help="run a command, after those of -x; repeatable. The session then ends",
    )
    parser.add_argument(
        "--interactive", action="store_true", help="read commands after those of -x and -ex"
    )
    parser.add_argument(
        "--blocks", type=int, default=16, metavar="N", help="record only the first N blocks (16)"
    )
    parser.add_argument(
        "--equal-writes", action="store_true", help="also report races that write equal values"
    )


def run(chosen: argparse.Namespace) -> Answer:
    from .._debug.terminal import Debugger, is_terminal

    lines = [line for file in chosen.scripts for line in _lines_of(file)] + chosen.evaluated
    session = _session(chosen)
    is_script = bool(lines) and not chosen.interactive
    show = None if chosen.json else _printed
    debugger = Debugger(session, show)
    debugger.greet(chosen.what)
    debugger.script(lines, echo=True)
    failed = any(ran.failed for ran in debugger.ran)
    if not is_script and not debugger.has_quit:
        if chosen.json or not is_terminal():
            debugger.pipe(sys.stdin)
            failed = any(ran.failed for ran in debugger.ran)
        else:
            debugger.interact()
            failed = False
    header = session.machine.header
    data = {
        "kernel": header["kernel"],
        "steps": header["total"],
        "hazards": [_hazard_data(hazard) for hazard in header["hazards"]],
        "commands": [ran._asdict() for ran in debugger.ran],
    }
    return Answer(data, [], common.FOUND if failed else common.FINE)


def _printed(line: str) -> None:
    print(line, flush=True)


def _lines_of(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def _hazard_data(hazard: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": hazard["kind"],
        "message": hazard["message"],
        "cure": hazard["cure"],
        "steps": [party["step"] for party in hazard["parties"]],
    }


def _session(chosen: argparse.Namespace) -> Any:
    """Records the call of the command line."""
    from .._debug.opening import session_of_call

    what, args, keywords = calls.call_of(chosen)
    return session_of_call(
        what,
        tuple(args),
        keywords,
        blocks=chosen.blocks,
        equal_writes=chosen.equal_writes,
    )
