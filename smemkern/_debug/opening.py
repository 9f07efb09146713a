"""Begins a session: records a call, and names its arrays as the kernel's source does."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._compiler.parameters import parameters
from .._replay.record import STEPS, Job, Window, call_of, job_of
from .._replay.recording import Recording
from .._replay.replay import Replay
from .machine import Machine
from .session import Session


def session_of_call(
    what: Any,
    args: tuple[Any, ...],
    options: dict[str, Any],
    *,
    blocks: Any = None,
    equal_writes: bool = False,
    steps: int = STEPS,
    progress: Any = False,
) -> Session:
    """A session at the first step of a call, as smemkern.replay takes it."""
    __tracebackhide__ = True
    return session_of_job(
        job_of(call_of(what, args, options, equal_writes), blocks), steps, progress
    )


def session_of_job(job: Job, steps: int = STEPS, progress: Any = False) -> Session:
    __tracebackhide__ = True

    def opened(first: int) -> Machine:
        replay = Replay(job, Window(first, steps), progress)

        def variables(warp: int, step: int) -> dict[str, Any]:
            replay.seek(step).warp = warp
            return replay.locals

        return Machine(labelled(replay.decoded, job), variables)

    return Session(opened(0), opened)


def labelled(recording: Recording, job: Job) -> Recording:
    """Adds "label" to the arrays of the header."""
    names: list[str] = []
    if isinstance(job.call.what, _core.Kernel):
        names = [one.name for one in parameters(job.call.what, len(job.call.args) - 2)]
    for array in recording.header["arrays"]:
        argument = array.get("argument")
        if argument is not None:
            named = names[argument] if argument < len(names) else ""
            array["label"] = named or f"arg{argument}"
        elif array.get("name"):
            array["label"] = array["name"].rpartition(" ")[2]
    return recording
