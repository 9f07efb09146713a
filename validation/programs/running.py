"""One program: what is needed to compile and run it, and what came of it under `smemkern run`."""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

Row = dict[str, Any]

GOOD = re.compile(
    r"\bPASS(?:ED)?\b|SUCCESS|\bcorrect\b|match!|\bOK\b|\bverified\b|max diff\S* 0\b"
    r"|results match\b|MATCHES previously|incorrect \w+: 0\b|\bfailures: 0\b",
    re.I,
)
BAD = re.compile(
    r"(?<!\b0 )(?<!assertion )\bFAIL(?!\w*(?::? 0\b| as expected))|(?:mis|dis)match"
    r"|incorrect(?! \w+: 0\b)|\bwrong|\bnot (?:equal|match|OK)",
    re.I,
)
NO_DATA = re.compile(
    r"fail\w* to (?:read|open)|(?:can ?not|could ?n.t|opening|open\w*) (?:\w+ )*file"
    r"|file read error|Bad file|No such file|File error|Assertion `f\w* != NULL' failed",
    re.I,
)
COMPILING = 240  # seconds
MAX_WAIT = 8  # seconds per second of the processor, as other work may run on this machine


@dataclass
class Program:
    """`build` makes it: called with an empty folder, it returns the compiler's complaint or "".
    The command's first word can name a file of that folder; `{out}` in a word is that folder."""

    name: str
    folder: Path | None  # in which it runs; None: the one that build fills
    command: list[str]
    build: Callable[[Path], str] = lambda _: ""
    left_out: str = ""
    checks: bool = False  # its exit status says whether its results are right
    wrong: str = ""  # a pattern of what it says of wrong results; of right ones it says nothing
    kernel: str = ""  # in which a race is known
    options: list[str] = field(default_factory=list)  # of smemkern run
    edits: list[str] = field(default_factory=list)  # of sizes in its source


def complaint(command: list[str], folder: Path, **environment: str) -> str:
    """Of a compiler; empty: it compiled. Names no folder of this machine."""
    try:
        status, out, err = limited(command, COMPILING, folder, environment)
    except subprocess.TimeoutExpired:
        return "the compiler took too long"
    if status == 0:
        return ""
    lines = re.findall(r".*(?:error|undefined|\*\*\*).*", err + out) or ["it does not compile"]
    return re.sub(r"/\S+/(?=[^/\s]+)", "", lines[0])[:160]


def prepare(cpu: float | None) -> None:
    """In a child process: it gets SIGTERM if this one is killed, and ends after that much time of
    the processor."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    if cpu:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(cpu), math.ceil(cpu) + 1))


def limited(
    command: list[str],
    seconds: float,
    folder: Path,
    environment: dict[str, str] | None = None,
    cpu: float | None = None,
) -> tuple[int, str, str]:
    """Runs a program in a session of its own, which ends with it."""
    started = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=folder,
        env=os.environ | (environment or {}),
        start_new_session=True,
        preexec_fn=partial(prepare, cpu),
    )
    try:
        out, err = started.communicate(timeout=seconds)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
    return started.returncode, out, err


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def examine(program: Program, scratch: Path, limit: float, examined: bool = True) -> Row:
    """The first two launches of each kernel are examined; none, if that takes more than `limit`
    seconds of the processor, or `examined` is false."""
    if program.left_out:
        return {"result": "left out", "why": program.left_out}
    if told := program.build(scratch):
        return {"result": "left out", "why": f"does not compile: {told}"}
    words = [word.replace("{out}", str(scratch)) for word in program.command]
    folder = program.folder or scratch
    run = [sys.executable, "-m", "smemkern", "run", "--json", *program.options]
    for kernels in (["--launches", "2"], ["--kernel", "^$"])[0 if examined else 1 :]:
        before = children_seconds()
        try:
            command = [*run, *kernels, *words]
            status, out, err = limited(command, MAX_WAIT * limit, folder, cpu=limit)
        except subprocess.TimeoutExpired:
            continue
        if children_seconds() - before >= limit or status == 128 + signal.SIGXCPU:
            continue
        row = judged(program, status, out, err)
        if "--kernel" in kernels:
            row["examined"] = False
        return row | given(program)
    row = {"result": "too slow", "why": f"not done after {limit:.0f} s of the processor"}
    return row | given(program)


def given(program: Program) -> Row:
    """How it was run."""
    more = {"edits": program.edits, "options": program.options}
    return {"arguments": program.command[1:]} | {key: value for key, value in more.items() if value}


def judged(program: Program, status: int, out: str, err: str) -> Row:
    try:
        found = json.loads(out)
    except ValueError:
        return {"result": "fail", "why": err.strip().splitlines()[-1:]}
    kernels = found["kernels"]
    racy = sorted({one["kernel"] for one in kernels if is_racy(one)})
    row = {
        **verdict(program, found, status, err),
        "kernels": len(kernels),
        "launches": sum(kernel["launches"] for kernel in kernels),
        "hazards": dict(Counter(row["kind"] for one in kernels for row in one["hazards"])),
        "racy": racy,
        "misuses": dict(Counter(one["kind"] for one in found["misuses"])),
    }
    if program.kernel:
        row["known race reported"] = any(program.kernel in name for name in racy)
    return row


def is_racy(kernel: Row) -> bool:
    return any(row["kind"] in ("RAW", "WAR", "WAW") for row in kernel["hazards"])


def verdict(program: Program, found: Row, status: int, told: str) -> Row:
    whys = [one["call"] for one in found["unsupported"]]
    whys += [one["message"][:160] for one in found["misuses"] if one["kind"] == "module"]
    whys += [error[:160] for kernel in found["kernels"] for error in kernel["errors"]]
    lines = [line for line in told.splitlines() if BAD.search(line) or "rror" in line]
    lines = [re.sub(r"/\S+/(?=[^/\s]+)", "", line)[:160] for line in lines]
    if program.checks and status == 2 and not whys:
        return {"result": "left out", "why": "it waives itself on this device"}
    if status != 0 and NO_DATA.search(told):
        return {"result": "left out", "why": "needs a data file"}
    if status != 0 and not found["started"]:
        return {"result": "left out", "why": f"status {status} before it calls CUDA"}
    said = re.search(program.wrong, told) if program.wrong else BAD.search(told)
    if status != 0 or said or (whys and not GOOD.search(told)):
        return {"result": "fail", "status": status, "why": (whys + lines or ["its status"])[:3]}
    if not program.checks and not sum(kernel["launches"] for kernel in found["kernels"]):
        return {"result": "left out", "why": "launches no kernel"}
    checked = program.checks or program.wrong or GOOD.search(told)
    return {"result": "pass" if checked else "ends"}
