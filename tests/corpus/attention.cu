// Attention over tiles of keys and values with a running softmax: no matrix of scores is stored.
#include <math_constants.h>

template <int D, int TILE>
__global__ void attention(const float *Q, const float *K, const float *V, float *out, int n,
                          float scale) {
    __shared__ float keys[TILE][D], values[TILE][D];
    int row = blockIdx.x * blockDim.x + threadIdx.x, head = blockIdx.y * n * D;
    float q[D], sum[D] = {}, high = -CUDART_INF_F, weight = 0;
    for (int d = 0; d < D; d++)
        q[d] = row < n ? Q[head + row * D + d] * scale : 0;
    for (int first = 0; first < n; first += TILE) {
        int present = min(TILE, n - first);
        for (int i = threadIdx.x; i < present * D; i += blockDim.x) {
            keys[i / D][i % D] = K[head + first * D + i];
            values[i / D][i % D] = V[head + first * D + i];
        }
        __syncthreads();
        float scores[TILE], higher = high;
#pragma unroll
        for (int j = 0; j < TILE; j++) {
            float s = 0;
            for (int d = 0; d < D; d++)
                s += q[d] * keys[j][d];
            scores[j] = j < present ? s : -CUDART_INF_F;
            higher = fmaxf(higher, scores[j]);
        }
        float shrink = __expf(high - higher);
        weight *= shrink;
        for (int d = 0; d < D; d++)
            sum[d] *= shrink;
        for (int j = 0; j < present; j++) {
            float p = __expf(scores[j] - higher);
            weight += p;
            for (int d = 0; d < D; d++)
                sum[d] += p * values[j][d];
        }
        high = higher;
        __syncthreads();
    }
    if (row < n)
        for (int d = 0; d < D; d++)
            out[head + row * D + d] = sum[d] / weight;
}
