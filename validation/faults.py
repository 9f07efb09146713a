"""Provokes faults of a real GPU, each in its own process, and records what Python calls raise.

    python validation/faults.py                   # all of them, into results/faults-<gpu>.json
    python validation/faults.py --only trap fork  # some, into the same file

For each call a case records the exception and the time: for the failing call, for later calls of
the same process, and for a new process, where the GPU must work. Needs only NumPy. The tests run
this on the fake driver, which simulates kernels of the same names.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "benchmarks"), str(HERE.parent)]

import records  # noqa: E402
import smemkern  # noqa: E402

Record = dict[str, Any]
MB = 1 << 20
SECONDS = 120  # limit per case
PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 n)
{
    .reg .u64 %x, %y, %z, %n, %i; .reg .u32 %t, %b, %d; .reg .f32 %u, %v; .reg .pred %out;
    ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u64 %z, [z]; ld.param.u64 %n, [n];
    mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x; mad.lo.u32 %t, %b, %d, %t;
    cvt.u64.u32 %i, %t; setp.ge.u64 %out, %i, %n; @%out ret;
    shl.b64 %i, %i, 2; add.u64 %x, %x, %i; add.u64 %y, %y, %i; add.u64 %z, %z, %i;
    ld.global.f32 %u, [%x]; ld.global.f32 %v, [%y]; add.f32 %u, %u, %v; st.global.f32 [%z], %u;
    ret;
}
.visible .entry crash(.param .u64 x)
{
    .reg .u64 %x;
    ld.param.u64 %x, [x]; mov.u64 %x, 64; st.global.u32 [%x], 1; ret;
}
.visible .entry trap(.param .u64 x) { trap; }
.visible .entry spin(.param .u64 x, .param .u32 rounds)
{
    .reg .u64 %x; .reg .u32 %left, %sum; .reg .pred %more;
    ld.param.u64 %x, [x]; ld.param.u32 %left, [rounds]; mov.u32 %sum, 0;
AGAIN:
    st.volatile.global.u32 [%x], %sum; add.u32 %sum, %sum, 1; sub.u32 %left, %left, 1;
    setp.ne.u32 %more, %left, 0; @%more bra AGAIN;
    ret;
}
"""
ADD, CRASH, TRAP, SPIN = (smemkern.Kernel(PTX, name) for name in ("add", "crash", "trap", "spin"))
ROUNDS = np.uint32(500_000_000)  # some seconds
PATIENCE = 0.25  # seconds
A = np.arange(35, dtype="f4").reshape(5, 7)


def attempt(call: Callable[[], Any]) -> Record:
    """The exception of a call, or whether its result is true, and the seconds it takes."""
    start = time.perf_counter()
    try:
        record = {"right": bool(call())}
    except (Exception, KeyboardInterrupt) as error:
        record = {"raised": type(error).__name__, "message": str(error)}
    return record | {"seconds": round(time.perf_counter() - start, 4)}


def adds(count: int = 100) -> bool:
    x, z = np.arange(count, dtype="f4"), np.zeros(count, "f4")
    ADD(-(-count // 256), 256, x, x, z, count, device="cuda")
    return bool((z == 2 * x).all())


def multiplies(device: str = "cuda") -> bool:
    return bool((smemkern.gemm(A, A.T, variant="naive", device=device) == A @ A.T).all())


def spins(x: np.ndarray, seconds: float | None = None) -> bool:
    SPIN(1, 1, x, ROUNDS, device="cuda", timeout=seconds)
    return bool(x[0] != 7)


def afterwards() -> Record:
    return {
        "the next kernel": attempt(adds),
        "the next product": attempt(multiplies),
        "the emulator": attempt(lambda: multiplies("emu")),
        "empty_cache": attempt(lambda: smemkern.empty_cache() >= 0),
    }


# ---- direct calls of the driver in the context that smemkern uses


@contextlib.contextmanager
def driver() -> Iterator[Callable[..., int]]:
    """call(name, *arguments), which calls libcuda in the primary context of the first GPU."""
    library = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: Any) -> int:
        # Names without the suffix _v2 are the interface of 2007, with 32-bit addresses.
        return (getattr(library, f"{name}_v2", None) or getattr(library, name))(*arguments)

    context = ctypes.c_void_p()
    call("cuInit", 0)
    if library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        raise SystemExit("the driver gives no context")
    call("cuCtxPushCurrent", context)
    try:
        yield call
    finally:
        call("cuCtxPopCurrent", ctypes.byref(context))


def fill(call: Callable[..., int], keep: int) -> list[ctypes.c_uint64]:
    """Allocates all GPU memory but about `keep` bytes."""
    blocks, size = [], 1 << 36
    while size >= keep // 2:
        block = ctypes.c_uint64()
        if call("cuMemAlloc", ctypes.byref(block), ctypes.c_size_t(size)):
            size //= 2
        else:
            blocks.append(block)
    return blocks


class OnGpu:
    """Floats on the GPU with the __cuda_array_interface__ of other libraries."""

    def __init__(self, call: Callable[..., int], count: int) -> None:
        self.address, self.count = ctypes.c_uint64(), count
        if call("cuMemAlloc", ctypes.byref(self.address), ctypes.c_size_t(4 * count)):
            raise SystemExit("the driver gives no memory")

    @property
    def __cuda_array_interface__(self) -> Record:
        data = (self.address.value, False)
        return {"shape": (self.count,), "typestr": "<f4", "data": data, "version": 3}


# ---- the cases


def out_of_memory() -> Record:
    """Another library occupies all but some 32 MB, and a call needs 3 x 64 MB."""
    assert adds()
    with driver() as call:
        blocks = fill(call, 32 * MB)
        large = np.ones((4096, 4096), "f4")
        record = {
            "a kernel": attempt(lambda: adds(16 * MB)),
            "a transpose": attempt(
                lambda: (smemkern.transpose(large, device="cuda") == large.T).all()
            ),
            "a small kernel": attempt(adds),
        }
        for block in blocks:
            call("cuMemFree", block)
    return record | {"once it is free": attempt(lambda: adds(16 * MB))}


def trap() -> Record:
    assert adds()
    x = np.full(4, 7, "f4")
    return {"a kernel": attempt(lambda: TRAP(1, 1, x, device="cuda")), "its array": x[0] == 7}


def illegal_address() -> Record:
    assert adds()
    x = np.full(4, 7, "f4")
    return {"a kernel": attempt(lambda: CRASH(1, 1, x, device="cuda")), "its array": x[0] == 7}


def illegal_address_on_the_gpu() -> Record:
    """Calls on GPU arrays return before the kernel ends, so a later call raises the error."""
    assert adds()
    with driver() as call:
        x = OnGpu(call, 4)
        return {
            "a kernel": attempt(lambda: CRASH(1, 1, x) is None),
            "the same, at once": attempt(lambda: CRASH(1, 1, x) is None),
            "half a second later": attempt(lambda: time.sleep(0.5) or CRASH(1, 1, x) is None),
        }


def timeout() -> Record:
    """The call returns and the kernel continues; the next call may have to wait for it."""
    assert adds()
    x = np.full(4, 7, "f4")
    record = {
        "a kernel": attempt(lambda: spins(x, PATIENCE)),
        "its array": bool((x == 7).all()),
    }
    return record | {"the same, to its end": attempt(lambda: spins(x))}


def exit_while_it_runs() -> Record:
    """The process exits at once; the parent measures the time."""
    x = np.full(4, 7, "f4")
    return {"a kernel": attempt(lambda: spins(x, PATIENCE))}


def interrupted(call: Callable[[], Any], after: float) -> Record:
    """Like attempt, with a SIGINT after so many seconds; also the time from the signal on."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore SIGINT
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    record = attempt(call)
    with contextlib.suppress(KeyboardInterrupt):  # the signal may come after the call
        timer.join()
        time.sleep(0.01)
    return record | {"seconds_late": round(record["seconds"] - after, 4)}


def ctrl_c_in_a_kernel() -> Record:
    assert adds()
    x = np.full(4, 7, "f4")
    record = interrupted(lambda: spins(x), 0.5)
    return {"a kernel": record, "its array": bool((x == 7).all())}


def ctrl_c_in_a_product(n: int) -> Record:
    """A product of host arrays in blocks; `out` may have part of the result."""
    a, out = np.ones((n, n), "f4"), np.zeros((n, n), "f4")
    assert multiplies()
    run = lambda: smemkern.gemm(a, a, out=out, variant="naive", device="cuda") is out  # noqa: E731
    record = interrupted(run, 1.5)
    return {
        "a product": record | {"shape": [n, n, n]},
        "its part of out": float(np.mean(out[:, 0] == n)),
    }


def in_fork(work: Callable[[], Record]) -> Record:
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            os.write(there, json.dumps(work()).encode())
            os._exit(0)
        except BaseException as error:
            os.write(there, json.dumps({"raised": repr(error)}).encode())
            os._exit(1)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        told = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return json.loads(told or "{}") | {"status": status}


def fork() -> Record:
    before = in_fork(lambda: attempt(multiplies))
    assert multiplies()
    after = in_fork(lambda: {"GPU": attempt(multiplies), "emu": attempt(lambda: multiplies("emu"))})
    return {"before the first use": before, "after it": after}


def spawned(_number: int) -> bool:
    return multiplies()


def spawn() -> Record:
    assert multiplies()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return {"two processes": attempt(lambda: all(pool.map(spawned, range(4))))}


def healthy() -> Record:
    return {}


CASES = {
    f.__name__: f
    for f in (
        *(out_of_memory, trap, illegal_address, illegal_address_on_the_gpu, timeout),
        *(exit_while_it_runs, ctrl_c_in_a_kernel, ctrl_c_in_a_product, fork, spawn, healthy),
    )
}


def one(name: str, size: int) -> None:
    case = CASES[name]
    record = case(size) if case is ctrl_c_in_a_product else case()
    if name != "exit_while_it_runs":
        record["afterwards"] = afterwards()
    print(json.dumps(record, default=bool), flush=True)


def portable(printed: str) -> str:
    """The text without the path of this tree."""
    return printed.replace(f"{HERE.parent}{os.sep}", "")


def in_process(name: str, size: int) -> Record:
    """Runs one case in a process; the record includes the exit status."""
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--case", name, "--size", str(size)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {"status": f"killed after {SECONDS} s"}
    record = {"status": done.returncode, "seconds": round(time.perf_counter() - start, 2)}
    told = done.stdout.strip().split("\n")[-1]
    if not told.startswith("{"):
        return record | {"printed": portable(done.stdout + done.stderr)[-2000:]}
    printed = {"printed": portable(done.stderr)[-500:]} if done.stderr else {}
    return record | json.loads(told) | printed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", choices=sorted(CASES), default=[])
    parser.add_argument("--case", choices=sorted(CASES), help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, default=16_384, help="of ctrl_c_in_a_product")
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    parser.add_argument("--commit", default=os.environ.get("SMEMKERN_COMMIT"))
    given = parser.parse_args()
    if given.case:
        one(given.case, given.size)
        return 0
    from gpu import nvidia_smi, output_of

    facts = {
        "gpu": smemkern.devices()[0].description,
        "driver": nvidia_smi("driver_version")[0],
        "date": datetime.date.today().isoformat(),
        "python": sys.version.split()[0],
    }
    commit = given.commit or output_of("git", "rev-parse", "--short=12", "HEAD")
    slug = re.sub(r"[^a-z0-9]+", "-", facts["gpu"].lower().removeprefix("nvidia ")).strip("-")
    path = given.results / f"faults-{slug}.json"
    known = records.load(path)["cases"] if records.stored(path) else {}
    cases: dict[str, Record] = {}
    for name in given.only or [name for name in CASES if name != "healthy"]:
        cases[name] = {"commit": commit, **in_process(name, given.size)}
        new = in_process("healthy", given.size)
        cases[name]["a new process"] = {
            "status": new["status"],
            "right": new.get("afterwards", {}).get("the next kernel", {}).get("right", False),
        }
        print(json.dumps({name: cases[name]}, indent=1), flush=True)
        # After each case, so that an interrupted run keeps its results.
        records.write(path, {**facts, "cases": known | cases})
    good = [case["status"] == 0 and case["a new process"]["right"] for case in cases.values()]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
