// a x + y in half, two elements an instruction.
#include <cuda_fp16.h>

__global__ void axpy_half2(__half a, const __half2 *x, __half2 *y, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pairs) y[i] = __hfma2(__half2half2(a), x[i], y[i]);
}
