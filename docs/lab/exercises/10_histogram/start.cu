#define BINS 8

// Adds up the weights of each of 8 kinds.
__global__ void histogram(const int *kind, const int *weight, int *sums, int n) {
    __shared__ int bins[BINS];
    int t = threadIdx.x;

    if (t < BINS)
        bins[t] = 0;
    __syncthreads();

    for (int i = t; i < n; i += blockDim.x)
        atomicAdd(&bins[kind[i]], weight[i]);
    __syncthreads();

    if (t < BINS)
        sums[t] = bins[t];
}
