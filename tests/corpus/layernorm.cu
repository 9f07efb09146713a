// Layer normalisation of rows: mean and variance by Welford's update, merged across a block.
struct moments {
    float n, mean, m2;
};

__device__ moments merge(moments a, moments b) {
    float n = a.n + b.n, delta = b.mean - a.mean;
    if (n == 0) return a;
    return {n, a.mean + delta * b.n / n, a.m2 + b.m2 + delta * delta * a.n * b.n / n};
}

__global__ void layernorm(const float *x, const float *gain, const float *bias, float *y, int cols,
                          float epsilon) {
    __shared__ moments tile[128];
    const float *row = x + blockIdx.x * cols;
    moments own = {0, 0, 0};
    for (int i = threadIdx.x; i < cols; i += 128)
        own = merge(own, {1, row[i], 0});
    tile[threadIdx.x] = own;
    for (int half = 64; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            tile[threadIdx.x] = merge(tile[threadIdx.x], tile[threadIdx.x + half]);
    }
    __syncthreads();
    float scale = rsqrtf(tile[0].m2 / cols + epsilon);
    for (int i = threadIdx.x; i < cols; i += 128)
        y[blockIdx.x * cols + i] = (row[i] - tile[0].mean) * scale * gain[i] + bias[i];
}
