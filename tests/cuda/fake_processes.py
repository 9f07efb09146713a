"""Processes and device "cuda": a fork after the driver was used is refused, one before is not.

Run by test_faults.py, with LD_LIBRARY_PATH set to the fake's folder.
"""

from __future__ import annotations

import multiprocessing
import os
import signal

import numpy as np

import smemkern

A = np.arange(35, dtype="f4").reshape(5, 7)
WANT = A @ A.T


def product(_number: int = 0) -> bool:
    return bool(np.array_equal(smemkern.gemm(A, A.T, variant="naive", device="cuda"), WANT))


def in_child(work) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            os._exit(work())
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refused() -> int:
    for _ in range(2):
        try:
            product()
        except smemkern.Error as error:
            assert "fork" in str(error) and "spawn" in str(error), error
        else:
            return 4
    a = smemkern.gemm(A, A.T, device="emu")
    assert np.array_equal(a, WANT), "the emulator still works"
    return 3


if __name__ == "__main__":
    assert in_child(lambda: 3 if product() else 4) == 3, "a fork before the first use"
    assert product()
    assert in_child(refused) == 3
    assert product()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(product, range(3)) == [True] * 3
    print("right")
