"""Calls on NumPy arrays and device "cuda", on a fake driver: python fake_flows.py CASE.

Blocks, their order, limits and threads are real; only the kernels are C loops.
"""

from __future__ import annotations

import ctypes
import sys
import threading

import numpy as np
from fake_exchange import FakeState

import smemkern

random = np.random.default_rng(7)
driver = ctypes.CDLL("libcuda.so.1")
fake = FakeState.in_dll(driver, "fake_cuda")


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape, dtype=np.float32)


def gemm(a: np.ndarray, b: np.ndarray, device: str = "cuda", **keywords: object) -> np.ndarray:
    """The product, checked against float64."""
    c = smemkern.gemm(a, b, variant="naive", device=device, **keywords)
    a, b = a.astype(np.float64), b.astype(np.float64)
    assert c.dtype == np.float32
    if c.size < 1 << 20:
        check(c, a, b)
    else:  # of a large matrix some rows at a time, which stay in the caches
        assert c.ndim == 2 and len(c) == len(a)
        for first in range(0, len(a), 64):
            check(c[first : first + 64], a[first : first + 64], b)
    return c


def check(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    exact, bound = a @ b, 1e-6 * (np.abs(a) @ np.abs(b)) + 1e-30
    assert c.shape == exact.shape
    assert np.all(np.abs(c - exact) <= bound)


def transpose(x: np.ndarray, **keywords: object) -> np.ndarray:
    y = smemkern.transpose(x, variant="naive", device="cuda", **keywords)
    assert y.flags.c_contiguous and np.array_equal(y, np.swapaxes(x, -1, -2))
    return y


def blocks() -> None:
    """Whatever the limit, the same bits; and an error where not even the least blocks fit."""
    a, b = floats(700, 64), floats(64, 900)
    whole = gemm(a, b)
    for limit in (4_000_000, 3_000_000, 2_000_000, 1_000_000, 800_000, 500_000, 300_000):
        assert np.array_equal(gemm(a, b, max_memory=limit), whole)
    for wide, tall in ((1, 3000), (3000, 1), (129, 2000), (2000, 129)):
        x, y = floats(wide, 40), floats(40, tall)
        assert np.array_equal(gemm(x, y, max_memory=800_000), gemm(x, y))
    try:
        gemm(a, b, max_memory=200_000)
    except MemoryError as error:
        assert "200000" in str(error) and "262144" in str(error)
    else:
        raise AssertionError("200 kB cannot hold the blocks of 128")


def edges() -> None:
    for m, n, k in ((2500, 2100, 3), (1, 1, 5), (0, 3, 5), (3, 4, 0), (129, 1, 300), (1, 2049, 2)):
        gemm(floats(m, k), floats(k, n))
    gemm(floats(7), floats(7))
    gemm(floats(3, 7), floats(7))
    gemm(floats(7), floats(7, 3))


def strides() -> None:
    a, b = floats(300, 70), floats(70, 400)
    gemm(np.asfortranarray(a), b)
    gemm(a, np.asfortranarray(b))
    gemm(a[::-1], b[:, ::2])
    gemm(a[:, ::-1], b[::-1])
    gemm(a[:, 3:4], b[:1])
    gemm(np.broadcast_to(a[:1], a.shape), b)
    gemm(a.astype(">f4").astype("f4"), b)
    a, b = floats(500, 30), floats(30, 600)
    for x in (a, np.asfortranarray(a), a[::-1], a[:, ::-1]):
        for y in (b, np.asfortranarray(b), b[:, ::-1], b[::-1]):
            whole = gemm(x, y)
            for limit in (900_000, 400_000, 300_000):
                assert np.array_equal(gemm(x, y, max_memory=limit), whole)


def batches() -> None:
    for x, y in (
        ((5, 40, 30), (5, 30, 20)),
        ((5, 40, 30), (30, 20)),
        ((40, 30), (5, 30, 20)),
        ((3, 5, 40, 30), (5, 30, 20)),
        ((3, 1, 40, 30), (1, 5, 30, 20)),
        ((1, 300, 40), (1, 40, 300)),
        ((1, 1, 300, 40), (40, 300)),
        ((0, 40, 30), (0, 30, 20)),
    ):
        a, b = floats(*x), floats(*y)
        assert np.array_equal(gemm(a, b, max_memory=150_000_000), gemm(a, b))
    gemm(floats(5, 3, 40, 30).swapaxes(0, 1), floats(3, 5, 30, 20))
    a, b = floats(50, 40, 30), floats(50, 30, 20)
    assert np.array_equal(gemm(a, b, max_memory=100_000), gemm(a, b))


def large_batches() -> None:
    """Matrices that are larger than the memory: each is cut. And batches whose bytes lie mixed."""
    limits = (None, 1_000_000, 620_000)
    for x, y in (
        ((3, 300, 20), (3, 20, 260)),
        ((3, 300, 20), (20, 260)),
        ((300, 20), (3, 20, 260)),
        ((2, 3, 300, 20), (3, 20, 260)),
        ((2, 1, 300, 20), (1, 3, 20, 260)),
        ((1, 2, 1, 500, 9), (9, 300)),
    ):
        a, b = floats(*x), floats(*y)
        whole = gemm(a, b)
        for limit in limits[1:]:
            assert np.array_equal(gemm(a, b, max_memory=limit), whole)
        for devices in ([0, 1], [1]):
            made = smemkern.gemm(a, b, variant="naive", devices=devices, max_memory=620_000)
            assert np.array_equal(made, whole)
    mixed = floats(300, 3, 20).swapaxes(0, 1)  # its matrices' rows take turns in memory
    turned = np.asfortranarray(floats(3, 300, 20))
    for a in (mixed, turned, mixed[:, ::-1], mixed[::-1]):
        b = floats(3, 20, 260)
        whole = gemm(a, b)
        for limit in limits:
            out = np.ones((3, 300, 260), "f4")
            smemkern.gemm(
                a, b, variant="naive", device="cuda", out=out, beta=2, alpha=-1, max_memory=limit
            )
            np.testing.assert_allclose(out, 2 - whole, atol=1e-4)
            transpose(a, max_memory=limit)
    a, b = floats(2, 5800, 1), floats(2, 1, 5800)  # large enough to be cut where all fits
    large = smemkern.gemm(a, b, variant="naive", device="cuda")
    assert all(np.array_equal(large[i], a[i] * b[i]) for i in range(2))
    assert smemkern.last_transfer().steps > 100
    transpose(np.broadcast_to(floats(700, 600), (4, 700, 600)), max_memory=800_000)
    transpose(floats(2, 3, 300, 500), max_memory=600_000)
    try:
        gemm(floats(3, 300, 64), floats(3, 64, 260), max_memory=100_000)
    except MemoryError as error:
        assert "100000" in str(error)
    else:
        raise AssertionError("100 kB cannot hold the blocks of 128")


def results() -> None:
    """out is written in place where nothing else is in the way; alpha and beta; overlap."""
    a, b, before = floats(700, 64), floats(64, 900), floats(700, 900)
    for limit in (None, 1_000_000):
        out = np.full((700, 900), np.nan, np.float32)
        assert gemm(a, b, out=out, max_memory=limit) is out
        for given in (before.copy(), np.asfortranarray(before)):
            made = smemkern.gemm(
                a, b, variant="naive", device="cuda", out=given, alpha=-1, beta=2, max_memory=limit
            )
            assert made is given
            np.testing.assert_allclose(given, 2 * before - a @ b, atol=1e-3)
    square = floats(300, 300)
    exact = square.astype(np.float64) @ square
    smemkern.gemm(square, square, variant="naive", device="cuda", out=square)
    np.testing.assert_allclose(square, exact, atol=1e-3)


def transposes() -> None:
    for shape in ((300, 200), (4097, 33), (1, 7), (7, 1), (2500, 2300), (3, 40, 50), (0, 5)):
        for limit in (None, 600_000):
            x = floats(*shape)
            transpose(x, max_memory=limit)
            transpose(np.asfortranarray(x), max_memory=limit)
    transpose(floats(20, 100, 100), max_memory=600_000)
    transpose(floats(4, 3, 100, 100).swapaxes(0, 1))
    for columns in (2, 3, 9):  # one row, whose elements lie apart
        x = floats(2, 2 * columns)[::2, 1::2]
        y = smemkern.transpose(x, variant="sector_aligned", device="cuda")
        assert np.array_equal(y, x.T)
    x = floats(300, 300)
    y = x.T.copy()
    assert smemkern.transpose(x, variant="naive", device="cuda", out=x) is x
    assert np.array_equal(x, y)


def expected() -> None:
    """The smaller operand is one block where the product is known to take little time."""

    def steps(m: int, n: int, variant: str, microseconds: float) -> int:
        timing = ("gemm", variant, {}, "float32", 16, 0, (microseconds, *[0] * 5))
        smemkern._core.set_timings(0, [timing])
        gemm(floats(m, 4), floats(4, n))
        return smemkern.last_transfer().steps

    for m, n, otherwise, known in (
        (2100, 2100, 2 + 2 + 2 * 4, 1 + 4 + 2 * 4),  # by 2 x 2 blocks; by 4 of A
        (2100, 4200, 2 + 4 + 2 * 8, 1 + 4 + 2 * 4),  # 2 x 4; 4 of B
        (600, 64, 3 + 1, 3 + 1),
    ):
        assert steps(m, n, "naive", 0.001) == known
        assert steps(m, n, "naive", 1000) == steps(m, n, "tiled", 0.001) == otherwise
    smemkern._core.set_timings(0, None)


def threads() -> None:
    """Calls from many threads at once."""
    errors = []

    def many(seed: int) -> None:
        own = np.random.default_rng(seed)
        try:
            for _ in range(10):
                m, n, k = own.integers(1, 400, 3)
                gemm(floats(m, k), floats(k, n), max_memory=1_500_000)
                transpose(floats(m, n))
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=many, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors, errors


def kept() -> None:
    """What products make of a block is made once, and of that block; the same bits where it is not
    kept: in less memory, and where each operand has a block."""
    for turned_a, turned_b in ((False, False), (True, False), (False, True), (True, True)):
        a, b = floats(2100, 3), floats(3, 3100)
        a = np.asfortranarray(a) if turned_a else a
        b = np.asfortranarray(b) if turned_b else b
        exact = a.astype("f8") @ b
        launches = fake.launches
        whole = smemkern.gemm(a, b, variant="tf32x3", split=1, device="cuda")
        assert np.abs(whole - exact).max() < 1e-4
        # 2 x 3 products; A0 and B0 are made together, then A1, B1 and B2
        assert fake.launches - launches == 6 + 4
        for devices in ([0], [0, 1], [1, 0, 1]):
            for limit in (None, 6_000_000):
                made = smemkern.gemm(
                    a, b, variant="tf32x3", split=1, devices=devices, max_memory=limit
                )
                assert np.array_equal(made, whole)
    a, b = floats(3, 5800, 1), floats(3, 1, 5800)  # cut, one after the other, in the same slots
    large = smemkern.gemm(a, b, variant="tf32x3", split=1, device="cuda")
    assert all(np.array_equal(large[i], a[i] * b[i]) for i in range(3))


def kept_of_runs() -> None:
    """Runs of columns of blocks stay, by turns: what is found of a run serves all rows but those
    that its columns met one by one."""

    def product(x: np.ndarray, y: np.ndarray, **keywords: object) -> np.ndarray:
        return smemkern.gemm(x, y, variant="tf32x3", split=1, **keywords)

    for m, n, k, limit in ((1000, 1900, 40, 1_200_000), (400, 700, 1100, 5_000_000)):
        a, b = floats(m, k), floats(k, n)
        whole = product(a, b, device="cuda")
        assert np.abs(whole - a.astype("f8") @ b).max() < 1e-3
        searched = fake.searched
        assert np.array_equal(product(a, b, device="cuda", max_memory=limit), whole)
        assert fake.searched - searched == 2 * b.size
    a, b = floats(1000, 40), floats(40, 1900)
    for x, y in ((a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b))):
        whole = product(x, y, device="cuda")
        assert np.array_equal(product(x, y, devices=[0, 1], max_memory=1_200_000), whole)


def progress() -> None:
    """A function hears of the end; what it raises is raised; a bar needs tqdm."""
    a, b = floats(700, 64), floats(64, 900)
    heard: list[tuple[int, int]] = []
    gemm(a, b, progress=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (4 * 700 * 900,) * 2 and heard == sorted(heard)
    transpose(a, progress=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (a.nbytes,) * 2

    def fail(done: int, total: int) -> None:
        raise RuntimeError("enough")

    try:
        gemm(a, b, progress=fail)
    except RuntimeError as error:
        assert str(error) == "enough"
    else:
        raise AssertionError("an exception must not get lost")
    try:
        gemm(a, b, progress=3)
    except TypeError as error:
        assert "progress" in str(error)
    else:
        raise AssertionError("3 is no function")
    gemm(a, b, progress=False)
    try:
        import tqdm  # noqa: F401
    except ImportError:
        try:
            gemm(a, b, progress=True)
        except ImportError as error:
            assert "pip install tqdm" in str(error)
    else:
        gemm(a, b, progress=True)


CASES = (
    blocks,
    edges,
    strides,
    batches,
    large_batches,
    results,
    transposes,
    expected,
    threads,
    kept,
    kept_of_runs,
    progress,
)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
