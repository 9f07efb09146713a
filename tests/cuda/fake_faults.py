"""Each call of the driver fails, one at a time, until nothing is left that fails.

    python fake_faults.py OPERATION RESULT

Every failure is met in a process of its own, forked before the driver is opened, so the first calls
of a process fail too. There the operation either raises, with an exception that names the failure,
or has done without the call; nothing that the driver handed out is lost; and the same operation
works afterwards, or says that the context is lost. Prints how many calls failed.

Run by test_faults.py, with LD_LIBRARY_PATH set to the fake's folder.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

import numpy as np
from fake_exchange import FakeState
from fake_matrices import INTERFACE
from fake_textures import NAMED, SAMPLE, STORED

import smemkern

fake = FakeState.in_dll(ctypes.CDLL("libcuda.so.1"), "fake_cuda")
SECONDS, REACHED, NOT_REACHED, MOST = 20, 7, 8, 1000
LOST = range(700, 720)

rng = np.random.default_rng(3)
A, B = rng.standard_normal((300, 40), dtype="f4"), rng.standard_normal((40, 270), dtype="f4")
C, T = A @ B, np.ascontiguousarray(A.T)
ADD = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 n) { ret; }
"""
sample = smemkern.Kernel(SAMPLE, "sample")
sample_stored = smemkern.Kernel(STORED, "sample_stored")
sample_references = smemkern.Kernel(NAMED, "sample_references")
kernel = smemkern.Kernel(ADD, "add")  # the fake driver's own loop stands for it: z = x + y


def close(got: np.ndarray, want: np.ndarray) -> bool:
    return got.shape == want.shape and bool(np.allclose(got, want, atol=1e-4))


def direct() -> bool:
    c = smemkern.gemm(A, B, variant="naive", device="cuda")
    return close(c, C)


def blocks() -> bool:
    """Several blocks, through pinned memory, by several lanes."""
    c = smemkern.gemm(A, B, variant="naive", device="cuda", max_memory=500_000)
    return close(c, C)


def several_gpus() -> bool:
    c = smemkern.gemm(A, B, variant="naive", devices=[0, 1])
    return close(c, C)


def transpose() -> bool:
    y = smemkern.transpose(A, variant="naive", device="cuda", max_memory=150_000)
    return close(y, T)


def own_kernel() -> bool:
    z = np.zeros(100, "f4")
    kernel(1, 128, A[:3].ravel()[:100].copy(), A[3:6].ravel()[:100].copy(), z, 100, device="cuda")
    return close(z, A[:3].ravel()[:100] + A[3:6].ravel()[:100])


def textures() -> bool:
    """A texture and a surface: arguments, handles in an array, and variables."""
    image, out, stored = A[:3].copy(), np.zeros((3, 40), "f4"), np.zeros((3, 40), "f4")
    texture, surface = smemkern.Texture(image), smemkern.Surface(stored)
    sample(1, 32, texture, smemkern.Surface(out), device="cuda")
    handles = np.array([texture.handle, surface.handle], np.uint64)
    sample_stored(1, 32, handles, textures=[texture, surface], device="cuda")
    result = np.zeros((3, 40), "f4")
    named = {"image": texture, "result": smemkern.Surface(result)}
    sample_references(1, 32, textures=named, device="cuda")
    return all(np.array_equal(got, image) for got in (out, stored, result))


def timed() -> bool:
    lines = smemkern.bench(
        [(64, 64, 32)], variants=["naive"], device="cuda:0", dtypes=["float32"], seconds=1e-6
    )
    return len(lines) == 1


def arrays() -> bool:
    """Arrays in the GPU's memory: nothing of the driver's fails while they are made."""
    number, fake.fail_number, calls = fake.fail_number, 0, fake.calls
    if not held:
        held.extend(INTERFACE(x) for x in (A, B, np.zeros_like(C)))
    a, b, out = held
    out.host[:] = 0
    fake.calls, fake.fail_number = calls, number
    smemkern.gemm(a, b, variant="naive", out=out)
    return close(out.host, C)


def trim() -> bool:
    direct()
    smemkern.empty_cache()
    return True


held: list = []
OPERATIONS = {
    f.__name__: f
    for f in (direct, blocks, several_gpus, transpose, own_kernel, textures, timed, arrays, trim)
}


def nothing_lost(own: int) -> None:
    """Of what the driver counts; arrays of the test's own aside."""
    fake.sticky = 0
    fake.fail_number = 0
    for device in ("cuda:0", "cuda:1"):
        smemkern.empty_cache(device)
    blocks, _streams, events, _modules = fake.alive
    assert blocks == own, f"{blocks - own} blocks of the device's memory"
    assert events == 0, f"{events} events"
    assert list(fake.textures) == [0, 0], f"{list(fake.textures)} arrays and objects"
    assert fake.contexts_pushed == 0, f"{fake.contexts_pushed} contexts"
    assert fake.pinned_bytes == 0, f"{fake.pinned_bytes} bytes of pinned memory"


def one(operation: str, number: int, result: int) -> int:
    """In a process of its own."""
    run = OPERATIONS[operation]
    fake.calls, fake.fail_number, fake.fail_result = 0, number, result
    error = None
    try:
        assert run(), "a wrong result"
    except (smemkern.Error, MemoryError, ValueError) as raised:
        error = raised
    if fake.failed_call is None:
        assert error is None, error
        nothing_lost(len(held))
        return NOT_REACHED
    call = fake.failed_call.decode()
    if error is not None:
        text = str(error)
        missing = call == "cuGetProcAddress" and "lacks cu" in text
        assert len(text) > 20 and (str(result) in text or call in text or missing), text
    started = call not in ("cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuGetProcAddress")
    if result in LOST and error is not None:
        try:
            assert run() and not fake.sticky, "works though the context is lost"
        except (smemkern.LaunchError, smemkern.NoDeviceError) as lost:
            assert "lost" in str(lost) or str(lost) == str(error), lost
    elif result in LOST:
        pass  # the operation was done without the call that failed
    elif started or error is None:
        assert run(), "the next call"
    else:
        try:
            run()
        except (smemkern.Error, MemoryError) as again:
            assert str(again) == str(error), again
    tolerant = call in ("cuMemFreeAsync", "cuMemFree", "cuEventDestroy", "cuMemFreeHost")
    tolerant |= call in ("cuArrayDestroy", "cuTexObjectDestroy", "cuSurfObjectDestroy")
    tolerant |= call in ("cuCtxPopCurrent", "cuStreamDestroy") or result in LOST or not started
    if not tolerant:
        nothing_lost(len(held))
    return REACHED


def fork_one(operation: str, number: int, result: int) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)  # kills: a deadlock is a failure, too
        try:
            os._exit(one(operation, number, result))
        except BaseException as error:
            call = fake.failed_call and fake.failed_call.decode()
            print(f"{operation}, call {number} ({call}) = {result}: {error!r}", flush=True)
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        print(f"{operation}, call {number} = {result}: signal {os.WTERMSIG(status)}", flush=True)
    return os.waitstatus_to_exitcode(status)


def main(operation: str, result: int) -> int:
    wrong, number, started = 0, 0, time.monotonic()
    while number < MOST:
        number += 1
        answer = fork_one(operation, number, result)
        if answer == NOT_REACHED:
            break
        wrong += answer != REACHED
    print(f"{operation}: {number - 1} calls failed, {time.monotonic() - started:.1f} s", flush=True)
    return 1 if wrong or number == MOST else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
