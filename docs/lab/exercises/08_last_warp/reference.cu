__global__ void reduce_warp(const int *x, int *sums) {
    int sum = 0;
    for (int i = 0; i < 64; i++)
        sum += x[blockIdx.x * 64 + i];
    sums[blockIdx.x] = sum;
}
