"""More wgmma, drawn from a seed: 8-bit elements and sparse products of all types.

engine.py has those of the first record, which stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matrix_wgmma import SWIZZLES, Wgmma, sparse_wgmma_cases

from .engine import COUNTERS, ENGINE, Product, calls

NARROW = 96
SPARSE = 40


def narrow(rng: np.random.Generator) -> Wgmma:
    """8-bit elements, of any width and layout; one in two is sparse."""
    floats = bool(rng.integers(2))
    a, b = rng.choice(("e4m3", "e5m2") if floats else ("s8", "u8"), 2).tolist()
    d = str(rng.choice(("f16", "f32"))) if floats else "s32"
    widths = [n for n in range(8, 257, 8) if floats or n <= 32 or n % 16 == 0]
    return Wgmma(
        int(rng.choice(widths)),
        a,
        b,
        d,
        rows=int(rng.choice(list(SWIZZLES))),
        a_registers=bool(rng.integers(2)),
        selector=0 if rng.integers(2) else None,
    )


def forms() -> list[Wgmma]:
    rng = np.random.default_rng(2)
    every = sparse_wgmma_cases()
    drawn = [narrow(rng) for _ in range(NARROW)]
    drawn += [every[k] for k in np.sort(rng.permutation(len(every))[:SPARSE])]
    first = {str(call) for call in calls()}
    return [form for form in dict.fromkeys(drawn) if str(form) not in first]


def products() -> Iterator[Product]:
    yield from map(Product, forms())


def group(call: Product) -> str:
    return "dense" if call.form.selector is None else "sparse"


PRODUCTS = ENGINE._replace(
    calls=products,
    group=group,
    predicted=lambda call: {"wgmma wavefronts": ENGINE.predicted(call)["wgmma wavefronts"]},
    counters={"wgmma wavefronts": COUNTERS["wgmma wavefronts"]},
)
