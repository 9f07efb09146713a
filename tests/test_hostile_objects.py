"""Arguments whose code changes the other arguments, and threads that do: results stay right or the
call raises, and no memory is used that is gone (validation/sanitized.py address sees that).

    python validation/sanitized.py address -- tests/test_hostile_objects.py -n 0
"""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest

import smemkern

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
# Every element of x: itself plus n. Of y too, where there is one.
ADD = (
    HEAD
    + """.visible .entry k(.param .u64 x, .param .u32 n, .param .u64 y, .param .u32 count)
{
    .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p<2>;
    ld.param.u64 %d0, [x]; ld.param.u32 %r0, [n]; ld.param.u64 %d1, [y];
    ld.param.u32 %r1, [count]; mov.u32 %r2, 0;
AGAIN:
    setp.ge.u32 %p0, %r2, %r1;
    @%p0 ret;
    mul.wide.u32 %d2, %r2, 4;
    add.u64 %d3, %d0, %d2; ld.global.u32 %r3, [%d3]; add.u32 %r3, %r3, %r0;
    st.global.u32 [%d3], %r3;
    add.u64 %d4, %d1, %d2; ld.global.u32 %r4, [%d4]; add.u32 %r4, %r4, %r0;
    st.global.u32 [%d4], %r4;
    add.u32 %r2, %r2, 1;
    bra AGAIN;
}
"""
)
N = 40_000  # of a size that malloc maps and unmaps: what is gone cannot be read


@pytest.fixture(scope="module")
def add() -> smemkern.Kernel:
    return smemkern.Kernel(ADD, "k")


def resize(a: np.ndarray, n: int) -> None:
    a.resize(n, refcheck=False)


# What hostile code does to an array: each leaves it something else than it was, or raises.
DEEDS = {
    "grow": lambda a: resize(a, 500_000 + a.size % 7),
    "shrink": lambda a: resize(a, 3),
    "empty": lambda a: resize(a, 0),
    "shape": lambda a: setattr(a, "shape", (1, -1)),
    "dtype": lambda a: setattr(a, "dtype", np.uint8),
    "read-only": lambda a: a.setflags(write=False),
    "names": lambda a: setattr(a, "dtype", np.dtype([("f", "u4")])),
}


class Hostile:
    """A number, a matrix, a type: whatever it is asked to be, it does its deed first."""

    def __init__(self, deed, *victims, value=1) -> None:
        self.deed, self.victims, self.value = deed, victims, value

    def act(self) -> None:
        for victim in self.victims:
            self.deed(victim)

    def __index__(self) -> int:
        self.act()
        return self.value

    def __float__(self) -> float:
        self.act()
        return float(self.value)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        self.act()
        return np.asarray(self.value, dtype=dtype)

    def __bool__(self) -> bool:
        self.act()
        return True

    @property
    def __cuda_stream__(self):
        self.act()
        raise AttributeError

    def __call__(self, *_: object) -> None:
        self.act()


class Interface(Hostile):
    """Describes host memory by DLPack, and acts as it is asked."""

    def __dlpack_device__(self):
        self.act()
        return 1, 0

    def __dlpack__(self, **options):
        self.act()
        return self.value.__dlpack__(**options)


def tolerated(call, *args, **keywords):
    """What a call gives, or the exception that it may raise: those of wrong arguments."""
    try:
        return call(*args, **keywords)
    except (ValueError, TypeError, OverflowError, AttributeError, BufferError) as error:
        return error
    except smemkern.LaunchError as error:  # the array is shorter than what the kernel touches
        return error


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("where", ["n", "count", "grid", "block", "shared_bytes", "timeout"])
def test_numbers_of_a_kernel(add, deed, where) -> None:
    x, y = np.arange(N, dtype=np.uint32), np.arange(N, dtype=np.uint32)
    value = {"count": 3, "timeout": 60, "shared_bytes": 0}.get(where, 1)
    hostile = Hostile(DEEDS[deed], x, y, value=value)
    given = {"grid": 1, "block": 1, "n": 1, "count": 3, where: hostile}
    options = {name: given.pop(name) for name in ("shared_bytes", "timeout") if name in given}
    args = given["grid"], given["block"], x, given["n"], y, given["count"]
    result = tolerated(add, *args, device="emu", **options)
    if result is None and x.flags.writeable and x.dtype == np.uint32 and x.strides[-1]:
        assert x.ravel()[:3].tolist() == y.ravel()[:3].tolist() == [1, 2, 3]


@pytest.mark.parametrize("deed", DEEDS)
def test_arrays_of_other_libraries(add, deed) -> None:
    for _ in range(3):
        x, y = np.arange(N, dtype=np.uint32), np.arange(N, dtype=np.uint32)
        hostile = Interface(DEEDS[deed], x, value=y)
        tolerated(add, 1, 1, x, 1, hostile, 3, device="emu")
        tolerated(add, 1, 1, hostile, 1, x, 3, device="emu")
        tolerated(smemkern.gemm, x.reshape(1, -1), hostile, device="emu")


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("where", ["b", "alpha", "beta", "tile", "out", "progress", "max_memory"])
def test_operands_of_a_product(deed, where) -> None:
    a, b = np.ones((120, 80), np.float32), np.ones((80, 150), np.float32)
    out = np.zeros((120, 150), np.float32)
    hostile = Hostile(DEEDS[deed], a, b, out, value=b.copy() if where == "b" else 1)
    if where == "tile":
        hostile.value = 16
    if where == "max_memory":
        hostile.value = 1 << 20
    keywords = {"b": b, "out": out, "beta": 0.0, where: hostile, "device": "emu"}
    if where != "progress":
        keywords["variant"] = "tiled"
    result = tolerated(smemkern.gemm, a, **keywords)
    if isinstance(result, np.ndarray) and result.shape == (120, 150) and where in ("alpha", "tile"):
        assert (result == 80).all()


@pytest.mark.parametrize("deed", DEEDS)
def test_progress_of_a_trace(add, deed) -> None:
    """Called in the midst of the run: what would free memory is refused there."""
    a, b = np.ones((64, 64), np.float32), np.ones((64, 64), np.float32)
    hostile = Hostile(DEEDS[deed], a, b)
    tolerated(smemkern.trace, "gemm", a, b, progress=hostile)
    x, y = np.arange(N, dtype=np.uint32), np.arange(N, dtype=np.uint32)
    tolerated(smemkern.trace, add, 1, 1, x, 1, y, 300, progress=Hostile(DEEDS[deed], x, y))


def test_resize_is_refused_during_a_call_and_only_then(add) -> None:
    errors = []

    def progress(*_: object) -> None:
        for array in (x, owner):
            with pytest.raises(ValueError, match="cannot resize"):
                array.resize(10 * N, refcheck=False)
            errors.append(1)

    x = np.arange(N, dtype=np.uint32)
    owner = np.arange(2 * N, dtype=np.uint32)
    view = owner[N:]
    smemkern.trace(add, 1, 1, x, 1, view, 300, progress=progress)
    assert errors and x[0] == 1 and view[0] == N + 1
    resize(x, 10 * N)
    resize(owner, 10 * N)


def test_memory_views(add) -> None:
    """The owner is found through a memoryview, too."""
    owner = np.arange(N, dtype=np.uint32)
    x, y = np.asarray(memoryview(owner)), np.arange(N, dtype=np.uint32)

    def progress(*_: object) -> None:
        with pytest.raises(ValueError, match="cannot resize"):
            resize(owner, 100 * N)

    smemkern.trace(add, 1, 1, x, 1, y, 300, progress=progress)
    assert owner[5] == 6


MAP = (
    HEAD
    + """.visible .entry k(.param .align 64 .b8 map[128]) { ret; }
"""
)


@pytest.mark.parametrize("deed", DEEDS)
def test_the_array_of_a_tensor_map(deed) -> None:
    kernel = smemkern.Kernel(MAP, "k")
    array = np.zeros((256, 256), np.float32)
    tensor = smemkern.TensorMap(array, (16, 16))
    kernel(1, 1, tensor, device="emu")
    tolerated(DEEDS[deed], array)
    error = tolerated(kernel, 1, 1, tensor, device="emu")
    if deed in ("grow", "shrink", "empty", "shape", "dtype"):
        assert isinstance(error, ValueError) and "another shape" in str(error)


HANDLE = (
    HEAD
    + """.visible .entry k(.param .u64 texture) { ret; }
"""
)


@pytest.mark.parametrize("kind", [smemkern.Texture, smemkern.Surface])
@pytest.mark.parametrize("deed", DEEDS)
def test_the_array_of_a_texture(kind, deed) -> None:
    kernel = smemkern.Kernel(HANDLE, "k")
    array = np.zeros((256, 256), np.float32)
    texture = kind(array)
    kernel(1, 1, texture, device="emu")
    tolerated(DEEDS[deed], array)
    error = tolerated(kernel, 1, 1, texture, device="emu")
    if deed in ("grow", "shrink", "empty", "shape", "dtype"):
        assert isinstance(error, ValueError) and "another type or shape" in str(error)


@pytest.mark.parametrize("seed", range(3))
def test_threads_that_change_what_others_use(add, seed) -> None:
    """Whatever happens in whichever order; a second of it."""
    chosen = random.Random(seed)
    arrays = [np.arange(N, dtype=np.uint32) for _ in range(4)]
    matrices = [np.ones((90, 90), np.float32) for _ in range(4)]
    end = time.monotonic() + 1

    def vandal() -> None:
        while time.monotonic() < end:
            victim = chosen.choice(arrays + matrices)
            tolerated(DEEDS[chosen.choice(["grow", "shrink", "empty", "shape"])], victim)
            time.sleep(0.0005)
            for k, array in enumerate(arrays):  # new ones, as most are spoilt soon
                if array.size != N:
                    arrays[k] = np.arange(N, dtype=np.uint32)
            for k, matrix in enumerate(matrices):
                if matrix.shape != (90, 90):
                    matrices[k] = np.ones((90, 90), np.float32)

    thread = threading.Thread(target=vandal)
    thread.start()
    while time.monotonic() < end:
        x, y = chosen.sample(arrays, 2)
        tolerated(add, 1, 1, x, 1, y, min(x.size, y.size, 999), device="emu")
        a, b, c = chosen.sample(matrices, 3)
        tolerated(smemkern.gemm, a, b, out=chosen.choice([None, c]), device="emu")
        tolerated(smemkern.transpose, a, out=chosen.choice([None, a, b]), device="emu")
    thread.join()
