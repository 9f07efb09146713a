"""The corpus of user kernels (tests/corpus): launches and predicted counts.

The counts of a case are sums over its launches: those of variants.py, and counts of instructions
that no variant uses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import smemkern

from . import engine, variants
from .parts import Part
from .reasons import BY_SCHEDULE

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
sys.path.append(str(TESTS))

from corpus import CASES  # noqa: E402
from corpus.cases import Case, Launch  # noqa: E402

COUNTERS = {
    **variants.COUNTERS,
    "ldmatrix requests": {variants.REQUESTS.format("ldsm"): 1},
    "ldmatrix wavefronts": {variants.SASS.format("ldsm"): 1},
    "stmatrix requests": {variants.REQUESTS.format("shared_stsm"): 1},
    "stmatrix wavefronts": {variants.SASS.format("stsm"): 1},
    "shared atomic requests": {variants.REQUESTS.format("shared_atom"): 1},
    "shared atomic wavefronts": {variants.SASS.format("atom"): 1},
    "global atomic requests": {
        variants.GLOBAL.format("requests", "atom"): 1,
        variants.GLOBAL.format("requests", "red"): 1,
    },
    **engine.COUNTERS,
}


def cases() -> Iterator[Case]:
    for case in CASES:
        if case.name not in BY_SCHEDULE:
            yield case


@cache
def kernel(case: Case, name: str | None) -> smemkern.Kernel:
    return smemkern.Kernel(case.file.read_text(), name, case.options)


def launches(case: Case) -> list[Launch]:
    return case.make(np.random.default_rng(1)).launches


def each(case: Case, how: Callable[..., Any], **keywords: Any) -> list[Any]:
    """Calls how(kernel, grid, block, *args, ...) for each launch."""
    return [
        how(
            kernel(case, launch.name),
            launch.grid,
            launch.block,
            *launch.args,
            shared_bytes=launch.shared_bytes,
            **keywords,
        )
        for launch in launches(case)
    ]


def run(case: Case, device: str) -> None:
    each(case, lambda k, *args, **keywords: k(*args, **keywords), device=device)


def predicted(case: Case) -> dict[str, int]:
    total = dict.fromkeys(COUNTERS, 0)
    for trace in each(case, smemkern.trace):
        for what, count in (variants.counts(trace) | engine.counts(trace) | _others(trace)).items():
            total[what] += count
    return total


def _others(trace: smemkern.Trace) -> dict[str, int]:
    out = {
        f"{name} {field}": variants.shared(trace, f"machine_{field}", op)
        for name, op in [
            ("ldmatrix", "ldmatrix"),
            ("stmatrix", "stmatrix"),
            ("shared atomic", "atomic"),
        ]
        for field in ("requests", "wavefronts")
    }
    return out | {"global atomic requests": variants.global_(trace, "requests", "atomic")}


CORPUS = Part(
    calls=cases,
    name=lambda case: case.name,
    group=lambda case: case.name,
    run=run,
    launches=lambda case: len(launches(case)),
    predicted=predicted,
    counters=COUNTERS,
)
