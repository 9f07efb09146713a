"""How far something is, where somebody waits for it: a bar of tqdm once two seconds have gone by.

Only on a terminal or in a notebook, on standard error, and only where tqdm is installed: a log or a
pipe sees nothing of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

DELAY = 2.0  # seconds
Item = TypeVar("Item")


def is_watched() -> bool:
    """Whether somebody looks at standard error: a terminal, or a notebook's front end."""
    shell = sys.modules.get("IPython")
    kernel = shell is not None and hasattr(shell.get_ipython(), "kernel")
    return kernel or (sys.stderr is not None and sys.stderr.isatty())


def _bar(total: int, what: str, unit: str) -> Any:
    """A bar, or None where there should be none."""
    if not is_watched():
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(
        total=total, desc=what, unit=unit, unit_scale=total >= 10_000, delay=DELAY, leave=False
    )


def over(items: Sequence[Item], what: str, unit: str) -> Iterable[Item]:
    """The items, with a bar that counts them."""
    bar = _bar(len(items), what, f" {unit}")
    if bar is None:
        yield from items
        return
    with bar:
        for item in items:
            yield item
            bar.update()


class Meter:
    """A bar for what reports by itself how far it is: meter(done, all)."""

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
