import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

KERNEL = r"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""

module = SourceModule(KERNEL, no_extern_c=True)
x = np.arange(1000, dtype=np.float32)
y = np.ones_like(x)
saxpy = module.get_function("saxpy")
saxpy(np.float32(2), cuda.In(x), cuda.InOut(y), np.int32(1000), block=(256, 1, 1), grid=(4, 1))
assert np.array_equal(y, 2 * x + 1)
print("PASS")
