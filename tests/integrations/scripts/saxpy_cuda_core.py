import numpy as np
from cuda.core import (
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    launch,
)

KERNEL = r"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""

device = Device()
device.set_current()
stream = device.create_stream()
program = Program(KERNEL, code_type="c++", options=ProgramOptions(arch=f"sm_{device.arch}"))
saxpy = program.compile("cubin").get_kernel("saxpy")
memory = LegacyPinnedMemoryResource()
buffers = [memory.allocate(4000, stream=stream) for _ in range(2)]
x, y = (np.from_dlpack(one).view(np.float32) for one in buffers)
x[:], y[:] = np.arange(1000), 1
launch(stream, LaunchConfig(grid=4, block=256), saxpy, np.float32(2), *buffers, np.int32(1000))
stream.sync()
assert np.array_equal(y, 2 * np.arange(1000) + 1)
print("PASS")
