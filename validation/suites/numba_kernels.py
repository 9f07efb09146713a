"""Kernels in Numba's language on the subjects of its documentation; writes the PTX of each.

python numba_kernels.py FOLDER      # an interpreter that has numba-cuda; no GPU is needed
"""

import math
import sys
from pathlib import Path

import numba_cuda
from numba import cuda, float32, float64, int32

TILE = 16


def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


def matrix_product(a, b, out):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    row, column = cuda.grid(2)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for begin in range(0, a.shape[1], TILE):
        left[i, j] = a[row, begin + j]
        right[i, j] = b[begin + i, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[i, k] * right[k, j]
        cuda.syncthreads()
    out[row, column] = total


def total(x, out):
    part = cuda.shared.array(128, float32)
    i = cuda.threadIdx.x
    part[i] = 0
    for at in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        part[i] += x[at]
    cuda.syncthreads()
    step = cuda.blockDim.x // 2
    while step > 0:
        if i < step:
            part[i] += part[i + step]
        cuda.syncthreads()
        step //= 2
    if i == 0:
        cuda.atomic.add(out, 0, part[0])


def count_values(x, out):
    for at in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(out, x[at], 1)


def warp_total(x, out):
    i = cuda.grid(1)
    value = x[i]
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
    if i % 32 == 0:
        out[i // 32] = value


def heat(x, out):
    i, j = cuda.grid(2)
    if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
        out[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


def functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.sin(x[i]) + math.exp(-x[i] * x[i]) * math.sqrt(math.fabs(x[i]))


KERNELS = {
    saxpy: (float32, float32[::1], float32[::1], float32[::1]),
    matrix_product: (float32[:, ::1], float32[:, ::1], float32[:, ::1]),
    total: (float32[::1], float32[::1]),
    count_values: (int32[::1], int32[::1]),
    warp_total: (float32[::1], float32[::1]),
    heat: (float64[:, ::1], float64[:, ::1]),
    functions: (float64[::1], float64[::1]),
}


def main() -> None:
    out = Path(sys.argv[1])
    for function, types in KERNELS.items():
        ptx, _ = cuda.compile_ptx(function, types, cc=(9, 0), lineinfo=True)
        (out / f"{function.__name__}.ptx").write_text(ptx)
    print(f"numba-cuda {numba_cuda.__version__}")


if __name__ == "__main__":
    main()
