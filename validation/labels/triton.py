"""Kernels that suites/triton_tests.py compiled from tests of race detectors for Triton.

ConSan instruments kernels in Gluon and asserts as it runs; its tests come in pairs, with and
without a fault. What it asserts is not only races:

 - "race": a buffer is accessed while an asynchronous copy, a wgmma or another warp may still read
   or write it, or an asynchronous access has no fence.proxy.async before it.
 - "deadlock": no thread can continue.
 - "barrier": an mbarrier is used without mbarrier.init, is initialised twice without
   mbarrier.inval, or gets more arrivals than its phase expects.

CUTracer's tests are a GEMM with specialised warps, right and with two faults.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import smemkern
from labels.cases import COMPILED, Case, Run

SWIZZLES = (None, "32B", "64B", "128B")


def cases(folder: Path) -> list[Case]:
    file = folder / "cases.json"
    rows = json.loads(file.read_text())["cases"] if file.exists() else {}
    return [
        Case(
            name,
            row["label"],
            (folder / row["ptx"]).read_text(),
            row["entry"],
            (),
            functools.partial(_runs, row),
            equal_writes=False,
            forms=COMPILED,
        )
        for name, row in rows.items()
    ]


def extra(folder: Path) -> dict[str, Any]:
    made = json.loads((folder / "cases.json").read_text())
    messages = {name: row["messages"] for name, row in made["cases"].items()}
    return {"triton": made["triton"], "left_out": made["left_out"], "messages": messages}


def _array(spec: dict[str, Any], number: int) -> np.ndarray:
    if spec["fill"] == "arange":
        return np.arange(np.prod(spec["shape"]), dtype=spec["dtype"]).reshape(spec["shape"])
    if spec["fill"] == "zeros":
        return np.zeros(spec["shape"], spec["dtype"])
    return np.random.default_rng(number).standard_normal(spec["shape"]).astype(spec["dtype"])


def _argument(spec: dict[str, Any], arrays: list[np.ndarray]) -> Any:
    if "array" in spec:
        return arrays[spec["array"]]
    if "number" in spec:
        return np.dtype(spec["dtype"]).type(spec["number"])
    made = spec["map"]
    return smemkern.TensorMap(
        arrays[made["array"]], made["block_size"], swizzle=SWIZZLES[made["swizzle"]]
    )


def _runs(row: dict[str, Any]) -> Iterator[Run]:
    arrays = [_array(spec, number) for number, spec in enumerate(row["arrays"])]
    arguments = tuple(_argument(spec, arrays) for spec in row["arguments"])
    cluster = row["cluster"] if row["cluster"] > 1 else None
    block = (row["threads"],)
    yield Run("launch", tuple(row["grid"]), block, arguments, row["shared_bytes"], cluster)
