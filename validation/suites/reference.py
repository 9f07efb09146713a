"""Runs of public kernels whose results are known: what a case is, how it runs and is compared."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import subprocess
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import ml_dtypes
import numpy as np

import smemkern

LIMIT = 120  # seconds for one run
Array = np.ndarray[Any, Any]


@dataclasses.dataclass
class Launch:
    """A call of a kernel, and the arrays that it must leave, by the index of their argument. A NaN
    there is an element that is not compared."""

    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    args: list[Any]
    expected: dict[int, Array]
    rtol: float = 1e-5
    atol: float = 1e-6
    shared_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Name:
    """A demangled name: `void tile<float, (int)16>(float*)` is tile, ["float", "16"], ..."""

    kernel: str
    template: list[str]
    text: str

    def numbers(self) -> list[int]:
        """The template arguments that are numbers or truth values."""
        truth = {"true": 1, "false": 0}
        found = [truth.get(part, part) for part in self.template]
        matches = [re.fullmatch(r"(-?\d+)u?l?", str(part)) for part in found]
        return [int(match[1]) for match in matches if match]


@dataclasses.dataclass(frozen=True)
class Case:
    """The kernels of a file that one function calls, given the name and a random generator."""

    suite: str
    file: str  # regular expression of the path
    kernel: str  # regular expression of the demangled name, without parameters
    launch: Callable[[Name, np.random.Generator], Launch]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How the run of an entry ended. `hazards` are messages of the detector, `places` their kinds
    and lines; `bits`: of all arrays, None after a fault."""

    right: bool
    detail: str = ""
    hazards: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    bits: bytes | None = None


CASES: list[Case] = []


def case(suite: str, file: str, *kernels: str) -> Callable[[Any], Any]:
    """Registers a function that makes the launch of these kernels."""

    def register(function: Any) -> Any:
        CASES.extend(Case(suite, file, kernel, function) for kernel in kernels)
        return function

    return register


def demangled(names: Iterable[str]) -> dict[str, str]:
    names = list(names)
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True)
    return dict(zip(names, done.stdout.splitlines(), strict=True)) if names else {}


def read_name(text: str) -> Name:
    plain = re.sub(r"\((?:int|bool|unsigned int|long|unsigned long|char)\)(?=-?\d)", "", text)
    found = re.match(r"(?:void )?([\w:]+)(?:<(.*?)>)?(?:\(|$)", plain)
    if not found:
        return Name(text, [], text)
    parts = [part.strip() for part in (found[2] or "").split(",")]
    return Name(found[1], [part for part in parts if part], text)


def find(suite: str, file: str, name: Name) -> Case | None:
    return next(
        (
            case
            for case in CASES
            if case.suite == suite
            and re.search(case.file, file)
            and re.fullmatch(case.kernel, name.kernel)
        ),
        None,
    )


NARROW = {"__nv_bfloat16": ml_dtypes.bfloat16, "__half": np.float16}
NARROW_ERROR = 1e-2  # a few roundings to eight bits, relative to the largest result


def as_declared(name: Name, launch: Launch) -> Launch:
    """The float32 arrays of parameters that are declared as narrower ones, in that type."""
    inside = name.text[name.text.rindex("(") + 1 : -1] if "(" in name.text else ""
    while (flat := re.sub(r"<[^<>]*>", "", inside)) != inside:
        inside = flat
    declared = inside.split(", ")
    if len(declared) != len(launch.args):
        return launch
    for at, (kind, value) in enumerate(zip(declared, launch.args, strict=True)):
        narrow = NARROW.get(kind.removesuffix("*").removesuffix(" const"))
        if narrow is None or not isinstance(value, np.ndarray) or value.dtype != np.float32:
            continue
        launch.args[at] = value.astype(narrow)
        if at in launch.expected:
            largest = float(np.nanmax(np.abs(launch.expected[at])))
            launch.atol = max(launch.atol, NARROW_ERROR * largest)
    return launch


def difference(launch: Launch) -> str:
    """Where a result is not what was expected; empty if all are."""
    for at, expected in launch.expected.items():
        got = np.asarray(launch.args[at]).astype(np.float64).ravel()[: expected.size]
        want = expected.astype(np.float64).ravel()
        bad = ~np.isclose(got, want, rtol=launch.rtol, atol=launch.atol) & ~np.isnan(want)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            return (
                f"argument {at}: {int(bad.sum())} of {bad.size} differ; "
                f"[{first}] is {got[first]:.6g}, expected {want[first]:.6g}"
            )
    return ""


def _copy(args: list[Any]) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in args]


def run(ptx: str, entry: str, launch: Launch) -> Outcome:
    """Compares a plain run, then looks for hazards in another one on copies of the arguments."""
    with contextlib.redirect_stdout(io.StringIO()):  # some kernels print
        return _run(ptx, entry, launch)


def _run(ptx: str, entry: str, launch: Launch) -> Outcome:
    kernel = smemkern.Kernel(ptx, entry)
    given = {"shared_bytes": launch.shared_bytes, "timeout": LIMIT}
    again = _copy(launch.args)
    bits, places = None, ()
    try:
        kernel(launch.grid, launch.block, *launch.args, device="emu", **given)
        detail = difference(launch)
        bits = b"".join(a.tobytes() for a in launch.args if isinstance(a, np.ndarray))
    except (smemkern.Error, TimeoutError, ValueError, TypeError) as error:
        detail = " ".join(str(error).split())[:300]
    try:
        trace = smemkern.trace(kernel, launch.grid, launch.block, *again, **given)
        hazards = tuple(hazard.message for hazard in trace.hazards)
        places = tuple(f"{h.kind} {h.line}/{h.other_line or '-'}" for h in trace.hazards)
    except (smemkern.Error, TimeoutError, ValueError, TypeError) as error:
        hazards = (f"not traced: {' '.join(str(error).split())[:200]}",)
        places = ("untraced -",)
    return Outcome(not detail, detail, hazards, places, bits)


def generator(entry: str) -> np.random.Generator:
    """The same numbers in each run of the command."""
    return np.random.default_rng(zlib.crc32(entry.encode()))
