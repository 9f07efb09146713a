// Histogram of bytes: atomics on shared counters, private to each warp.
template <int WARPS>
__global__ void histogram_shared(const unsigned char *x, unsigned *bins, int n) {
    __shared__ unsigned counters[WARPS][256];
    unsigned *own = counters[threadIdx.x / 32];
    for (int i = threadIdx.x; i < WARPS * 256; i += WARPS * 32)
        counters[0][i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[x[i]], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        unsigned sum = 0;
        for (int warp = 0; warp < WARPS; warp++)
            sum += counters[warp][bin];
        if (sum) atomicAdd(&bins[bin], sum);
    }
}
