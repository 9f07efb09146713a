"""Arrays whose type has DLPack's C functions, in the fake driver's memory; and on which stream a
call on device arrays runs.

Run by test_fake_driver.py, with LD_LIBRARY_PATH set to the fake's folder; a function a case.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np
from fake_arrays import ADD, DeviceArray, DlPack, DlTensor, create, cuda, kernel
from fake_matrices import INTERFACE, close, floats, refuse

import smemkern

STREAM, OTHER = create("cuStreamCreate", 1), create("cuStreamCreate", 1)
Describe = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DlTensor))
CurrentStream = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class FakeState(ctypes.Structure):
    _fields_ = [
        ("fail_call", ctypes.c_char_p),
        ("fail_countdown", ctypes.c_int),
        ("fail_result", ctypes.c_int),
        ("capturing", ctypes.c_bool),
        ("no_pools", ctypes.c_bool),
        ("no_peers", ctypes.c_bool),
        ("kernels_hang", ctypes.c_bool),
        ("products_hang", ctypes.c_bool),
        ("total_bytes", ctypes.c_size_t),
        ("allocation_ms", ctypes.c_int),
        ("sticky", ctypes.c_int),
        ("alive", ctypes.c_int * 4),
        ("used_bytes", ctypes.c_size_t),
        ("held_bytes", ctypes.c_size_t),
        ("pinned_bytes", ctypes.c_size_t),
        ("fresh_blocks", ctypes.c_int),
        ("bytes_in", ctypes.c_size_t),
        ("bytes_out", ctypes.c_size_t),
        ("bytes_peer", ctypes.c_size_t),
        ("waits", ctypes.c_int),
        ("launched_on", ctypes.c_void_p),
        ("launches", ctypes.c_int),
        ("searched", ctypes.c_size_t),
        ("overlapping", ctypes.c_int),
        ("virtual_sm", ctypes.c_int),
        ("version", ctypes.c_int),
        ("contexts_pushed", ctypes.c_int),
        ("calls", ctypes.c_int),
        ("fail_number", ctypes.c_int),
        ("failed_call", ctypes.c_char_p),
        ("textures", ctypes.c_int * 2),
    ]


class Functions(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("tensor_of_object", ctypes.c_void_p),
        ("object_of_tensor", ctypes.c_void_p),
        ("describe", Describe),
        ("current_stream", CurrentStream),
    ]


fake = FakeState.in_dll(cuda, "fake_cuda")


def capsule(address: int) -> object:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(address, b"dlpack_exchange_api", None)


@Describe
def describe(given, out):
    if given.fails:
        return -1  # ctypes has no way to raise beside it
    tensor = out.contents
    tensor.data, tensor.byte_offset = given.host.ctypes.data, 0
    tensor.device_type, tensor.device_id = given.device
    tensor.n_dims, tensor.dtype = given.host.ndim, given.dtype
    pointer = ctypes.POINTER(ctypes.c_int64)
    tensor.shape = ctypes.cast(given.extents, pointer)
    tensor.strides = ctypes.cast(given.steps, pointer) if given.steps is not None else None
    return 0


@CurrentStream
def current_stream(_type, _device, out):
    out[0] = Tensor.stream
    return 0


FUNCTIONS = Functions(1, 3, None, None, None, None, describe, current_stream)
NEWER = Functions(2, 0, ctypes.addressof(FUNCTIONS))
UNKNOWN = Functions(2, 0)


class Tensor(DeviceArray):
    """As PyTorch's: the C functions describe it, and __dlpack__ is not to be called."""

    __dlpack_c_exchange_api__ = capsule(ctypes.addressof(FUNCTIONS))
    stream = None
    device, dtype, fails, requires_grad, negated = (2, 0), (2, 32, 1, 0), False, False, False
    conjugated = False

    def __init__(self, values, contiguous=True):
        super().__init__(values.ravel())
        self.host = self.host.reshape(values.shape)
        self.extents = (ctypes.c_int64 * values.ndim)(*values.shape)
        steps = [stride // 4 for stride in self.host.strides]
        self.steps = None if contiguous else (ctypes.c_int64 * values.ndim)(*steps)

    def new_empty(self, shape):
        return type(self)(np.full(shape, np.nan, "f4"))

    def is_neg(self):
        return self.negated

    def is_conj(self):
        return self.conjugated

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        raise BufferError("words for people")


def in_place() -> None:
    for m, n, k in ((3, 5, 4), (40, 33, 50), (1, 1, 1), (4, 6, 0), (0, 3, 2)):
        for contiguous in (True, False):
            a, b = floats(m, k), floats(k, n)
            x, y = Tensor(a, contiguous), Tensor(b, contiguous)
            out = Tensor(np.full((m, n), np.nan, "f4"), contiguous)
            assert smemkern.gemm(x, y, variant="naive", out=out) is out
            close(out.host, a @ b) if out.n else None
            made = smemkern.gemm(x, y, variant="naive")
            assert type(made) is Tensor
            close(made.host, a @ b) if out.n else None
    assert np.array_equal(smemkern.transpose(x, variant="naive").host, a.T)
    x, y, z = (Tensor(floats(50)) for _ in range(3))
    kernel(1, 1, x, y, z, 50)
    assert np.array_equal(z.host, x.host + y.host)


def streams() -> None:
    """The library's stream of now is used, and an array of another stream is waited for."""
    a, b, out = (Tensor(floats(4, 4)) for _ in range(3))

    def run(**keywords) -> tuple[int, int]:
        before = fake.waits
        smemkern.gemm(a, b, variant="naive", **{"out": out, **keywords})
        return fake.launched_on, fake.waits - before

    assert run() == (1, 0), "0 is the default stream, which the driver calls 1"
    assert run(stream=0) == run(stream=1) == (1, 0)
    Tensor.stream = STREAM
    assert run() == run(stream=STREAM) == (STREAM, 0)
    assert run(stream=OTHER) == (OTHER, 3)
    assert run(stream=0) == (1, 3)
    assert run(out=INTERFACE(floats(4, 4))) == (STREAM, 0), "an interface without a stream"
    busy = INTERFACE(floats(4, 4))
    busy.stream = OTHER
    assert run(out=busy) == (STREAM, 1)
    assert fake.alive[2] == 0, "events"
    a, b = INTERFACE(floats(4, 4)), Tensor(floats(4, 4))
    a.stream = OTHER
    assert run() == (OTHER, 2)
    asked = DlPack(floats(16).ravel())
    before = fake.waits
    kernel(1, 1, b, b, asked, 16)
    assert asked.stream == fake.launched_on == STREAM and fake.waits == before
    kernel(1, 1, asked, a, b, 16)
    assert asked.stream == fake.launched_on == 1 and fake.waits == before + 2


def kernels_are_queued() -> None:
    """A Kernel on device arrays is not waited for; one on host arrays is, for its results."""
    spin = smemkern.Kernel(ADD.replace("entry add", "entry spin"), "spin")
    x, y, z = (Tensor(floats(16)) for _ in range(3))

    def is_busy(stream: int) -> bool:
        context = ctypes.c_void_p()
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        cuda.cuCtxPushCurrent(context)
        answer = cuda.cuStreamQuery(ctypes.c_void_p(stream))
        cuda.cuCtxPopCurrent(ctypes.byref(context))
        return answer == 600

    Tensor.stream = STREAM
    fake.kernels_hang = True
    spin(1, 1, x, y, z, 16)
    assert is_busy(STREAM) and not is_busy(OTHER)
    kernel(1, 1, x, y, z, 16)
    spin(1, 1, None, None, None, 16, stream=OTHER)
    assert is_busy(OTHER), "nothing to bring back, and the caller has the stream"
    fake.kernels_hang = False
    assert not is_busy(STREAM)
    before = fake.bytes_out
    host = np.zeros(16, "f4")
    kernel(1, 1, x, y, host, 16)
    assert np.array_equal(host, x.host + y.host) and fake.bytes_out - before == host.nbytes
    assert smemkern.last_transfer().bytes_out == host.nbytes


def promises() -> None:
    """What the C functions cannot say is left to __dlpack__."""
    good = Tensor(floats(4, 4))
    for name in ("fails", "requires_grad", "negated"):
        odd = Tensor(floats(4, 4))
        setattr(odd, name, True)
        for operands in ((odd, good), (good, odd)):
            refuse(BufferError, "words for people", smemkern.gemm, *operands)
        refuse(BufferError, "words for people", smemkern.gemm, good, good, out=odd)
    odd = Tensor(floats(4, 4))
    odd.conjugated = True
    smemkern.gemm(odd, good, variant="naive")
    odd.dtype = (5, 64, 1, 0)
    refuse(BufferError, "words for people", smemkern.transpose, odd)


def versions() -> None:
    class Newer(Tensor):
        __dlpack_c_exchange_api__ = capsule(ctypes.addressof(NEWER))

    class Unknown(Tensor):
        __dlpack_c_exchange_api__ = capsule(ctypes.addressof(UNKNOWN))

    class Broken(Tensor):
        __dlpack_c_exchange_api__ = "nonsense"

    a, b = floats(4, 5), floats(5, 3)
    close(smemkern.gemm(Newer(a), Newer(b), variant="naive").host, a @ b)
    refuse(BufferError, "words for people", smemkern.gemm, Unknown(a), Unknown(b))
    refuse(ValueError, "PyCapsule", smemkern.gemm, Broken(a), Broken(b))


def types() -> None:
    def odd(dtype):
        tensor = Tensor(floats(4, 4))
        tensor.dtype = dtype
        return tensor

    gemm = smemkern.gemm
    refuse(TypeError, "'naive' does not take bfloat16", gemm, *[odd((4, 16, 1, 0))] * 2)
    refuse(TypeError, "a has dtype int32", gemm, *[odd((0, 32, 1, 0))] * 2)
    refuse(TypeError, "a has elements that are no whole bytes", gemm, *[odd((0, 4, 1, 0))] * 2)
    refuse(TypeError, "a has dtype |V1", gemm, *[odd((10, 8, 1, 0))] * 2)
    folded = Tensor(floats(4, 4))
    folded.extents[0] = -1
    refuse(ValueError, "a says that its dimension 0 has -1 elements", gemm, folded, folded)
    there = Tensor(floats(4, 4))
    there.device = (10, 0)
    refuse(ValueError, "a (Tensor) is in memory of DLPack's device type 10", gemm, there, there)


def on_the_host() -> None:
    """Host memory is used as NumPy's is; bfloat16, too, which numpy.from_dlpack does not know."""
    ml_dtypes = __import__("ml_dtypes")
    a, b = Tensor(floats(6, 5)), Tensor(floats(5, 4))
    a.device = b.device = (1, 0)
    result = smemkern.gemm(a, b, variant="naive", device="emu")
    assert type(result) is np.ndarray
    close(result, a.host @ b.host)
    x, y = floats(4, 6).astype(ml_dtypes.bfloat16), floats(6, 4).astype(ml_dtypes.bfloat16)
    halves = [Tensor(np.zeros((4, 6), "f4")), Tensor(np.zeros((6, 4), "f4"))]
    for half, values in zip(halves, (x, y), strict=True):
        half.device, half.dtype, half.host = (1, 0), (4, 16, 1, 0), values
    result = smemkern.gemm(*halves, variant="mma_bf16", device="emu")
    assert result.dtype == ml_dtypes.bfloat16
    assert np.array_equal(result, smemkern.gemm(x, y, variant="mma_bf16", device="emu"))
    refuse(ValueError, "a is in the memory of a GPU and b is not", smemkern.gemm, Tensor(x), b)


CASES = (in_place, streams, kernels_are_queued, promises, versions, types, on_the_host)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
