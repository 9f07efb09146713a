// One step of k-means: nearest centre of each point; sums of the points by shared atomics.
#include <math_constants.h>

template <int K>
__global__ void k_means(const float2 *points, const float2 *centres, int *nearest, float *sums,
                        int *counts, int n) {
    __shared__ float2 centre[K];
    __shared__ float sum[2 * K];
    __shared__ int count[K];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t < K) centre[t] = centres[t], count[t] = 0;
    if (t < 2 * K) sum[t] = 0;
    __syncthreads();
    if (i < n) {
        float2 p = points[i];
        float least = CUDART_INF_F;
        int best = 0;
        for (int k = 0; k < K; k++) {
            float x = p.x - centre[k].x, y = p.y - centre[k].y, square = x * x + y * y;
            if (square < least) least = square, best = k;
        }
        nearest[i] = best;
        atomicAdd(&sum[2 * best], p.x);
        atomicAdd(&sum[2 * best + 1], p.y);
        atomicAdd(&count[best], 1);
    }
    __syncthreads();
    if (t < 2 * K) atomicAdd(&sums[t], sum[t]);
    if (t < K) atomicAdd(&counts[t], count[t]);
}
