"""A program for test_device_strides.py: gemm of arrays in a GPU's memory, of any strides.

Arguments: a seed, the number of calls, a variant. What lies around an array is NaN, around `out` 7.
"""

import ctypes
import random
import sys
from pathlib import Path

import numpy as np

import smemkern

sys.path.append(str(Path(__file__).resolve().parents[1]))
from checks import assert_gemm, random_matrix  # noqa: E402

cuda = ctypes.CDLL("libcuda.so.1")


class OnGpu:
    """A copy of the view, and of all that lies around it, that speaks __cuda_array_interface__."""

    def __init__(self, raw, view):
        self.raw, self.address = raw, ctypes.c_uint64()
        assert not cuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(raw.nbytes))
        cuda.cuMemcpyHtoD_v2(self.address, self.host(), ctypes.c_size_t(raw.nbytes))
        start = view.__array_interface__["data"][0] - raw.__array_interface__["data"][0]
        self.__cuda_array_interface__ = {
            "shape": view.shape,
            "typestr": view.dtype.str,
            "data": (self.address.value + start, False),
            "strides": view.strides,
            "version": 3,
        }

    def host(self):
        return ctypes.c_void_p(self.raw.__array_interface__["data"][0])

    def fetch(self):
        cuda.cuCtxSynchronize()
        cuda.cuMemcpyDtoH_v2(self.host(), self.address, ctypes.c_size_t(self.raw.nbytes))

    def __del__(self):
        cuda.cuMemFree_v2(self.address)


def placed(draw, values, fill, layouts):
    """The values in a layout of these, with the bytes around them: (raw, view)."""
    rows, columns = values.shape
    layout, start = draw.choice(layouts), draw.randrange(5)
    step = 3 if layout.startswith("apart") else 1
    down, along = (columns, rows) if layout.endswith("columns") else (rows, columns)
    pitch = along * step + 3
    if layout.startswith("rounded"):  # rows begin on 16-byte boundaries, and may not end there
        start, pitch = 0, (along // 16 + 2) * 16
    raw = np.full(down * pitch + start, fill, values.dtype)
    view = raw[start:].reshape(down, pitch)[:, : along * step : step]
    view = view.T if layout.endswith("columns") else view
    view = view[::-1, ::-1] if layout.startswith("reversed") else view
    view[...] = values
    return raw, view


OUT = ("unit rows", "rounded rows")
KINDS = ("unit", "rounded", "apart", "reversed")
ANY = [f"{kind} {lines}" for kind in KINDS for lines in ("rows", "columns")]


def one_call(draw, rng, row):
    dtype = draw.choice([name for name in row.dtypes if name != "bfloat16"])
    thin, thick, k = draw.randint(1, 6), draw.randint(1, 150), draw.randint(1, 400)
    thin = draw.choice([thin, draw.randint(1, 150)])
    m, n = draw.choice([(thin, thick), (thick, thin)])
    a, b, c = (random_matrix(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
    out, result = placed(draw, c, 7, OUT)
    before, given = out.copy(), [OnGpu(*placed(draw, x, np.nan, ANY)) for x in (a, b)]
    on_gpu = OnGpu(out, result)
    whole = {"split": 1} if "split" in row.params else {}
    alpha, beta = draw.choice([(1, 0), (-1.5, 0.5)])
    smemkern.gemm(*given, out=on_gpu, variant=row.name, alpha=alpha, beta=beta, **whole)
    on_gpu.fetch()
    assert_gemm(result.copy(), a, b, alpha, beta, c, row=row)
    result[...] = c
    assert np.array_equal(out, before), "something beside the result has changed"


def main(seed, count, name):
    context = ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    [row] = [row for row in smemkern.variants("gemm") if row.name == name]
    for call in range(int(seed), int(seed) + int(count)):
        print(name, "call", call, flush=True)
        one_call(random.Random(call), np.random.default_rng(call), row)
    print("PASS")


main(*sys.argv[1:])
