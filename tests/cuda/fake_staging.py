"""Where the bytes of calls on NumPy arrays pass, on a fake driver: python fake_staging.py CASE.

Slots and the threads that fill them, memory that is pinned already, results that keep theirs.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

import numpy as np
from fake_flows import driver, fake, floats, gemm, transpose

import smemkern


def pinned(rows: int, columns: int) -> np.ndarray:
    memory = ctypes.c_void_p()
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxPushCurrent(context)
    assert not driver.cuMemHostAlloc(ctypes.byref(memory), ctypes.c_size_t(4 * rows * columns), 0)
    driver.cuCtxPopCurrent(ctypes.byref(context))
    array = (ctypes.c_float * (rows * columns)).from_address(memory.value)
    return np.frombuffer(array, np.float32).reshape(rows, columns)


def direct() -> None:
    """Pinned arrays are read and written where they are."""
    a, b, out = pinned(700, 64), pinned(64, 900), pinned(700, 900)
    a[:], b[:] = floats(700, 64), floats(64, 900)
    gemm(a, b, out=out, max_memory=1_000_000)
    moved = smemkern.last_transfer()
    assert moved.bytes_in >= a.nbytes + b.nbytes and moved.bytes_out == out.nbytes
    assert moved.bytes_direct == moved.bytes_in + moved.bytes_out
    gemm(a, b.copy(), out=out)
    moved = smemkern.last_transfer()
    assert moved.bytes_direct == a.nbytes + out.nbytes
    transpose(out, max_memory=1_000_000)


def far() -> None:
    """Short lines of much pinned memory are staged, and what comes beside them, too."""
    a, wide, narrow, out = pinned(4, 8300), pinned(8300, 2100), pinned(8300, 1900), pinned(4, 2100)
    for x in (a, wide, narrow):
        x[:] = floats(*x.shape)
    gemm(a, narrow)  # a block's lines follow each other
    moved = smemkern.last_transfer()
    assert moved.bytes_direct == moved.bytes_in == a.nbytes + narrow.nbytes
    gemm(a, wide, out=out)
    moved = smemkern.last_transfer()
    assert moved.bytes_staged == moved.bytes_in == a.nbytes + wide.nbytes
    assert moved.bytes_direct == out.nbytes


def early() -> None:
    """Threads fill slots while memory is allocated, all slots if need be; or it cannot be had."""
    fake.allocation_ms = 30
    for device, call in (("cuda:0", b"cuMemAllocFromPoolAsync"), ("cuda:1", b"cuMemAlloc")):
        fake.no_pools = device == "cuda:1"
        for m, n, k in ((1500, 8, 520), (4096, 8, 1100), (64, 1500, 700)):
            a, b = floats(m, k), floats(k, n)
            direct = pinned(m, k)
            direct[:] = a
            assert np.array_equal(gemm(direct, b, device), gemm(a, b, device))
            for nth in (1, 2, 3):
                fake.fail_result, fake.fail_countdown, fake.fail_call = 1, nth, call
                try:
                    gemm(a, b, device)
                except smemkern.Error as error:
                    assert call.decode() in str(error)
                else:
                    raise AssertionError(f"allocation {nth} failed, and nothing was said")
            gemm(a, b, device)
        smemkern.empty_cache(device)
    fake.allocation_ms = 0
    assert fake.alive[0] == 0 and fake.used_bytes == 0 and fake.contexts_pushed == 0


def measured() -> None:
    """What a call moved took no longer because its kernel was then timed many times."""
    a, b = floats(200, 100), floats(100, 200)
    started = time.perf_counter()
    smemkern._measure("gemm", a, b, variant="naive", device="cuda", repeat=200)
    taken = time.perf_counter() - started
    assert 0 < smemkern.last_transfer().seconds < taken / 4


def memory() -> None:
    """A result keeps its memory for the next one; what the host cannot hold is refused first."""
    a, b = floats(1500, 3), floats(3, 1500)
    c = gemm(a, b)
    place = c.ctypes.data
    assert c.flags.owndata and c.flags.writeable
    del c
    assert smemkern.last_transfer().bytes_direct == 0
    c = gemm(a, b)
    assert c.ctypes.data == place
    assert smemkern.last_transfer().bytes_direct == c.nbytes  # pinned, for it is used again
    expected = c.copy()
    c.resize((10, 1500))
    assert np.array_equal(c, expected[:10]) and c.flags.owndata
    c.resize((2000, 1500))
    assert np.array_equal(c[:10], expected[:10]) and not c[10:].any()
    del c
    kept = [gemm(a, b) for _ in range(20)]
    assert len({x.ctypes.data for x in kept}) == 20
    del kept
    assert smemkern.empty_cache() > 9_000_000
    assert smemkern.empty_cache() == 0
    gemm(a, b)
    before = fake.pinned_bytes  # the slots
    for _ in range(2):  # ten results at a time: eight are kept, and pinned when they are used again
        kept = [gemm(a, b) for _ in range(10)]
        more = [gemm(a, b[:, :700]) for _ in range(10)]
        del kept
    pinned = fake.pinned_bytes
    assert pinned - before >= 8 * 9_000_000
    del more
    assert fake.pinned_bytes == pinned  # the end of an array waits for no GPU ...
    gemm(a, b)
    assert fake.pinned_bytes < pinned  # ... and the next call lets go
    assert smemkern.empty_cache() > 9_000_000
    before = smemkern.last_transfer()
    tall = np.broadcast_to(np.float32(1), (1 << 20, 1))
    try:
        smemkern.gemm(tall, tall.T, variant="naive", device="cuda")
    except MemoryError:
        assert smemkern.last_transfer() == before
    else:
        raise AssertionError("4 TiB")


def forks() -> None:
    """What was pinned before a fork is pinned anew before it is used: pages may have moved."""
    a, b = floats(1500, 3), floats(3, 1500)
    for _ in range(3):
        c = gemm(a, b)
        expected = c.copy()
        del c
    assert driver.fake_registrations() == 1
    c = gemm(a, b)
    child = os.fork()
    if child == 0:
        fine = np.array_equal(c, expected)
        del c
        os._exit(not fine)
    assert os.waitpid(child, 0)[1] == 0
    del c
    assert np.array_equal(gemm(a, b), expected)
    assert smemkern.last_transfer().bytes_direct == expected.nbytes
    assert driver.fake_registrations() == 2
    assert smemkern.empty_cache() > 0


CASES = (
    direct,
    far,
    early,
    measured,
    memory,
    forks,
)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
