"""Runs random modules: on a device, and in the model."""

from __future__ import annotations

import ctypes
import hashlib
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache

import numpy as np
from module_frame import SLICE, TRAIL
from module_model import Exit, Shape, Thread
from module_writer import INPUT, OUTPUT, THREADS, UNTOUCHED, Launch, Module

SECONDS = 20  # that a kernel may take on a GPU
STACK = 8192  # bytes that a thread of a GPU gets: ptxas cannot tell what recursion takes

# Of each entry: what it leaves, and the lines it prints, sorted, as threads come in any order.
Left = list[tuple[np.ndarray, list[str]]]


def inputs(module: Module) -> np.ndarray:
    raw = hashlib.shake_128(f"module {module.seed}".encode()).digest(INPUT * THREADS)
    return np.frombuffer(raw, np.uint8)


def model(module: Module) -> Left:
    """What the entries leave, but for the last 8 bytes of a thread."""
    given, left = inputs(module).tobytes(), []
    for launch in module.entries:
        function = next(f for f in module.at.values() if f.name == launch.entry)
        out, printed = np.full((THREADS, OUTPUT), UNTOUCHED, np.uint8), []
        for me in range(launch.grid * launch.block):
            thread = Thread(module.variables.objects, me)
            for name in (*module.slices, *module.tiles):
                thread.own[name] = thread.new(SLICE)
            thread.own["trail"] = thread.new(8 * TRAIL)
            thread.own["in"] = thread.new(INPUT)
            own = given[INPUT * me : INPUT * (me + 1)]
            thread.write(thread.own["in"], INPUT, int.from_bytes(own, "little"))
            with suppress(Exit):
                function.call(thread, [bytes(8), bytes(8), *(bits for _, bits in launch.scalars)])
                out[me, : 8 * TRAIL] = list(thread.objects[thread.own["trail"] >> 32])
            printed += thread.printed
        left.append((out, sorted(printed)))
    return left


def argument(shape: Shape, bits: bytes) -> object:
    if shape.count:
        return bits
    letter = {"b": "u", "s": "i"}.get(shape.kind[0], shape.kind[0])
    return np.frombuffer(bits, f"{letter}{shape.size}")[0]


@cache
def driver() -> ctypes.CDLL:
    """CUDA's, with more stack for each thread."""
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    assert cuda.cuCtxSetLimit(0, ctypes.c_size_t(STACK)) == 0
    return cuda


@contextmanager
def printing(device: str, lines: list[str]) -> Iterator[None]:
    """Takes what kernels print. A GPU's lines come from the driver, to the process's stdout."""
    if device == "emu":
        text = io.StringIO()
        with redirect_stdout(text):
            yield
        lines += text.getvalue().splitlines()
        return
    cuda, libc = driver(), ctypes.CDLL(None)
    sys.stdout.flush()
    libc.fflush(None)
    kept = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield
            cuda.cuCtxSynchronize()
        finally:
            libc.fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        lines += file.read().decode().splitlines()


def run(module: Module, device: str) -> Left:
    """What the entries leave on a device."""
    import smemkern

    text = module.text()

    def launched(launch: Launch, out: np.ndarray, scalars: list[object]) -> None:
        kernel = smemkern.Kernel(text, launch.entry)
        limit = {"timeout": SECONDS} if device == "cuda" else {}
        kernel(launch.grid, launch.block, out, inputs(module), *scalars, device=device, **limit)

    return [run_entry(launch, device, launched) for launch in module.entries]


def run_entry(
    launch: Launch, device: str, launched: Callable[[Launch, np.ndarray, list[object]], None]
) -> tuple[np.ndarray, list[str]]:
    out, lines = np.full((THREADS, OUTPUT), UNTOUCHED, np.uint8), []
    scalars = [argument(shape, bits) for shape, bits in launch.scalars]
    with printing(device, lines):
        launched(launch, out, scalars)
    return out, sorted(lines)


def differences(one: Left, other: Left, modelled: bool = False) -> list[str]:
    """The entries that do not leave the same; `modelled` is without what the model leaves out."""
    size = 8 * TRAIL if modelled else OUTPUT
    return [
        f"entry{k}"
        for k, ((left, lines), (right, others)) in enumerate(zip(one, other, strict=True))
        if not np.array_equal(left[:, :size], right[:, :size]) or lines != others
    ]


def flat(left: Left) -> bytes:
    """All of it, for a digest."""
    return b"".join(out.tobytes() + "\n".join(lines).encode() for out, lines in left)
