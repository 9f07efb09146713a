import ctypes

import numpy as np
from cuda.bindings import driver, nvrtc

KERNEL = rb"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


def check(answer):
    error, *values = answer
    assert int(error) == 0, error
    return values[0] if len(values) == 1 else values


check(driver.cuInit(0))
device = check(driver.cuDeviceGet(0))
check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))
program = check(nvrtc.nvrtcCreateProgram(KERNEL, b"saxpy.cu", 0, [], []))
check(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_90"]))
ptx = b" " * check(nvrtc.nvrtcGetPTXSize(program))
check(nvrtc.nvrtcGetPTX(program, ptx))
saxpy = check(driver.cuModuleGetFunction(check(driver.cuModuleLoadData(ptx)), b"saxpy"))
x = np.arange(1000, dtype=np.float32)
y = np.ones_like(x)
on_device = [check(driver.cuMemAlloc(4000)) for _ in range(2)]
for address, array in zip(on_device, (x, y), strict=True):
    check(driver.cuMemcpyHtoD(address, array.ctypes.data, 4000))
arguments = ((2.0, *on_device, 1000), (ctypes.c_float, None, None, ctypes.c_int))
check(driver.cuLaunchKernel(saxpy, 4, 1, 1, 256, 1, 1, 0, 0, arguments, 0))
check(driver.cuMemcpyDtoH(y.ctypes.data, on_device[1], 4000))
assert np.array_equal(y, 2 * x + 1)
print("PASS")
