// Each block sums 256 elements in a tree.
__global__ void reduce(const int *x, int *sums) {
    __shared__ int tile[256];
    int t = threadIdx.x;

    tile[t] = x[blockIdx.x * 256 + t];
    __syncthreads();

    for (int step = 1; step < 256; step *= 2) {
        int i = 2 * step * t;
        if (i < 256)
            tile[i] += tile[i + step];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = tile[0];
}
