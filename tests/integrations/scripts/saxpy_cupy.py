import cupy

KERNEL = r"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""

x = cupy.arange(1000, dtype=cupy.float32)
y = cupy.ones_like(x)
cupy.RawKernel(KERNEL, "saxpy")((4,), (256,), (cupy.float32(2), x, y, cupy.int32(1000)))
assert bool((y == 2 * x + 1).all())
assert float(y.sum()) == 1e6
print("PASS")
