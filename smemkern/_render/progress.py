"""Progress, shown once an operation has taken two seconds: tqdm's bar, or a count without tqdm.

It is written to standard error, only in a terminal or notebook. So logs and pipes do not contain
it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

DELAY = 2.0  # seconds
INTERVAL = 0.1  # seconds between counts
Item = TypeVar("Item")


def is_watched() -> bool:
    """Whether standard error is a terminal or a notebook's front end."""
    shell = sys.modules.get("IPython")
    kernel = shell is not None and hasattr(shell.get_ipython(), "kernel")
    return kernel or (sys.stderr is not None and sys.stderr.isatty())


class Count:
    """A line such as "demo: 12 of 39 variants", erased at the end; used like tqdm's bar."""

    def __init__(self, total: int, what: str, unit: str) -> None:
        self._total, self._what, self._unit = total, what, unit
        self.n = 0
        self._next = time.monotonic() + DELAY
        self._written = ""

    def update(self, done: int = 1) -> None:
        self.n += done
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + INTERVAL
            self._write(f"{self._what}: {self.n} of {self._total}{self._unit}")

    def close(self) -> None:
        if self._written:
            self._write("")
            sys.stderr.write("\r")

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(len(self._written)))
        sys.stderr.flush()
        self._written = text

    def __enter__(self) -> Count:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bar(total: int, what: str, unit: str) -> Any:
    """A bar, or None if none should be shown."""
    if not is_watched():
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return Count(total, what, unit)
    return tqdm(
        total=total, desc=what, unit=unit, unit_scale=total >= 10_000, delay=DELAY, leave=False
    )


def over(items: Sequence[Item], what: str, unit: str) -> Iterable[Item]:
    """Iterates over the items, with a bar."""
    bar = _bar(len(items), what, f" {unit}")
    if bar is None:
        yield from items
        return
    with bar:
        for item in items:
            yield item
            bar.update()


class Meter:
    """A bar for operations that report their progress by calling meter(done, total)."""

    def __init__(self, what: str, unit: str) -> None:
        self._what, self._unit = what, unit
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = _bar(total, self._what, f" {self._unit}")
        if self._bar is not None:
            self._bar.update(done - self._bar.n)

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


Progress = Callable[[int, int], object]
