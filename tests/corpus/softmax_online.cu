// Softmax of rows in one pass: maximum and scaled sum together, one warp a row.
#include <math_constants.h>

__global__ void softmax_online(const float *x, float *y, int rows, int cols) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const float *in = x + row * cols;
    float high = -CUDART_INF_F, sum = 0;
    for (int i = threadIdx.x; i < cols; i += 32) {
        float v = in[i], higher = fmaxf(high, v);
        sum = sum * expf(high - higher) + expf(v - higher);
        high = higher;
    }
    for (int mask = 16; mask > 0; mask /= 2) {
        float other = __shfl_xor_sync(0xffffffff, high, mask);
        float more = __shfl_xor_sync(0xffffffff, sum, mask), higher = fmaxf(high, other);
        sum = sum * __expf(high - higher) + more * __expf(other - higher);
        high = higher;
    }
    for (int i = threadIdx.x; i < cols; i += 32)
        y[row * cols + i] = expf(in[i] - high) / sum;
}
