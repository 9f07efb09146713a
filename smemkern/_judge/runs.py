"""Runs of a judge: one side's kernel on the emulator, on fresh arrays and with fresh module state.

A candidate is untrusted. It is compiled in a process of its own with limits, runs on the emulator
with a limit of instructions and time, and cannot tell one run from another: outputs hold new random
bits each time, and module variables are initialised again.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import _core, errors
from .._compiler.kernel_file import Missing
from .._trace.observe import Trace, _traced
from .inputs import Array, Extent, Sizes, evaluate, extent

COMPILE_SECONDS = 120.0
CHILD = ("-m", "smemkern._compiler.child")


class Launch(NamedTuple):
    """How a side is launched; grid, block and shared_bytes may be expressions of sizes."""

    grid: Extent
    block: Extent
    shared_bytes: int | str = 0
    cluster: Extent | None = None
    cooperative: bool = False

    def keywords(self, sizes: Sizes) -> dict[str, Any]:
        """The keywords of the call."""
        cluster = None if self.cluster is None else extent(self.cluster, sizes)
        shared_bytes = evaluate(str(self.shared_bytes), sizes)
        return {
            "shared_bytes": shared_bytes,
            "cluster": cluster,
            "cooperative": self.cooperative,
        }


class Limits(NamedTuple):
    """Of each run."""

    timeout: float | None
    max_instructions: int | None


class Outcome(NamedTuple):
    """What a run left, or why it failed."""

    arrays: list[Array | None]  # one per argument; None: not an array
    trace: Trace | None = None
    failure: str = ""  # why it did not run to its end
    endless: bool = False  # because it did not end


class KernelSide:
    """A kernel that is launched on the emulator."""

    def __init__(self, kernel: _core.Kernel, launch: Launch, limits: Limits) -> None:
        self.kernel, self.launch, self.limits = kernel, launch, limits

    def fresh(self) -> _core.Kernel:
        """The kernel in a module of its own, whose variables have their initial values."""
        return _core.Kernel(f"{self.kernel.ptx}\n// {secrets.token_hex(8)}\n", self.kernel.name)

    def run(self, args: Sequence[Any], sizes: Sizes, observed: bool) -> Outcome:
        """Runs the kernel. `args` are written.

        Raises
        ------
        smemkern.Error
            If the emulator cannot run the kernel's instructions.
        """
        arrays = [one if isinstance(one, np.ndarray) else None for one in args]
        trace = None
        try:
            keywords = self.launch.keywords(sizes) | self.limits._asdict()
            given = (extent(self.launch.grid, sizes), extent(self.launch.block, sizes), *args)
            if observed:
                trace = _traced(self.fresh(), given, keywords)
            else:
                self.fresh()(*given, **keywords, device="emu")
        except TimeoutError:
            return Outcome(arrays, None, f"did not end in {self.limits.timeout:g} seconds", True)
        except _core.LaunchError as error:
            return Outcome(arrays, None, str(error).strip(), "max_instructions" in str(error))
        except (TypeError, ValueError, OverflowError) as error:
            return Outcome(arrays, None, f"cannot be launched: {error}")
        failure = trace.hazards[-1].message if trace and trace.incomplete else ""
        return Outcome(arrays, trace, failure)


class FunctionSide:
    """A Python function of the kernel's arguments; it writes outputs or returns them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def run(self, args: Sequence[Any], outputs: Sequence[bool]) -> Outcome:
        """Calls the function. `args` are written."""
        with np.errstate(all="ignore"):
            returned = self.function(*args)
        written = [one for one, is_output in zip(args, outputs, strict=False) if is_output]
        if returned is not None:
            values = returned if isinstance(returned, tuple) else (returned,)
            if len(values) != len(written):
                raise ValueError(
                    f"the reference returns {len(values)} arrays, and there are {len(written)} "
                    "outputs (arrays without a content)"
                )
            for array, value in zip(written, values, strict=True):
                if np.shape(value) != array.shape:
                    raise ValueError(
                        f"the reference returns an array of shape {np.shape(value)}, and the "
                        f"output has {array.shape}"
                    )
                with np.errstate(all="ignore"):
                    array[...] = value
        return Outcome([one if isinstance(one, np.ndarray) else None for one in args])


def compiled(
    file: Path, name: str | None, options: Sequence[str], seconds: float = COMPILE_SECONDS
) -> _core.Kernel:
    """A kernel of a file, compiled in another process.

    Raises
    ------
    CompileError
        If it does not compile, or takes more than `seconds` or 16 GiB of memory.
    """
    given = {
        "file": str(file),
        "name": name,
        "options": [] if file.suffix == ".ptx" else [*options],
    }
    status, out, err = _child([sys.executable, *CHILD], json.dumps(given), seconds)
    if status is None:
        raise _core.CompileError(f"{file}: it did not compile in {seconds:g} seconds")
    if status != 0:
        message = err.strip()[-4000:] or f"the compiler ended with {status}"
        raise _core.CompileError(f"{file}: {message}")
    found = json.loads(out)
    if "error" in found:
        kinds = {"ValueError": ValueError, "Missing": Missing, **vars(errors)}
        raise kinds.get(found["kind"], OSError)(found["error"])
    return _core.Kernel(found["ptx"], found["entry"])


def _child(command: Sequence[str], given: str, seconds: float) -> tuple[int | None, str, str]:
    """The status (None: too late), stdout and stderr of a process, which is ended with its own."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as child:
        try:
            out, err = child.communicate(given, timeout=seconds)
            return child.returncode, out, err
        except BaseException as stop:  # a timeout, or Ctrl-C
            os.killpg(child.pid, signal.SIGKILL)
            if isinstance(stop, subprocess.TimeoutExpired):
                return None, "", ""
            raise
