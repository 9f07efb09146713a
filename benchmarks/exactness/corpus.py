"""The corpus of user kernels (tests/corpus): what is launched, what is predicted.

The counts of a case are the sums over its launches. They are the variants' counts and those of the
instructions that variants do not have.
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

# Not compared: how often these try, or where they write, is decided by who comes first.
BY_SCHEDULE = {
    "spin_lock": "threads try until they have the lock",
    "scan_look_back": "blocks read until their predecessors have published",
    "union_find": "trees are united in the order of arrival",
    "bfs": "who claims a node is who comes first",
    "compact_ballot-many": "warps write where the one before has left off",
    "string_search": "matches are written in the order of arrival",
    "atomics_double": "a loop of compare-and-swap",
}

# Compared, and different.
EXPLAINED = {
    "k_means": "float atomics are a loop, which goes round again where warps meet: modelled",
    "argmax": "64-bit `atomicMax` is a loop, which ends early where nothing changes: modelled",
    "spmv_scalar": "ptxas unrolls the loop by 16 and by 4; lanes whose rows have different lengths "
    "leave it at different places, and their loads become requests of their own",
    "histogram_match": "the source loads `x[i]` twice, ptxas once",
    "global_state": "the driver puts a variable elsewhere: `history` is one sector there, two here",
    "recursion": "the counter adds 20 requests to the two stores that the kernel makes; the "
    "instrumented code says two",
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
    """how(kernel, grid, block, *args, ...) of each launch."""
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
    run=run,
    launches=lambda case: len(launches(case)),
    predicted=predicted,
    counters=COUNTERS,
)
