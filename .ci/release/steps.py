"""What the parts of a release share: steps with an outcome each, commands, new environments."""

from __future__ import annotations

import os
import re
import subprocess
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Failed(Exception):
    """A check that did not hold, and why."""


class Report:
    """Steps by name: passed, failed or left out, and a word on each."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, float, str]] = []

    def step(self, name: str, run: Callable[..., str], *arguments: object) -> bool:
        """Runs it and remembers what it says; whether it passed."""
        print(f"==> {name}", flush=True)
        start = time.monotonic()
        try:
            outcome, said = "passed", run(*arguments)
        except (Failed, OSError) as error:
            outcome, said = "FAILED", str(error)
        self._add(name, outcome, time.monotonic() - start, said)
        return outcome == "passed"

    def leave_out(self, name: str, why: str) -> None:
        print(f"==> {name}", flush=True)
        self._add(name, "left out", 0.0, why)

    def _add(self, name: str, outcome: str, seconds: float, said: str) -> None:
        self.rows.append((name, outcome, seconds, said))
        print(f"    {outcome}: {said}", flush=True)

    def table(self) -> str:
        width = max(len(name) for name, *_ in self.rows)
        return "\n".join(
            f"{name:{width}}  {outcome:8}  {seconds:6.1f} s  {(said.splitlines() or [''])[0]}"
            for name, outcome, seconds, said in self.rows
        )

    @property
    def failed(self) -> bool:
        return any(outcome == "FAILED" for _, outcome, _, _ in self.rows)


def call(*command: str | Path, where: Path, env: dict[str, str] | None = None) -> str:
    """What the command prints; Failed, with the end of that, if it does not succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=where,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-25:])
        short = " ".join([Path(words[0]).name, *words[1:]])[:100]
        raise Failed(f"{short} exits with {done.returncode}\n{end}")
    return done.stdout


def environment(python: str | Path, folder: Path) -> Path:
    """The Python of a new virtual environment in that folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    call(python, "-m", "venv", "--clear", folder, where=folder.parent)
    return folder / "bin" / "python"


def surroundings(**changed: str) -> dict[str, str]:
    """The environment's variables, without those that steer Python, compilers or smemkern."""
    steering = "CUDA|NVCC|PYTHON|SMEMKERN"
    return {k: v for k, v in os.environ.items() if not re.match(steering, k)} | changed


def version() -> str:
    with open(ROOT / "pyproject.toml", "rb") as file:
        return str(tomllib.load(file)["project"]["version"])
