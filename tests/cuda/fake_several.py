"""Products of NumPy arrays on several GPUs, on a fake driver: python fake_several.py CASE."""

from __future__ import annotations

import itertools
import signal
import sys

import numpy as np
from fake_flows import fake, floats, gemm
from fake_staging import pinned

import smemkern


def gemm_on(a: np.ndarray, b: np.ndarray, devices: list) -> np.ndarray:
    return smemkern.gemm(a, b, variant="naive", devices=devices)


def refused(a: np.ndarray, b: np.ndarray, **keywords: object) -> None:
    try:
        smemkern.gemm(a, b, variant="naive", **keywords)
    except ValueError as error:
        assert "devices" in str(error)
    else:
        raise AssertionError(f"{keywords} must be refused")


def several() -> None:
    """Two GPUs have a half each: the same bits."""
    for m, n, k in ((700, 900, 64), (300, 1000, 20), (100, 90, 8), (1, 1, 1), (0, 5, 3)):
        a, b = floats(m, k), floats(k, n)
        for devices in ([0, 1], ["cuda:1", "cuda:0"], [0, 0, 1], [1]):
            assert np.array_equal(gemm_on(a, b, devices), gemm(a, b))
        assert np.array_equal(gemm_on(a.T.copy().T, np.asfortranarray(b), [0, 1]), gemm(a, b))
        out = floats(m, n)
        expected = (out - 2 * a.astype(np.float64) @ b).astype(np.float32)
        smemkern.gemm(a, b, variant="naive", devices=[0, 1], alpha=-2, beta=1, out=out)
        np.testing.assert_allclose(out, expected, atol=1e-4)
    a, b = floats(5, 40, 30), floats(30, 20)
    assert np.array_equal(gemm_on(a, b, [0, 1]), gemm(a, b))
    for devices in ([], "cuda", [-1], [0.5], ["emu"], [0] * 17, 3):
        refused(a, b, devices=devices)
    refused(a, b, devices=[0], device="cuda")
    try:
        gemm_on(a, b, [0, 7])
    except smemkern.NoDeviceError as error:
        assert "cuda:7" in str(error)
    else:
        raise AssertionError("there are two devices")


def common() -> None:
    """What all GPUs read goes through pinned memory once, and over one bus; over each, where they
    do not reach each other's memory."""
    a, b = floats(2100, 4), floats(4, 2200)
    before = floats(2100, 2200)
    cases = (a, b, a), (a, b[:, :2000], b[:, :2000]), (a[::-1], b, a)
    for fake.no_peers, (x, y, of_all) in itertools.product((True, False), cases):
        whole = gemm(x, y)
        once = x.nbytes + y.nbytes
        for devices in ([0], [0, 1], [1, 0, 1]):
            peers = not fake.no_peers
            out = before[:, : y.shape[1]].copy()
            counted = fake.bytes_in, fake.bytes_peer
            smemkern.gemm(x, y, variant="naive", devices=devices, out=out)
            assert np.array_equal(out, whole)
            moved = smemkern.last_transfer()
            again = (len(devices) - 1) * of_all.nbytes
            assert moved.bytes_in == once + (0 if peers else again)
            assert moved.bytes_peer == (again if peers else 0)
            assert moved.bytes_staged == once + out.nbytes
            now = fake.bytes_in, fake.bytes_peer
            assert np.array_equal(np.subtract(now, counted), (moved.bytes_in, moved.bytes_peer))
    shared = pinned(2100, 4)  # staged too, as each would read it from there
    shared[:] = a
    for devices, staged in (([0], 0), ([0, 1], a.nbytes)):
        smemkern.gemm(shared, b, variant="naive", devices=devices, out=before)
        moved = smemkern.last_transfer()
        assert moved.bytes_direct == a.nbytes - staged
        assert moved.bytes_staged == staged + b.nbytes + moved.bytes_out
        assert np.array_equal(before, gemm(a, b))
    gemm(a, b, max_memory=800_000)
    few = smemkern.gemm(a, b, variant="naive", devices=[0, 1], max_memory=800_000)
    assert np.array_equal(few, whole := gemm(a, b)) and whole.any()


def interrupts() -> None:
    """Ctrl-C while kernels run that do not end, on one GPU and on two; the next call is right."""
    a, b = floats(3000, 20), floats(20, 2500)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    for devices in ([0], [0, 1], [0, 1, 0]):
        want = gemm_on(a, b, devices)
        fake.kernels_hang = fake.products_hang = True
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            gemm_on(a, b, devices)
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("it did not end, and nobody heard")
        fake.kernels_hang = fake.products_hang = False
        assert np.array_equal(gemm_on(a, b, devices), want)
    signal.signal(signal.SIGALRM, before)


CASES = (several, common, interrupts)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
