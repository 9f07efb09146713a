// Each block sums 256 elements in a tree.
__global__ void reduce(const int *x, int *sums) {
    __shared__ int tile[256];
    int t = threadIdx.x;

    tile[t] = x[blockIdx.x * 256 + t];
    __syncthreads();

    for (int step = 128; step > 0; step /= 2) {
        if (t < step)
            tile[t] += tile[t + step];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = tile[0];
}
