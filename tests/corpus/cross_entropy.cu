// Cross entropy of logits against classes, and its gradient, one block a row.
#include <math_constants.h>

__global__ void cross_entropy(const float *logits, const int *classes, float *loss, float *gradient,
                              int n_classes) {
    __shared__ float tile[64];
    const float *row = logits + blockIdx.x * n_classes;
    int t = threadIdx.x;
    float high = -CUDART_INF_F, sum = 0;
    for (int i = t; i < n_classes; i += 64)
        high = fmaxf(high, row[i]);
    tile[t] = high;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) tile[t] = fmaxf(tile[t], tile[t + half]);
        __syncthreads();
    }
    high = tile[0];
    __syncthreads();
    for (int i = t; i < n_classes; i += 64)
        sum += expf(row[i] - high);
    tile[t] = sum;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) tile[t] += tile[t + half];
        __syncthreads();
    }
    float log_sum = high + logf(tile[0]);
    int right = classes[blockIdx.x];
    if (t == 0) loss[blockIdx.x] = log_sum - row[right];
    for (int i = t; i < n_classes; i += 64)
        gradient[blockIdx.x * n_classes + i] = expf(row[i] - log_sum) - (i == right);
}
