"""No call keeps an object, right or wrong: of each public function, and of each wrong call.

Counted are the blocks of memory that Python has handed out, the bytes that malloc has, and pages.
"""

import contextlib
import gc
import sys
from pathlib import Path

import numpy as np
import pytest

import smemkern
from checks import malloc_bytes
from test_api import calls
from test_texture import REFERENCE
from wrong_calls import ALL, S, forever, ones, scale

TIMES = 50
TEXT = scale.ptx if isinstance(scale.ptx, str) else scale.ptx.decode()


def right():
    out, x, words = ones(8, 8), ones(8), np.arange(32)
    yield "gemm", lambda: smemkern.gemm(S, S, device="emu")
    yield "gemm out", lambda: smemkern.gemm(S, S, out=out, alpha=2, beta=0.5, device="emu")
    yield "gemm of lists", lambda: smemkern.gemm([[1.0, 2]], [[3.0], [4]], device="emu")
    yield "transpose", lambda: smemkern.transpose(S, out=out, device="emu")
    yield "probe", lambda: smemkern.probe(ones(300), variant="copy_async", device="emu")
    yield "Kernel", lambda: smemkern.Kernel(TEXT, "scale")
    yield "a kernel", lambda: scale(1, 8, x, 1.0, 8, device="emu")
    yield "its names", lambda: (scale.name, scale.ptx, scale.source, repr(scale), hash(scale))
    yield "TensorMap", lambda: smemkern.TensorMap(ones(64, 64), (8, 8))
    yield "Texture", lambda: repr(smemkern.Texture(ones(64, 64), address=("clamp", "border")).array)
    yield "Surface", lambda: smemkern.Surface(ones(64, 64))
    texture, surface = smemkern.Texture(ones(8)), smemkern.Surface(ones(8))
    line, given = smemkern.Kernel(REFERENCE, "copy"), {"line": texture, "result": surface}
    yield "textures", lambda: line(1, 8, textures=given, device="emu")
    yield "trace", lambda: smemkern.trace(scale, 1, 8, x, 1.0, 8)
    yield "trace of a row", lambda: smemkern.trace("transpose", S, variant="padded")
    yield "wavefronts", lambda: smemkern.banks.wavefronts(4 * words)
    yield "sectors", lambda: smemkern.coalescing.sectors(4 * words)
    yield "occupancy", lambda: smemkern.occupancy(256, 32)
    yield "devices", smemkern.devices
    yield "variants", smemkern.variants
    yield "empty_cache", lambda: smemkern.empty_cache("emu")
    yield "last_transfer", smemkern.last_transfer
    new = (smemkern.Kernel(TEXT + f"// {n}\n", "scale") for n in range(10**9))  # never read before
    yield "what is new", lambda: next(new)(1, 8, x, 1.0, 8)
    yield "what is new, traced", lambda: smemkern.trace(next(new), 1, 8, x, 1.0, 8, hazards=True)
    yield "hazards", lambda: smemkern.trace("gemm", S, S, variant="mma_tf32x3", hazards=True)
    yield "progress", lambda: smemkern.trace("gemm", S, S, progress=lambda *_: None)


def wrong():
    for case in ALL:
        exception, _words, function, args, kwargs = case.values

        def call(exception=exception, function=function, args=args, kwargs=kwargs):
            try:
                function(*args, **kwargs)
            except exception as error:
                error.__traceback__ = None  # some objects raise the same one each time

        yield f"wrong: {case.id}", call

    def stopped(**stop):
        with contextlib.suppress(TimeoutError, smemkern.LaunchError):
            forever(1, 1, ones(8), device="emu", **stop)

    yield "max_instructions", lambda: stopped(max_instructions=5000)
    yield "timeout", lambda: stopped(timeout=0.001)
    with_error = [1 / 3, "text", None, object()]

    def refuse(*_):
        raise KeyError(with_error)

    def interrupted():
        with contextlib.suppress(KeyError):
            smemkern.trace("gemm", S, S, progress=refuse)

    yield "an error in progress=", interrupted


CALLS = [*right(), *((f"api {n}", call) for n, call in enumerate(calls())), *wrong()]


def in_use():
    """Blocks of Python's, which has let go of the free ones that it keeps; units of 16 bytes of
    malloc's, the least that it hands out; stretches of pages."""
    gc.collect()
    pages = Path("/proc/self/maps").read_text().count("\n")
    return sys.getallocatedblocks(), malloc_bytes() // 16, pages


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_nothing_is_kept(name, call):
    call()
    seen = []
    for _ in range(8):  # caches fill, and free lists come and go
        before = in_use()
        for _ in range(TIMES):
            call()
        seen.append([now - then for now, then in zip(in_use(), before, strict=True)])
        if max(seen[-1]) < 0.7 * TIMES:
            return
    pytest.fail(f"{seen} more after {TIMES} calls each")
