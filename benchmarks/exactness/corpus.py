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

from . import variants

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
sys.path.append(str(TESTS))

from corpus import CASES  # noqa: E402
from corpus.cases import Case, Launch  # noqa: E402

REQUESTS = "smsp__sass_inst_executed_op_{}.sum"

# What is compared: the counters, added up.
COUNTERS: dict[str, tuple[str, ...]] = {
    **{what: (name,) for name, what in variants.COUNTERS.items()},
    "ldmatrix requests": (REQUESTS.format("ldsm"),),
    "ldmatrix wavefronts": (variants.SASS.format("ldsm"),),
    "stmatrix requests": (REQUESTS.format("shared_stsm"),),
    "stmatrix wavefronts": (variants.SASS.format("stsm"),),
    "shared atomic requests": (REQUESTS.format("shared_atom"),),
    "shared atomic wavefronts": (variants.SASS.format("atom"),),
    "global atomic requests": tuple(
        variants.GLOBAL.format("requests", op) for op in ("atom", "red")
    ),
}
METRICS = list(dict.fromkeys(name for names in COUNTERS.values() for name in names))

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
        for what, count in (variants.counts(trace) | _others(trace)).items():
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


def counted(rows: list[dict[str, float]]) -> dict[str, int]:
    """What Nsight Compute counted of a case's launches."""
    return {
        what: int(sum(row[name] for row in rows for name in names))
        for what, names in COUNTERS.items()
    }


def compared(case: Case, measured: dict[str, int]) -> dict[str, Any]:
    """One case: what was measured; and what was predicted, where that is another number."""
    said = predicted(case)
    return {
        "case": case.name,
        "measured": list(measured.values()),
        "differs": {w: [said[w], measured[w]] for w in measured if said[w] != measured[w]},
    }
