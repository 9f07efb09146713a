"""The interpreter ends while daemon threads are in calls on GPUs: python fake_shutdown.py CASE.

On a fake driver. The exit status is what is looked at, and that it ends at once.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
from fake_exchange import ADD, fake
from fake_flows import floats

import smemkern


def ever(call: Callable[[], object]) -> None:
    def work() -> None:
        while True:
            call()

    threading.Thread(target=work, daemon=True).start()


def products() -> None:
    a, b = floats(200, 64), floats(64, 300)
    ever(lambda: smemkern.gemm(a, b, variant="naive", device="cuda"))
    ever(lambda: smemkern.gemm(a, b, variant="naive", device="cuda", max_memory=300_000))


def several() -> None:
    a, b = floats(700, 32), floats(32, 300)
    for _ in range(2):
        ever(lambda: smemkern.gemm(a, b, variant="naive", devices=[0, 1]))


def transposes() -> None:
    a = floats(300, 500)
    for _ in range(3):
        ever(lambda: smemkern.transpose(a, variant="naive", device="cuda"))


def kernels_that_hang() -> None:
    spin = smemkern.Kernel(ADD.replace("entry add", "entry spin"), "spin")
    fake.kernels_hang = True
    x, y, z = floats(16), floats(16), floats(16)
    for _ in range(3):
        ever(lambda: spin(1, 1, x, y, z, np.uint64(16), device="cuda"))


def products_that_hang() -> None:
    a, b = floats(700, 32), floats(32, 300)
    fake.kernels_hang = fake.products_hang = True
    ever(lambda: smemkern.gemm(a, b, variant="naive", devices=[0, 1]))
    ever(lambda: smemkern.gemm(a, b, variant="naive", device="cuda", progress=lambda *done: None))


CASES = (products, several, transposes, kernels_that_hang, products_that_hang)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
    time.sleep(random.uniform(0, 0.3))
