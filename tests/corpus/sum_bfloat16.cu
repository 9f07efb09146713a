// Sums of rows of bfloat16 in float, stored as bfloat16; and the rows' maxima.
#include <math_constants.h>
#include <cuda_bf16.h>

__global__ void sum_bfloat16(const __nv_bfloat162 *x, __nv_bfloat16 *sums, __nv_bfloat16 *highest,
                             int pairs) {
    const __nv_bfloat162 *row = x + blockIdx.x * pairs;
    float sum = 0;
    __nv_bfloat162 high = __float2bfloat162_rn(-CUDART_INF_F);
    for (int i = threadIdx.x; i < pairs; i += 32) {
        float2 v = __bfloat1622float2(row[i]);
        sum += v.x + v.y;
        high = __hmax2(high, row[i]);
    }
    for (int mask = 16; mask > 0; mask /= 2) {
        sum += __shfl_xor_sync(0xffffffff, sum, mask);
        high = __hmax2(high, __shfl_xor_sync(0xffffffff, high, mask));
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = __float2bfloat16(sum);
        highest[blockIdx.x] = __hmax(high.x, high.y);
    }
}
