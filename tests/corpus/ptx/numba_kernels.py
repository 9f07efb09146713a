"""Kernels in Numba, and how the .ptx files beside them were made: no GPU is needed.

    pip install numba-cuda[cu13] && python numba_kernels.py

An array is passed as (memory information, parent, size, size of an element, data, shape, strides).
"""

from pathlib import Path

from numba import cuda, float32, int32
from numba.cuda import compile_ptx

THREADS = 64


def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


def block_sums(x, sums):
    tile = cuda.shared.array(THREADS, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    tile[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            tile[t] += tile[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = tile[0]


def histogram(x, bins):
    own = cuda.shared.array(16, int32)
    t = cuda.threadIdx.x
    if t < 16:
        own[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(own, x[i] % 16, 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(bins, t, own[t])


def matmul(a, b, c):
    row, col = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, col]
        c[row, col] = total


KERNELS = [
    (axpy, (float32, float32[::1], float32[::1])),
    (block_sums, (float32[::1], float32[::1])),
    (histogram, (int32[::1], int32[::1])),
    (matmul, (float32[:, ::1], float32[:, ::1], float32[:, ::1])),
]

if __name__ == "__main__":
    for kernel, types in KERNELS:
        ptx, _ = compile_ptx(kernel, types, cc=(8, 0), lineinfo=True)
        text = ptx.decode() if isinstance(ptx, bytes) else ptx
        here = Path(__file__)
        text = text.replace(f"{here.parent}/", "")
        here.with_name(f"numba_{kernel.__name__}.ptx").write_text(text)
