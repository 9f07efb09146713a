__global__ void reduce(const int *x, int *sums) {
    int sum = 0;
    for (int i = 0; i < 256; i++)
        sum += x[blockIdx.x * 256 + i];
    sums[blockIdx.x] = sum;
}
