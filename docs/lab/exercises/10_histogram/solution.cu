#define BINS 8

// Adds up the weights of each of 8 kinds.
__global__ void histogram(const int *kind, const int *weight, int *sums, int n) {
    __shared__ int bins[BINS][32]; // one copy per lane, in its own bank
    int t = threadIdx.x, lane = t % 32;

    for (int i = t; i < BINS * 32; i += blockDim.x)
        bins[i / 32][i % 32] = 0;
    __syncthreads();

    for (int i = t; i < n; i += blockDim.x)
        atomicAdd(&bins[kind[i]][lane], weight[i]);
    __syncthreads();

    if (t < BINS) {
        int sum = 0;
        for (int k = 0; k < 32; k++)
            sum += bins[t][(t + k) % 32]; // each lane begins in another bank
        sums[t] = sum;
    }
}
