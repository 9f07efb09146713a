"""Compiles the files of a suite to PTX, each once; cached by the hash of what made the PTX."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import hashlib
import math
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from suites.table import Suite

STUBS = Path(__file__).resolve().parent / "include"
COMMON = ("-ptx", "-arch=sm_90a", "-lineinfo", "-std=c++17", "-w")
TIMEOUT = 900  # seconds for one file
LATE = "left out: no time to compile it"


@dataclasses.dataclass(frozen=True)
class Unit:
    """One file of a suite, and its PTX, or why there is none."""

    suite: str
    file: str  # below the repository
    ptx: str | None
    error: str = ""


def repository(suite: Suite, folder: Path) -> Path:
    return STUBS.parent if suite.own else folder / suite.repository.partition("/")[2]


def commit(path: Path) -> str:
    """Of a repository; of the toolkit's headers the toolkit's version."""
    if path == STUBS.parent:
        found = re.search(r"release (\S+),", version())
        return f"of CUDA {found[1]}" if found else ""
    command = ["git", "-C", str(path), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def package_version(package: str, python: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip()


def version() -> str:
    return subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout


def files(suite: Suite, root: Path) -> list[Path]:
    found = {path for pattern in suite.files for path in root.glob(pattern)}
    kept = sorted(f for f in found if not any(re.search(w, str(f)) for w in suite.without))
    if suite.sample and suite.sample < len(kept):
        kept = sorted(random.Random(suite.seed).sample(kept, suite.sample))
    return kept


def command(suite: Suite, root: Path, file: Path) -> list[str]:
    inside = [folder for folder in file.parents if folder.is_relative_to(root)]
    own = [folder / name for folder in inside for name in ("utils", "inc")]
    folders = [file.parent, *own, *(root / f for f in suite.include), STUBS]
    return [*COMMON, *suite.options, *(f"-I{folder}" for folder in folders), str(file)]


def key(suite: Suite, root: Path, file: Path, nvcc: str) -> str:
    """The headers count by the commit of their repository, and ours, if named, by their text."""
    text = file.read_bytes()
    stubs = [path.read_bytes() for path in sorted(STUBS.rglob("*.h")) if b"<torch/" in text]
    made_of = (nvcc, commit(root), *COMMON, *suite.options, *suite.include)
    return hashlib.sha256(b"\0".join([*map(str.encode, made_of), *stubs, text])).hexdigest()


def reason(log: str) -> str:
    """The first error of the compiler."""
    found = re.search(r"(?:fatal )?error\s*:? *(.*)", log)
    return found[1].strip()[:200] if found else (log.strip().splitlines() or ["no message"])[-1]


def compile_one(
    suite: Suite, root: Path, file: Path, nvcc: str, cache: Path, until: float = math.inf
) -> Unit:
    """From the cache, or by nvcc if the time has not passed."""
    name = str(file.relative_to(root))
    if file.suffix == ".ptx":
        return Unit(suite.name, name, file.read_text())
    out = cache / f"{key(suite, root, file, nvcc)}.ptx"
    failed = out.with_suffix(".error")
    if not out.exists() and not failed.exists():
        if time.monotonic() > until:
            return Unit(suite.name, name, None, LATE)
        part = out.with_suffix(".part")
        try:
            done = subprocess.run(
                ["nvcc", *command(suite, root, file), "-o", str(part)],
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
            log = done.stderr + done.stdout
        except subprocess.TimeoutExpired:
            log = f"error: nvcc took more than {TIMEOUT} s"
        if part.exists():
            part.rename(out)
        else:
            failed.write_text(log)
    if out.exists():
        return Unit(suite.name, name, out.read_text())
    return Unit(suite.name, name, None, reason(failed.read_text()))


def scripted(suite: Suite, script: Path, python: str, cache: Path) -> Iterator[Unit]:
    """The files that a script writes, which an interpreter with its package runs each time."""
    out = cache / suite.name
    out.mkdir(exist_ok=True)
    done = subprocess.run([python, str(script), str(out)], capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        yield Unit(suite.name, script.name, None, last[:200])
        return
    for ptx in sorted(out.glob("*.ptx")):
        yield Unit(suite.name, ptx.name, ptx.read_text())


def units(
    suite: Suite,
    folder: Path,
    cache: Path,
    progress: Callable[[str], None],
    jobs: int = 1,
    python: str = sys.executable,
    seconds: float = math.inf,
) -> Iterator[Unit]:
    """All files of the suite, in order; none is begun to be compiled after so many seconds."""
    until = time.monotonic() + seconds
    cache.mkdir(parents=True, exist_ok=True)
    root = repository(suite, folder)
    if suite.files[0].endswith(".py"):
        yield from scripted(suite, root / suite.files[0], python, cache)
        return
    nvcc = version()
    listed = files(suite, root)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        made = pool.map(lambda file: compile_one(suite, root, file, nvcc, cache, until), listed)
        for k, unit in enumerate(made):
            progress(f"{suite.name}: {k + 1} of {len(listed)} {unit.file} {unit.error}")
            yield unit
