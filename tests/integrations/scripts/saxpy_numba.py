import numpy as np
from numba import cuda


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


x = np.arange(1000, dtype=np.float32)
y = np.ones_like(x)
on_device = cuda.to_device(y)
saxpy[4, 256](np.float32(2), cuda.to_device(x), on_device)
assert np.array_equal(on_device.copy_to_host(), 2 * x + 1)
print("PASS")
