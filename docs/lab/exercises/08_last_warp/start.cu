// The sum of 64 elements by one warp, without __syncthreads: a warp "runs in lockstep anyway".
__global__ void reduce_warp(const int *x, int *sums) {
    __shared__ int tile[64];
    int t = threadIdx.x;

    tile[t] = x[blockIdx.x * 64 + t];
    tile[t + 32] = x[blockIdx.x * 64 + t + 32];

    for (int step = 32; step > 0; step /= 2)
        tile[t] += t < step ? tile[t + step] : 0;

    if (t == 0)
        sums[blockIdx.x] = tile[0];
}
