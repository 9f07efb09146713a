"""The cases of referee.py, as its modules labels/SUITE.py describe them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

FORMS = {"unoptimised": ("-G",), "optimised": ("-lineinfo",)}  # options of NVRTC
COMPILED = {"compiled": ()}  # PTX, as the suite's own compiler made it


class Run(NamedTuple):
    """One launch; `arguments` are fresh arrays."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Any, ...]
    shared_bytes: int = 0
    cluster: int | None = None


class Case(NamedTuple):
    name: str
    label: str  # "race", "bounds", "deadlock", "barrier", "clean"
    source: str  # CUDA C++ or PTX
    entry: str
    options: tuple[str, ...]  # of NVRTC
    runs: Callable[[], Iterator[Run]]
    equal_writes: bool = True  # whether the labels call equal writes a race
    across_blocks: bool | None = None  # True, False: only races between, within blocks count
    forms: dict[str, tuple[str, ...]] = FORMS
