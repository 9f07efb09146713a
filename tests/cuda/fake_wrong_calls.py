"""Wrong calls on arrays that are, or say that they are, on a GPU, which is the fake driver's.

Run by test_faults.py, with LD_LIBRARY_PATH set to the fake's folder: all rows, one after the other.
"""

from __future__ import annotations

import ctypes
import re
import sys

import numpy as np
from fake_arrays import DeviceArray, DlTensor, Interface, arrays, cuda, kernel
from fake_exchange import FakeState, Tensor
from fake_matrices import INTERFACE, floats

import smemkern

gemm, transpose = smemkern.gemm, smemkern.transpose
fake = FakeState.in_dll(cuda, "fake_cuda")
ROWS = []


def row(exception, words, function, *args, **kwargs):
    ROWS.append((exception, words, function, args, kwargs))


def lying(values=None, **claims):
    """An array whose __cuda_array_interface__ says something else than what is there."""
    true = INTERFACE(floats(4, 4) if values is None else values)
    said = {**true.__cuda_array_interface__, **claims}
    said = {name: value for name, value in said.items() if value is not ...}

    class Liar:
        __cuda_array_interface__ = said
        kept = true
        host = true.host

    return Liar()


class Capsule(DeviceArray):
    """DLPack whose tensor is changed before it is handed out."""

    def __init__(self, device=(2, 0), name=b"dltensor", **claims):
        super().__init__(floats(16))
        self.device, self.name, self.claims = device, name, claims

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.shape = (ctypes.c_int64 * 2)(4, 4)
        one = ctypes.POINTER(ctypes.c_int64)
        self.tensor = DlTensor(self.address, 2, 0, 2, (2, 32, 1, 0))
        self.tensor.shape, self.tensor.strides = ctypes.cast(self.shape, one), None
        self.tensor.byte_offset = 0
        for claim, value in self.claims.items():
            if isinstance(value, tuple) and claim in ("shape", "strides"):
                array = (ctypes.c_int64 * len(value))(*value)
                self.claims[claim] = value = ctypes.cast(array, one)
                self.__dict__[f"kept_{claim}"] = array
            setattr(self.tensor, claim, value)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self.tensor), self.name, None)


def freed():
    """An array whose memory has been given back since; so large that no later one begins there."""
    array = INTERFACE(floats(700, 700))
    context = ctypes.c_void_p()
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxPushCurrent(context)
    said = array.__cuda_array_interface__
    assert cuda.cuMemFree(ctypes.c_uint64(array.address)) == 0
    cuda.cuCtxPopCurrent(ctypes.byref(context))

    class Freed:
        __cuda_array_interface__ = said

    return Freed()


good, other, out = (INTERFACE(floats(4, 4)) for _ in range(3))
x, y, z, _want = arrays(Interface)

# interfaces that lie
row(TypeError, "data = .address, read-only", gemm, lying(data=...), good, out=out)
row(TypeError, "data = .address, read-only", gemm, lying(data=5), good, out=out)
row(TypeError, "data = .address, read-only", gemm, lying(data=()), good, out=out)
row(TypeError, "integer", gemm, lying(data=("here", False)), good, out=out)
row(OverflowError, "", gemm, lying(data=(1 << 70, False)), good, out=out)
row(ValueError, "address 0; was it freed", gemm, lying(data=(0, False)), good, out=out)
row(ValueError, "memory of no GPU", gemm, lying(data=(1 << 46, False)), good, out=out)
row(ValueError, "memory of no GPU", gemm, freed(), good, out=out)
row(ValueError, "memory of no GPU", gemm, good, other, out=freed())
row(ValueError, "memory of no GPU", kernel, 1, 1, freed(), y, z, 4)
row(TypeError, "typestr", gemm, lying(typestr=...), good, out=out)
row(TypeError, "typestr", gemm, lying(typestr=4), good, out=out)
row(TypeError, "typestr", gemm, lying(typestr="f"), good, out=out)
row(TypeError, "typestr", gemm, lying(typestr="<f-4"), good, out=out)
row(TypeError, "typestr", gemm, lying(typestr="<f0"), good, out=out)
row(TypeError, "dtype", gemm, lying(typestr=">f4"), good, out=out)
row((TypeError, ValueError), "", gemm, lying(typestr="<f99999999999999999999"), good, out=out)
row((TypeError, ValueError), "", gemm, lying(typestr="<f3"), good, out=out)
row((TypeError, ValueError), "", transpose, lying(typestr="<V7"), out=out)
row((TypeError, ValueError), "dimensions|shape", gemm, lying(shape=...), good, out=out)
row((TypeError, ValueError), "dimensions|shape", gemm, lying(shape=4), good, out=out)
row(TypeError, "", gemm, lying(shape=(4, "4")), good, out=out)
row(ValueError, "-4 elements", gemm, lying(shape=(4, -4)), good, out=out)
row(ValueError, "more bytes than", gemm, lying(shape=(1 << 40, 1 << 40)), good, out=out)
row(ValueError, "dimensions", gemm, lying(shape=(1,) * 70, strides=None), good, out=out)
row(TypeError, "one length", gemm, lying(strides=(16,)), good, out=out)
row(TypeError, "one length", gemm, lying(strides=16), good, out=out)
row((TypeError, ValueError), "stream|int", gemm, lying(stream="now"), good, out=out)
row(ValueError, "multiples of their size", gemm, lying(strides=(2, 4)), good, out=out)
row(ValueError, "strides that lead outside", gemm, lying(strides=(1 << 62, 4)), good, out=out)
row(ValueError, "strides that lead outside", gemm, lying(strides=(-(1 << 60), 4)), good, out=out)
row(
    ValueError,
    "strides that lead outside",
    gemm,
    lying(data=(44, False), strides=(-16, -4)),
    good,
    out=out,
)
row(ValueError, "memory of no GPU", gemm, lying(data=(60, False), strides=(-16, -4)), good, out=out)
row(ValueError, "out", gemm, good, other, out=lying(strides=(0, 4)))
row(ValueError, "read-only", gemm, good, other, out=lying(data=(out.address, True)))

# tensors that lie
row(ValueError, "2 dimensions, and no shape", gemm, Capsule(shape=None), good, out=out)
row(ValueError, "address 0; was it freed", gemm, Capsule(data=None), good, out=out)
row(ValueError, "-1 dimensions", gemm, Capsule(n_dims=-1), good, out=out)
row(ValueError, "65 dimensions; there may be 64", gemm, Capsule(n_dims=65), good, out=out)
row(ValueError, "1000000 dimensions", gemm, Capsule(n_dims=1000000), good, out=out)
row(ValueError, "-4 elements", gemm, Capsule(shape=(-4, 4)), good, out=out)
row(ValueError, "more bytes than", gemm, Capsule(shape=(1 << 62, 4)), good, out=out)
row(TypeError, "no whole bytes", gemm, Capsule(dtype=(2, 0, 1, 0)), good, out=out)
row(TypeError, "no whole bytes", gemm, Capsule(dtype=(2, 4, 1, 0)), good, out=out)
row(TypeError, "dtype", gemm, Capsule(dtype=(2, 32, 4, 0)), good, out=out)
row(TypeError, "dtype", gemm, Capsule(dtype=(200, 32, 1, 0)), good, out=out)
row(ValueError, "strides that lead outside", gemm, Capsule(strides=(1 << 62, 1)), good, out=out)
row(ValueError, "strides that lead outside", gemm, Capsule(strides=(1, 1 << 61)), good, out=out)
row(ValueError, "PyCapsule", gemm, Capsule(name=b"used_dltensor"), good, out=out)
row(ValueError, "device type 7", gemm, Capsule(device=(7, 0)), good, out=out)
row(TypeError, "pair of ints", gemm, Capsule(device=[2, 0]), good, out=out)
row((TypeError, OverflowError), "", gemm, Capsule(device=(1 << 40, 0)), good, out=out)
row(ValueError, "cuda:1", gemm, Capsule(device_id=1), good, out=out)
row(ValueError, "no shape", kernel, 1, 1, Capsule(shape=None), y, z, 4)
row(ValueError, "address 0", kernel, 1, 1, Capsule(data=None), y, z, 4)
row(ValueError, "not contiguous", kernel, 1, 1, Capsule(strides=(1, 5)), y, z, 4)

# wrong use of what is right
row(ValueError, "shape", gemm, good, other, out=INTERFACE(floats(4, 5)))
row(TypeError, "out has dtype", gemm, good, other, out=INTERFACE(floats(4, 4), type_="<f8"))
row(ValueError, "b is not", gemm, good, other.host, out=out)
row(ValueError, "out is not", gemm, good, other, out=out.host)
row(ValueError, "beta scales", gemm, good, other, beta=2.0)
row(ValueError, "devices is for arrays in host memory", gemm, good, other, out=out, devices=[0])
row(ValueError, "'emu'", gemm, good, other, out=out, device="emu")
row(ValueError, "cuda:0, but the device is cuda:1", gemm, good, other, out=out, device="cuda:1")
row(smemkern.NoDeviceError, "cuda:9", gemm, good.host, other.host, device="cuda:9")
row(smemkern.NoDeviceError, "9", gemm, good.host, other.host, devices=[0, 9])
row(TypeError, "stream must be None", gemm, good, other, out=out, stream="main")
row(OverflowError, "not the address of a CUDA stream", gemm, good, other, out=out, stream=1 << 70)
row(TypeError, "out=", gemm, good, other)
row(ValueError, "memory of a GPU", smemkern.probe, good)
row(ValueError, "memory of a GPU", smemkern.trace, "gemm", good, other)
row(ValueError, "max_instructions", kernel, 1, 1, x, y, z, 50, max_instructions=100)
row(MemoryError, "1000", gemm, floats(300, 300), floats(300, 300), device="cuda", max_memory=1000)
row(smemkern.LaunchError, "ADD|add|1025|1024", kernel, 1, 1, x, y, z, 50, shared_bytes=1 << 30)
row(
    smemkern.LaunchError, "912.*size of clusters that divides", kernel, 4, 1, x, y, z, 50, cluster=3
)
row(smemkern.LaunchError, "912", kernel, 17, 1, x, y, z, 50, cluster=16)
row(smemkern.LaunchError, "720", kernel, 4225, 1, x, y, z, 50, cooperative=True)
row(ValueError, "cluster.x = 17 is not within", kernel, 17, 1, x, y, z, 50, cluster=17)
row(TypeError, "takes 4 arguments", kernel, 1, 1, x, y, z)
image = np.zeros(4, np.float32)
surface = smemkern.Surface(image)
row(ValueError, "Surface's array overlaps", kernel, 1, 1, surface, image, z, 50, device="cuda")


def check(exception, words, function, args, kwargs) -> None:
    hosts = [w.host for w in (*args, *kwargs.values()) if hasattr(w, "host")]
    before, moved = [h.tobytes() for h in hosts], fake.bytes_out
    keywords = {"variant": "naive", **kwargs} if function in (gemm, transpose) else kwargs
    try:
        function(*args, **keywords)
    except exception as error:
        assert re.search(words, str(error), re.DOTALL), repr(error)
    else:
        raise AssertionError("not refused")
    assert [h.tobytes() for h in hosts] == before, "something was written"
    assert fake.bytes_out == moved and fake.sticky == 0
    result = INTERFACE(np.zeros((4, 4), "f4"))
    gemm(good, other, variant="naive", out=result)
    assert np.allclose(result.host, good.host @ other.host, atol=1e-5), "the next call"
    turned = Tensor(floats(4, 4))
    assert np.array_equal(transpose(turned, variant="naive").host, turned.host.T), "the next call"
    assert fake.alive[2] == 0, "events"


def main() -> int:
    failed = 0
    for exception, words, function, args, kwargs in ROWS:
        try:
            check(exception, words, function, args, kwargs)
        except BaseException as error:
            failed += 1
            name = getattr(function, "__name__", function)
            print(f"{name}, wanted {words!r}: {type(error).__name__}: {error}", file=sys.stderr)
    print(len(ROWS))
    return failed


if __name__ == "__main__":
    sys.exit(main())
