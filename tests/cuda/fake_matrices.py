"""gemm and transpose of arrays that say they are on a GPU, which is the fake driver's.

Run by test_fake_driver.py, with LD_LIBRARY_PATH set to the fake's folder; a function a case.
"""

from __future__ import annotations

import sys
import types

import numpy as np
from fake_arrays import DlPack, Interface, create

import smemkern

rng = np.random.default_rng(5)
STREAM = create("cuStreamCreate", 1)


def views(kind):
    """The kind of array, with any shape and strides over its own memory."""

    class View(kind):
        mask = None

        def __init__(self, values, *, gap=0, type_="<f4", read_only=False):
            wide = np.zeros((*values.shape[:-1], values.shape[-1] + gap), "f4")
            super().__init__(wide.ravel())
            self.host = self.host.reshape(wide.shape)[..., : values.shape[-1]]
            self.host[...] = values
            self.type_, self.read_only = type_, read_only

        @property
        def __cuda_array_interface__(self):
            if kind is not Interface:
                raise AttributeError
            return {
                "shape": self.host.shape,
                "typestr": self.type_,
                "data": (self.host.ctypes.data, self.read_only),
                "strides": self.host.strides,
                "version": 3,
                "stream": self.stream,
                "mask": self.mask,
            }

    return View


INTERFACE = views(Interface)


class Tensor(DlPack):
    """One dimension of DLPack, made out of many by the driver's memory."""

    strides = None  # elements; NULL says that rows follow each other

    def __init__(self, values):
        super().__init__(values.ravel())
        self.extents = values.shape

    def __dlpack__(self, stream=None):
        import ctypes

        capsule = super().__dlpack__(stream)
        n = len(self.extents)
        self.shape = (ctypes.c_int64 * n)(*self.extents)
        self.tensor.n_dims = n
        self.tensor.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        if self.strides:
            self.steps = (ctypes.c_int64 * n)(*self.strides)
            self.tensor.strides = ctypes.cast(self.steps, ctypes.POINTER(ctypes.c_int64))
        return capsule


def floats(*shape):
    return rng.standard_normal(shape).astype("f4")


def close(got, want):
    assert np.allclose(got, want, 1e-5, 1e-5), abs(got - want).max()


def gemm_in_place() -> None:
    for m, n, k in ((3, 5, 4), (40, 33, 50), (1, 1, 1), (4, 6, 0)):
        a, b = floats(m, k), floats(k, n)
        out = INTERFACE(np.full((m, n), np.nan, "f4"), gap=3)
        x, y = INTERFACE(a, gap=2), INTERFACE(b)
        assert smemkern.gemm(x, y, variant="naive", out=out) is out
        close(out.host, a @ b)
        smemkern.gemm(x, y, variant="naive", out=out, alpha=2, beta=0.5, device="cuda:0")
        close(out.host, 2 * (a @ b) + 0.5 * (a @ b))


def dlpack_and_streams() -> None:
    a, b = floats(7, 6), floats(6, 5)
    x, y, out = Tensor(a), Tensor(b), Tensor(np.zeros((7, 5), "f4"))
    smemkern.gemm(x, y, variant="naive", out=out)
    close(out.host.reshape(7, 5), a @ b)
    assert x.stream == out.stream == 1
    smemkern.gemm(x, y, variant="naive", out=out, stream=STREAM)
    assert x.stream == y.stream == out.stream == STREAM


def backwards_as_cupy_says_it() -> None:
    """CuPy divides the bytes between elements as an unsigned number: -4 // 4 is 2^62 - 1."""
    b, out = floats(6, 5), Tensor(np.zeros((4, 5), "f4"))
    x = Tensor(floats(4, 6))
    x.address += 4 * 23  # the last element, which comes first
    a = x.host.reshape(4, 6)[::-1, ::-1]
    for strides in ((-6, -1), ((1 << 62) - 6, (1 << 62) - 1)):
        x.strides = strides
        out.host[:] = np.nan
        smemkern.gemm(x, Tensor(b), variant="naive", out=out)
        close(out.host.reshape(4, 5), a @ b)


def batches_and_vectors() -> None:
    for shape_a, shape_b in (
        ((3, 4, 5), (3, 5, 6)),
        ((2, 3, 4, 5), (5, 6)),
        ((4, 5), (2, 5, 6)),
        ((5,), (5, 6)),
        ((4, 5), (5,)),
        ((2, 4, 5), (5,)),
        ((5,), (2, 5, 6)),
        ((5,), (5,)),
    ):
        a, b = floats(*shape_a), floats(*shape_b)
        want = a @ b
        if want.ndim:
            out = INTERFACE(np.zeros(want.shape, "f4"), gap=1 if want.ndim > 1 else 0)
            smemkern.gemm(INTERFACE(a), INTERFACE(b), variant="naive", out=out)
            close(out.host, want)
        else:
            out = Tensor(np.zeros((), "f4"))
            smemkern.gemm(Tensor(a), Tensor(b), variant="naive", out=out)
            close(out.host[0], want)


def transposes() -> None:
    for shape in ((3, 5), (40, 7), (2, 3, 4), (0, 5)):
        a = floats(*shape)
        out = INTERFACE(np.zeros(np.swapaxes(a, -1, -2).shape, "f4"))
        assert smemkern.transpose(INTERFACE(a, gap=4), variant="naive", out=out) is out
        assert np.array_equal(out.host, np.swapaxes(a, -1, -2))


def results_of_a_library() -> None:
    """A result is of the library that the first array is from, made on its device."""

    class Device:
        def __enter__(self):
            entered.append(True)

        def __exit__(self, *_):
            pass

    entered: list[bool] = []
    cupy = types.ModuleType("cupy")
    of_cupy = {"__module__": "cupy", "device": Device(), "dtype": np.dtype("f4")}
    array = type("ndarray", (INTERFACE,), of_cupy)
    cupy.empty = lambda shape, dtype: array(np.full(shape, np.nan, dtype))
    sys.modules["cupy"] = cupy
    a, b = floats(6, 5), floats(5, 4)
    result = smemkern.gemm(array(a), array(b), variant="naive")
    assert type(result) is array and entered
    close(result.host, a @ b)
    turned = smemkern.transpose(array(a), variant="naive")
    assert np.array_equal(turned.host, a.T)


def refuse(exception, words, call, *args, **keywords) -> None:
    try:
        call(*args, variant="naive", **keywords)
    except exception as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


def refused() -> None:
    g = smemkern.gemm
    a, b, out = INTERFACE(floats(4, 5)), INTERFACE(floats(5, 6)), INTERFACE(np.zeros((4, 6), "f4"))
    before = out.host.copy()
    try:
        smemkern.probe(INTERFACE(floats(4096)))
    except ValueError as error:
        assert "probe: x is in the memory of a GPU" in str(error)
    else:
        raise AssertionError("a probe works on host memory")
    refuse(ValueError, "a is in the memory of a GPU and b is not", g, a, b.host)
    refuse(ValueError, "a is in the memory of a GPU and out is not", g, a, b, out=out.host)
    refuse(ValueError, "b is in the memory of a GPU and a is not", g, a.host, b)
    refuse(ValueError, "'emu' works on host memory", g, a, b, out=out, device="emu")
    refuse(TypeError, "pass the array to write as out=", g, a, b)
    refuse(
        ValueError,
        "out has shape (4, 6), the result has (4, 5)",
        g,
        a,
        INTERFACE(floats(5, 5)),
        out=out,
    )
    refuse(TypeError, "out has dtype int32", g, a, b, out=INTERFACE(out.host, type_="<i4"))
    refuse(ValueError, "out is read-only", g, a, b, out=INTERFACE(out.host, read_only=True))
    refuse(
        TypeError,
        "'naive' does not take float16",
        g,
        *[INTERFACE(floats(4, 4), type_="<f2")] * 2,
        out=out,
    )
    masked = INTERFACE(floats(4, 5))
    masked.mask = masked
    refuse(TypeError, "has a mask, which would be lost", g, masked, b, out=out)
    folded = INTERFACE(np.zeros((4, 6), "f4"))
    folded.host = np.broadcast_to(folded.host[:1], (4, 6))
    refuse(ValueError, "elements of out share memory", g, a, b, out=folded)
    refuse(ValueError, "beta scales what is in out", g, a, b, beta=1)
    try:
        smemkern.trace("gemm", a, b, variant="naive")
    except ValueError as error:
        assert "memory of a GPU" in str(error)
    else:
        raise AssertionError("a trace works on host memory")
    assert np.array_equal(out.host, before)
    g(a, b, variant="naive", out=out)
    close(out.host, a.host @ b.host)


class Unsteady:
    """An interface whose dict is emptied, and its memory used anew, while its shape is read."""

    def __init__(self, of):
        self.kept = [of]
        self.__cuda_array_interface__ = dict(of.__cuda_array_interface__)
        self.rows, columns = self.__cuda_array_interface__["shape"]
        self.__cuda_array_interface__["shape"] = (self, columns)

    def __index__(self):
        self.__cuda_array_interface__.clear()
        self.kept.extend((400, n) for n in range(1000))
        return self.rows


def a_dict_that_changes():
    a, b = INTERFACE(floats(7, 5), gap=3), INTERFACE(floats(5, 6))
    out = INTERFACE(np.zeros((7, 6), "f4"))
    smemkern.gemm(Unsteady(a), b, variant="naive", out=out)
    close(out.host, a.host @ b.host)


CASES = (
    *(
        a_dict_that_changes,
        gemm_in_place,
        dlpack_and_streams,
        backwards_as_cupy_says_it,
        batches_and_vectors,
        transposes,
        results_of_a_library,
    ),
    refused,
)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
