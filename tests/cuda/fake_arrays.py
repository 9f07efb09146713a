"""Kernels called with arrays that say they are on a GPU, which is the fake driver's.

Run by test_fake_driver.py, with LD_LIBRARY_PATH set to the fake's folder; a function a case.
"""

from __future__ import annotations

import ctypes
import gc
import sys

import numpy as np

import smemkern

ADD = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 n) { ret; }
"""
cuda = ctypes.CDLL("libcuda.so.1")
kernel = smemkern.Kernel(ADD, "add")  # the fake driver's own loop stands for it: z = x + y


class DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("n_dims", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


def create(function: str, argument: object) -> int:
    """What a driver function creates in the device's context."""
    made, context = ctypes.c_uint64(), ctypes.c_void_p()
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxPushCurrent(context)
    assert getattr(cuda, function)(ctypes.byref(made), argument) == 0
    cuda.cuCtxPopCurrent(ctypes.byref(context))
    return made.value


class DeviceArray:
    def __init__(self, values: np.ndarray) -> None:
        self.n = values.size
        self.address = create("cuMemAlloc", ctypes.c_size_t(4 * self.n or 4))
        self.host = np.ctypeslib.as_array(
            ctypes.cast(self.address, ctypes.POINTER(ctypes.c_float)), (self.n,)
        )
        self.host[:] = values


class Interface(DeviceArray):
    """Speaks __cuda_array_interface__, as Numba's arrays do."""

    strides, stream = None, None

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": (self.n,),
            "typestr": "<f4",
            "data": (self.address, False),
            "version": 3,
            "strides": self.strides,
            "stream": self.stream,
        }


class DlPack(DeviceArray):
    """Speaks DLPack, as PyTorch's and CuPy's arrays do."""

    device, stride, stream = (2, 0), 1, None

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.stream = stream
        self.shape, self.steps = (ctypes.c_int64 * 1)(self.n), (ctypes.c_int64 * 1)(self.stride)
        one = ctypes.POINTER(ctypes.c_int64)
        self.tensor = DlTensor(self.address - 8, *self.device, 1, (2, 32, 1, 0))
        self.tensor.shape, self.tensor.strides = ctypes.cast(self.shape, one), None
        if self.stride != 1:
            self.tensor.strides = ctypes.cast(self.steps, one)
        self.tensor.byte_offset = 8
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = (
            ctypes.py_object,
            (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
        )
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


def arrays(kind, n=50):
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((2, n)).astype("f4")
    return kind(x), kind(y), kind(np.zeros(n, "f4")), x + y


def used_in_place(kind) -> None:
    x, y, z, want = arrays(kind)
    for device in (None, "cuda", "cuda:0"):
        z.host[:] = 0
        kernel(1, 1, x, y, z, 50, device=device)
        assert np.array_equal(z.host, want)


def interface() -> None:
    used_in_place(Interface)


def dlpack() -> None:
    used_in_place(DlPack)
    x, y, z, want = arrays(DlPack)
    kernel(1, 1, x, y, z, 50)
    assert x.stream == 1, "without a stream the default one, which others use by default, is ours"


def beside_numpy() -> None:
    """Device arrays in place, NumPy's copied, in one call."""
    x, y, z, want = arrays(Interface)
    kernel(1, 1, x, y.host.copy(), z, 50)
    assert np.array_equal(z.host, want)
    back = np.zeros(50, "f4")
    kernel(1, 1, x, y, back, 50)
    assert np.array_equal(back, want)


def empty() -> None:
    nothing = Interface.__new__(Interface)
    nothing.n, nothing.address = 0, 0
    kernel(1, 1, nothing, nothing, nothing, 0)


def streams() -> None:
    """The caller's stream is handed to DLPack; an interface's stream is waited for."""
    stream = create("cuStreamCreate", 1)
    x, y, z, want = arrays(DlPack)
    kernel(1, 1, x, y, z, 50, stream=stream)
    assert x.stream == stream and np.array_equal(z.host, want)
    x, y, z, want = arrays(Interface)
    x.stream, y.stream = stream, 1
    kernel(1, 1, x, y, z, 50)
    assert np.array_equal(z.host, want)


def refuse(exception, words, *args, **keywords) -> None:
    try:
        kernel(1, 1, *args, **keywords)
    except exception as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


def refused() -> None:
    x, y, z, _want = arrays(Interface)
    refuse(ValueError, "argument 0 is in the memory of a GPU", x, y, z, 50, device="emu")
    refuse(ValueError, "x.get() of CuPy, x.cpu().numpy()", x, y, z, 50, device="emu")
    z.strides = (8,)
    refuse(ValueError, "argument 2 is not contiguous", x, y, z, 50)
    p, q, r, _want = arrays(DlPack)
    q.stride = 2
    refuse(ValueError, "argument 1 is not contiguous", p, q, r, 50)
    r.device = (2, 1)
    refuse(ValueError, "cuda:0 and argument 2 in that of cuda:1", p, p, r, 50)
    refuse(ValueError, "memory of cuda:1, but the device is cuda:0", r, r, r, 50, device="cuda")
    r.device = (10, 0)
    refuse(ValueError, "DLPack's device type 10", r, r, r, 50)
    try:
        smemkern.trace(kernel, 1, 1, p, p, p, 50)
    except ValueError as error:
        assert "memory of a GPU" in str(error)
    else:
        raise AssertionError("a trace works on host memory")
    x.address += 2**40
    refuse(ValueError, "memory of no GPU", x, y, y, 50)


def nothing_is_kept() -> None:
    """Nothing of arrays that know only the older __dlpack__, nor of the number of a stream."""
    x, y, z, _want = arrays(DlPack)
    times, stream = 300, create("cuStreamCreate", 1)
    for _ in range(3):
        gc.collect()
        before = sys.getallocatedblocks(), sys.getrefcount(x), sys.getrefcount(y)
        for _ in range(times):
            kernel(1, 1, x, y, z, 50, stream=stream)
        gc.collect()
        after = sys.getallocatedblocks(), sys.getrefcount(x), sys.getrefcount(y)
    assert after[0] - before[0] < times / 2 and after[1:] == before[1:], (before, after)


CASES = (interface, dlpack, beside_numpy, empty, streams, refused, nothing_is_kept)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
