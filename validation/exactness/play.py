"""Launches a plan; Nsight Compute profiles this program.

python -m exactness.play PLAN.npz [--device cuda]     # patterns: one operation per launch
python -m exactness.play variants                     # every shipped variant
python -m exactness.play corpus                       # the corpus of user kernels
python -m exactness.play engine                       # bulk copies and wgmma
python -m exactness.play products                     # more wgmma: 8-bit and sparse
python -m exactness.play multicasts                   # copies to several blocks
"""

from __future__ import annotations

import argparse
from functools import cache

import numpy as np

import smemkern

from .corpus import CORPUS
from .engine import ENGINE
from .multicasts import MULTICASTS
from .operations import OPERATIONS, WINDOW
from .products import PRODUCTS
from .ptx import kernel
from .variants import VARIANTS

KEY = 0x9E3779B9
PARTS = {
    "variants": VARIANTS,
    "corpus": CORPUS,
    "engine": ENGINE,
    "products": PRODUCTS,
    "multicasts": MULTICASTS,
}


@cache
def compiled(name: str, patterns: int) -> smemkern.Kernel:
    return smemkern.Kernel(*kernel(OPERATIONS[name], patterns))


def launch(name: str, table: np.ndarray, repeats: list[int], device: str | None = None) -> None:
    memory = np.zeros(WINDOW + 16, np.uint8)
    run = compiled(name, len(table))
    run(1, 32, np.ascontiguousarray(table), memory, 0, KEY, *repeats, device=device)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("plan")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    if options.plan in PARTS:
        part = PARTS[options.plan]
        for call in part.calls():
            part.run(call, options.device)
        return
    plan = np.load(options.plan)
    for name, table, repeats in zip(plan["names"], plan["tables"], plan["repeats"], strict=True):
        launch(str(name), table, [int(r) for r in repeats], options.device)


if __name__ == "__main__":
    main()
