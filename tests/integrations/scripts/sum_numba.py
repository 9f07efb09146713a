# Wrong: no barrier between the steps of the sum.
import numpy as np
from numba import cuda, float32


@cuda.jit(device=True)
def double(x):
    return x + x


@cuda.jit(lineinfo=True)
def total(x, y):
    part = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    part[t] = double(x[t])
    cuda.syncthreads()
    n = 128
    while n > 0:
        if t < n:
            part[t] += part[t + n]  # the race
        n //= 2
    if t == 0:
        y[0] = part[0]


x, y = np.ones(256, np.float32), np.zeros(1, np.float32)
total[1, 256](x, y)
