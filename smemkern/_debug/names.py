"""The names of a call's arrays, as the kernel's source declares its parameters."""

from __future__ import annotations

from .. import _core
from .._compiler.parameters import parameters
from .._replay.record import Job
from .._replay.recording import Recording


def labelled(recording: Recording, job: Job) -> Recording:
    """Adds "label" to the arrays of the header."""
    names: list[str] = []
    if isinstance(job.what, _core.Kernel):
        names = [one.name for one in parameters(job.what, len(job.args) - 2)]
    for array in recording.header["arrays"]:
        argument = array.get("argument")
        if argument is not None:
            named = names[argument] if argument < len(names) else ""
            array["label"] = named or f"arg{argument}"
        elif array.get("name"):
            array["label"] = array["name"].rpartition(" ")[2]
    return recording
