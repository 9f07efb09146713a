// The k largest of a row: each round the warp elects the maximum and strikes it out.
#include <math_constants.h>

template <int PER_LANE> __global__ void top_k(const float *x, float *values, int *places, int k) {
    float own[PER_LANE];
    for (int i = 0; i < PER_LANE; i++)
        own[i] = x[(blockIdx.x * PER_LANE + i) * 32 + threadIdx.x];
    for (int round = 0; round < k; round++) {
        float best = -CUDART_INF_F;
        int place = 0;
        for (int i = 0; i < PER_LANE; i++)
            if (own[i] > best) best = own[i], place = i * 32 + threadIdx.x;
        for (int mask = 16; mask > 0; mask /= 2) {
            float other = __shfl_xor_sync(0xffffffff, best, mask);
            int where = __shfl_xor_sync(0xffffffff, place, mask);
            if (other > best || (other == best && where < place)) best = other, place = where;
        }
        for (int i = 0; i < PER_LANE; i++)
            if (i * 32 + threadIdx.x == place) own[i] = -CUDART_INF_F;
        if (threadIdx.x == 0) {
            values[blockIdx.x * k + round] = best;
            places[blockIdx.x * k + round] = place;
        }
    }
}
