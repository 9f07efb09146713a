"""Random calls of gemm and transpose: any shape, layout, type, batch, variant and parameters.

`check_gemm` and `check_transpose` draw one call from a source of random numbers, run it, and
compare with NumPy: gemm with float64 and the bound that rounding explains, transpose bit by bit.
What lies around `out` and in the operands must stay as it was. On a GPU, arrays of every other call
are in its memory. tests/test_soak.py draws from hypothesis, which makes a failing call smaller;
validation/soak.py draws many from seeds, and tests/run/test_random_calls.py on the emulated driver.
"""

from __future__ import annotations

import ctypes
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

import smemkern
from checks import assert_gemm

# Around the sizes of vectors, warps and tiles; one size in three is any.
EDGES = (0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65)
LARGE = (95, 96, 97, 127, 128, 129, 130, 191, 255, 257)
BATCHES = ((), (), (), (), (1,), (3,), (2, 3), (0,))
# Of arrays on a GPU, too. Rows that begin on 16-byte boundaries and may not end there: "rounded".
STRIDED = ("plain", "plain", "transposed", "padded", "sliced", "rounded", "stepped")
LAYOUTS = (*STRIDED, "reversed", "misaligned", "swapped", "fixed", "repeated")
OUTS = ("none", "none", *STRIDED, "reversed", "misaligned")
FILL = 0xA5  # around views

Array = np.ndarray[Any, Any]


def size(random: Random, most: int) -> int:
    if random.randrange(3) == 0:
        return random.randrange(most + 1)
    edges = [n for n in EDGES + LARGE if n <= most]
    return edges[random.randrange(len(edges))]


def one_of(random: Random, choices: Any) -> Any:
    return choices[random.randrange(len(choices))]


def room(shape: tuple[int, ...], dtype: np.dtype[Any], layout: str) -> tuple[Array, Array]:
    """A view of that shape and layout, and the bytes that it lies in."""
    *batch, rows, columns = shape if len(shape) > 1 else (1, *shape)
    stretched = {
        "padded": (*batch, rows, columns + 3),
        "sliced": (*batch, rows, columns + 5),
        "rounded": (*batch, rows, (columns // 16 + 2) * 16),
        "stepped": (*batch, 2 * rows, 3 * columns),
        "transposed": (*batch, columns, rows),
    }.get(layout, (*batch, rows, columns))
    skip = 1 if layout == "misaligned" else 0
    count = int(np.prod(stretched)) * dtype.itemsize
    raw = np.full(count + skip + 16, FILL, np.uint8)
    view = raw[skip : skip + count].view(dtype).reshape(stretched)
    if layout == "transposed":
        view = np.swapaxes(view, -1, -2)
    elif layout in ("padded", "rounded"):
        view = view[..., :columns]
    elif layout == "sliced":
        view = view[..., 1 : columns + 1]
    elif layout == "stepped":
        view = view[..., ::2, 1::3]
    elif layout == "reversed":
        view = view[..., ::-1, ::-1]
    return (view if len(shape) > 1 else view[0]), raw


def placed(values: Array, layout: str) -> Array:
    """The values in that layout. `repeated` has a step of 0."""
    if layout == "repeated":
        return np.broadcast_to(values[..., :1, :], values.shape) if values.ndim > 1 else values
    if layout == "swapped" and values.dtype.kind != "V":
        return values.astype(values.dtype.newbyteorder())
    view, _ = room(values.shape, values.dtype, layout)
    view[...] = values
    if layout == "fixed":
        view.flags.writeable = False
    return view


class OnGpu:
    """Arrays in the memory of a GPU, each within a copy of all bytes that lie around it."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.made: list[tuple[ctypes.c_uint64, Array]] = []
        context = ctypes.c_void_p()
        self.check(self.cuda.cuInit(0))
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.check(self.cuda.cuCtxSetCurrent(context))

    def check(self, error: int) -> None:
        assert error == 0, f"CUDA error {error}"

    def of(self, view: Array) -> Any:
        """The array of the GPU that the view's bytes are copied to."""
        raw, address = view.base, ctypes.c_uint64()
        assert raw is not None and raw.dtype == np.uint8
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(raw.nbytes)))
        self.made.append((address, raw))
        host = ctypes.c_void_p(raw.ctypes.data)
        self.check(self.cuda.cuMemcpyHtoD_v2(address, host, ctypes.c_size_t(raw.nbytes)))
        start = view.ctypes.data - raw.ctypes.data if view.size else 0
        described = {
            "shape": view.shape,
            "typestr": view.dtype.str,
            "data": (address.value + start, False),
            "strides": view.strides,
            "version": 3,
        }
        return SimpleNamespace(__cuda_array_interface__=described)

    def fetch(self) -> None:
        """Into the bytes that they were made of; ends them."""
        self.check(self.cuda.cuCtxSynchronize())
        for address, raw in self.made:
            host = ctypes.c_void_p(raw.ctypes.data)
            self.check(self.cuda.cuMemcpyDtoH_v2(host, address, ctypes.c_size_t(raw.nbytes)))
            self.check(self.cuda.cuMemFree_v2(address))


def on_gpu_of(random: Random, device: str, dtype: np.dtype[Any]) -> OnGpu | None:
    """None: arrays of the call are NumPy's. The interface of others has no bfloat16."""
    if device != "cuda" or dtype.name == "bfloat16" or random.randrange(2):
        return None
    return OnGpu()


def parameters(random: Random, sets: Any, row: Any) -> dict[str, int]:
    """One of the sets that the build compiled, and a value of what a launch may choose."""
    chosen = dict(one_of(random, sets(row)))
    if "split" in row.params and random.randrange(2):
        chosen["split"] = random.randrange(1, 9)
    return chosen


def unequal(raw: Array, before: Array, view: Array) -> int:
    """How many bytes differ outside of the view, which lies in raw."""
    inside = np.zeros(raw.shape, bool)
    start = view.__array_interface__["data"][0] - raw.__array_interface__["data"][0]
    at = np.full((1,) * view.ndim, start)
    for axis, (n, step) in enumerate(zip(view.shape, view.strides, strict=True)):
        shape = [1] * view.ndim
        shape[axis] = n
        at = at + (np.arange(n) * step).reshape(shape)
    for byte in range(view.itemsize):
        inside[(at + byte).ravel()] = True
    return int(np.count_nonzero((raw != before) & ~inside))


def check_gemm(random: Random, device: str, most: int, sets: Any) -> str:
    """One call of gemm; `sets(row)` lists sets of parameters. Returns what was called."""
    row = one_of(random, [None, *smemkern.variants("gemm")])
    dtype = np.dtype(one_of(random, row.dtypes if row else ("float32", "float64", "float16")))
    keywords = parameters(random, sets, row) if row else {}
    m, n, k = (size(random, most) for _ in range(3))
    batch = one_of(random, BATCHES)
    if batch and row:
        m, n, k = (min(x, 40) for x in (m, n, k))
    shapes = [(*batch, m, k), (*batch[random.randrange(len(batch) + 1) :], k, n)]
    if not batch and random.randrange(8) == 0:
        vector = random.randrange(2)
        shapes[vector] = (k,)
    rng = np.random.default_rng(random.getrandbits(32))
    on_gpu = on_gpu_of(random, device, dtype)
    low = dtype.itemsize == 2
    operands, exact_ones = [], []
    for shape in shapes:
        scale = 2.0 ** random.randrange(-3, 3) if low else 2.0 ** random.randrange(-30, 31)
        values = (rng.standard_normal(shape) * scale).astype(dtype)
        if random.randrange(6) == 0:
            values[rng.random(shape) < 0.5] = 0
        # bfloat16 has no other byte order in NumPy.
        layouts = [x for x in LAYOUTS if x != "swapped" or dtype.name != "bfloat16"]
        operands.append(placed(values, one_of(random, STRIDED if on_gpu else layouts)))
        exact_ones.append(operands[-1].astype(dtype))
    alpha = one_of(random, (1.0, 1.0, -1.0, 0.0, 1.5, 0.37))
    beta = one_of(random, (0.0, 0.0, 1.0, -0.5))
    how = one_of(random, STRIDED if on_gpu else OUTS)
    a, b = operands
    expected_shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    expected_shape += a.shape[-2:-1] + b.shape[-1:] * (b.ndim > 1)
    said = f"{row.name if row else 'auto'} {dtype} {a.shape}{a.strides} {b.shape}{b.strides}"
    said += f" {keywords} alpha={alpha} beta={beta} out={how}" + " on the GPU" * bool(on_gpu)

    keywords |= {"variant": row.name if row else "auto", "alpha": alpha}
    given: list[Any] = [a, b]
    if on_gpu:
        given = [on_gpu.of(x) for x in given]
    else:
        keywords["device"] = device
    if how == "none" or not expected_shape:
        result = smemkern.gemm(*given, **keywords)
        assert_gemm(result, *exact_ones, alpha=alpha, row=row)
    else:
        out, raw = room(expected_shape, dtype, how)
        if out.size:
            out[...] = np.nan if beta == 0 else rng.standard_normal(out.shape).astype(dtype)
        c, before = out.copy(), raw.copy()
        into = on_gpu.of(out) if on_gpu else out
        assert smemkern.gemm(*given, out=into, beta=beta, **keywords) is into, said
        if on_gpu:
            on_gpu.fetch()
        c = None if beta == 0 else c
        assert_gemm(out, *exact_ones, alpha=alpha, beta=beta, c=c, row=row)
        assert not unequal(raw, before, out), said
    for operand, exact in zip(operands, exact_ones, strict=True):
        assert np.array_equal(operand.astype(dtype), exact), said
    return said


def check_transpose(random: Random, device: str, most: int, sets: Any) -> str:
    """One call of transpose. Returns what was called."""
    row = one_of(random, [None, *smemkern.variants("transpose")])
    dtype = np.dtype(f"V{2 ** random.randrange(5)}")
    keywords = dict(one_of(random, sets(row))) if row else {}
    batch = one_of(random, BATCHES)
    shape = (*batch, size(random, most), size(random, most))
    rng = np.random.default_rng(random.getrandbits(32))
    values = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    on_gpu = on_gpu_of(random, device, dtype)
    layouts = STRIDED if on_gpu else [x for x in LAYOUTS if x != "swapped"]
    a = placed(values, one_of(random, layouts))
    expected = np.ascontiguousarray(np.swapaxes(a, -1, -2))
    how = one_of(random, STRIDED if on_gpu else OUTS)
    name = row.name if row else "auto"
    said = f"{name} {dtype} {a.shape}{a.strides} {keywords} out={how}"
    said += " on the GPU" * bool(on_gpu)
    keywords |= {"variant": name} if on_gpu else {"variant": name, "device": device}
    given = on_gpu.of(a) if on_gpu else a
    if how == "none":
        result = smemkern.transpose(given, **keywords)
    else:
        out, raw = room(expected.shape, dtype, how)
        result = out
        before = raw.copy()
        into = on_gpu.of(out) if on_gpu else out
        assert smemkern.transpose(given, out=into, **keywords) is into, said
        if on_gpu:
            on_gpu.fetch()
        assert not unequal(raw, before, out), said
    assert result.dtype == dtype and result.shape == expected.shape, said
    assert result.tobytes() == expected.tobytes(), said
    return said


CHECKS = (check_gemm, check_transpose)
