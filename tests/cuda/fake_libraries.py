"""What each library's arrays promise, and what becomes of a result: JAX, Numba, namespaces of the
array API standard, DLPack of both versions. The arrays are in the fake driver's memory.

Run by test_fake_driver.py, with LD_LIBRARY_PATH set to the fake's folder; a function a case.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import types
import weakref

import numpy as np
from fake_arrays import ADD, DeviceArray, DlTensor
from fake_exchange import OTHER, STREAM, fake
from fake_matrices import INTERFACE, close, floats, refuse

import smemkern
from smemkern import _core
from smemkern._device import arrays

FLOAT = (2, 32, 1, 0)


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DlTensor),
    ]


def capsule(address: int, name: bytes) -> object:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(address, name, None)


class Array(DeviceArray):
    """Speaks DLPack 1, as CuPy's and JAX's arrays do."""

    flags, major, asked, device = 0, 1, None, "the first"

    def __init__(self, values: np.ndarray) -> None:
        super().__init__(values.ravel())
        self.host = self.host.reshape(values.shape)
        self.dtype = values.dtype

    def __dlpack_device__(self):
        return 2, 0

    def fill(self, tensor: DlTensor) -> None:
        n = self.host.ndim
        self.extents = (ctypes.c_int64 * n)(*self.host.shape)
        self.steps = (ctypes.c_int64 * n)(*(s // 4 for s in self.host.strides))
        tensor.data, tensor.device_type, tensor.device_id = self.host.ctypes.data, 2, 0
        tensor.n_dims, tensor.dtype = n, FLOAT
        one = ctypes.POINTER(ctypes.c_int64)
        tensor.shape = ctypes.cast(self.extents, one)
        tensor.strides = ctypes.cast(self.steps, one)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked = stream, max_version
        if not max_version or max_version[0] < 1:
            self.legacy = DlTensor()
            self.fill(self.legacy)
            return capsule(ctypes.addressof(self.legacy), b"dltensor")
        self.versioned = Versioned(self.major, 0, None, None, self.flags)
        self.fill(self.versioned.tensor)
        return capsule(ctypes.addressof(self.versioned), b"dltensor_versioned")


class Older(Array):
    """From before DLPack 1."""

    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


def versions() -> None:
    for kind, version in ((Array, (1, 3)), (Older, None)):
        a, b, out = kind(floats(6, 5)), kind(floats(5, 4)), kind(np.zeros((6, 4), "f4"))
        assert smemkern.gemm(a, b, variant="naive", out=out) is out
        close(out.host, a.host @ b.host)
        assert a.asked == b.asked == out.asked == (1, version)
        smemkern.gemm(a, b, variant="naive", out=out, stream=STREAM)
        assert a.asked == b.asked == out.asked == (STREAM, version)
    b.flags = a.flags = 1
    frozen = Array(np.zeros((6, 4), "f4"))
    frozen.flags = 1
    refuse(ValueError, "out is read-only", smemkern.gemm, a, b, out=frozen)
    smemkern.gemm(a, b, variant="naive", out=out)
    a.major = 2
    a.__class__ = type("Newest", (Array,), {})
    refuse(BufferError, "Newest returned version 2.0 of DLPack", smemkern.gemm, a, b, out=out)

    class Broken(Array):
        def __dlpack__(self, *, stream=None, max_version=None):
            raise TypeError("words of its own")

    refuse(TypeError, "words of its own", smemkern.gemm, Broken(floats(6, 5)), b, out=out)


def stream_objects() -> None:
    class Stream:
        answer = 0, STREAM

        def __cuda_stream__(self):
            return self.answer

    a, b, out = (Array(floats(4, 4)) for _ in range(3))
    stream = Stream()
    for call in (
        lambda: smemkern.gemm(a, b, variant="naive", out=out, stream=stream),
        lambda: smemkern.transpose(a, variant="naive", out=out, stream=stream),
        lambda: smemkern.Kernel(ADD, "add")(1, 1, a, b, out, 16, stream=stream),
    ):
        fake.launched_on = None
        call()
        assert fake.launched_on == a.asked[0] == STREAM
    stream.answer = 0, 0
    smemkern.gemm(a, b, variant="naive", out=out, stream=stream)
    assert fake.launched_on == 1
    for wrong in ("1", 1.5, object()):
        refuse(TypeError, "stream must be None", smemkern.gemm, a, b, out=out, stream=wrong)
    stream.answer = None
    refuse(TypeError, "stream must be None", smemkern.gemm, a, b, out=out, stream=stream)


def library(name: str, **members) -> types.ModuleType:
    module = types.ModuleType(name)
    for key, value in members.items():
        setattr(module, key, value)
    sys.modules[name] = module
    return module


def jax() -> None:
    """A result of JAX is a new array, on whose memory JAX waits for us; and nothing that we use
    goes back to JAX before."""
    made: list[weakref.ref] = []

    class ArrayImpl(Array):
        __module__ = "jaxlib._jax"

        def __init__(self, values):
            super().__init__(values)
            made.append(weakref.ref(self))

    def from_dlpack(given):
        assert given.__dlpack_device__() == (2, 0)
        before = fake.waits
        held = given.__dlpack__(stream=OTHER)
        assert fake.waits == before + 1, "JAX's stream waits for ours"
        array = ArrayImpl.__new__(ArrayImpl)
        array.host, array.source, array.dtype = given.array.host, (given, held), given.array.dtype
        return array

    def empty(shape, dtype, device):
        assert device == "the first"
        return ArrayImpl(np.full(shape, np.nan, dtype))

    library("jax", numpy=types.SimpleNamespace(empty=empty))
    sys.modules["jax"].dlpack = types.SimpleNamespace(from_dlpack=from_dlpack)
    a, b = ArrayImpl(floats(6, 5)), ArrayImpl(floats(5, 4))
    c = smemkern.gemm(a, b, variant="naive")
    assert type(c) is ArrayImpl and a.asked[0] == 1
    close(c.host, a.host @ b.host)
    t = smemkern.transpose(a, variant="naive", stream=STREAM)
    assert type(t) is ArrayImpl and a.asked[0] == STREAM == fake.launched_on
    assert np.array_equal(t.host, a.host.T)
    refuse(ValueError, "out is read-only", smemkern.gemm, a, b, out=c)
    mine = INTERFACE(np.zeros((6, 4), "f4"))
    assert smemkern.gemm(a, b, variant="naive", out=mine) is mine
    close(mine.host, c.host)

    # Held while kernels run, and no longer.
    alive = fake.alive[2]
    spin = smemkern.Kernel(ADD.replace("entry add", "entry spin"), "spin")
    fake.kernels_hang = True
    spin(1, 1, None, None, None, 0, stream=OTHER)
    smemkern.gemm(a, b, variant="naive", out=mine, stream=OTHER)
    assert len(arrays._held) == 1 and fake.alive[2] == alive + 1
    for _ in range(3):
        smemkern.gemm(a, b, variant="naive", out=mine, stream=STREAM)
    assert len(arrays._held) == 1, "what has ended is let go of"
    fake.kernels_hang = False
    smemkern.gemm(a, b, variant="naive", out=mine)
    assert arrays._held == [] and fake.alive[2] == alive
    del a, b, c, t, mine
    gc.collect()
    assert not any(array() for array in made)


def events() -> None:
    event = _core.event_record(0, STREAM)
    assert _core.event_query(event)
    before = fake.waits
    _core.stream_wait_event(event, None)
    _core.stream_wait_event(event, OTHER)
    assert fake.waits == before + 2
    for wrong in (None, capsule(1, b"other")):
        refuse_plain(ValueError, "PyCapsule", _core.event_query, wrong)
    refuse_plain(TypeError, "stream must be None", _core.event_record, 0, "none")
    refuse_plain(smemkern.NoDeviceError, "", _core.event_record, 99, STREAM)
    for call in (b"cuEventCreate", b"cuEventRecord"):
        fake.fail_call, fake.fail_countdown, fake.fail_result = call, 1, 1
        refuse_plain(smemkern.Error, "cuEventRecord", _core.event_record, 0, STREAM)


def refuse_plain(exception, words, call, *args) -> None:
    try:
        call(*args)
    except exception as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


def numba() -> None:
    """Its arrays are made on the GPU that the first one is on."""
    entered: list[int] = []

    class Gpu:
        def __init__(self, number):
            self.number = number

        def __enter__(self):
            entered.append(self.number)

        def __exit__(self, *_):
            pass

    of_numba = {"__module__": "numba.cuda.cudadrv.devicearray", "dtype": np.dtype("f4")}
    array = type("DeviceNDArray", (INTERFACE,), of_numba)
    library("numba").cuda = types.SimpleNamespace(
        gpus=[Gpu(0)], device_array=lambda shape, dtype: array(np.full(shape, np.nan, dtype))
    )
    derived = type("Mine", (array,), {"__module__": "mine"})
    a, b = derived(floats(6, 5)), array(floats(5, 4))
    c = smemkern.gemm(a, b, variant="naive")
    assert type(c) is array and entered == [0]
    close(c.host, a.host @ b.host)


def namespaces() -> None:
    class Standard(Array):
        def __array_namespace__(self, api_version=None):
            return types.SimpleNamespace(empty=make)

    def make(shape, *, dtype, device):
        assert device == "the first"
        return Standard(np.full(shape, np.nan, dtype))

    a, b = Standard(floats(6, 5)), Standard(floats(5, 4))
    c = smemkern.gemm(a, b, variant="naive")
    assert type(c) is Standard
    close(c.host, a.host @ b.host)
    refuse(TypeError, "pass the array to write as out=", smemkern.gemm, Array(a.host), b)


CASES = (versions, stream_objects, jax, events, numba, namespaces)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
