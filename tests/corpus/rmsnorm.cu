// Root-mean-square normalisation of rows of half, summed in float.
#include <cuda_fp16.h>

__global__ void rmsnorm(const __half2 *x, const __half2 *gain, __half2 *y, int pairs) {
    __shared__ float sums[4];
    const __half2 *row = x + blockIdx.x * pairs;
    float sum = 0;
    for (int i = threadIdx.x; i < pairs; i += 128) {
        float2 v = __half22float2(row[i]);
        sum += v.x * v.x + v.y * v.y;
    }
    for (int mask = 16; mask > 0; mask /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, mask);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = sums[0] + sums[1] + sums[2] + sums[3];
    __half2 scale = __float2half2_rn(rsqrtf(sum / (2 * pairs) + 1e-5f));
    for (int i = threadIdx.x; i < pairs; i += 128)
        y[blockIdx.x * pairs + i] = __hmul2(__hmul2(row[i], scale), gain[i]);
}
