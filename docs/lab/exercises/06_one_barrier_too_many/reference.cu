__global__ void sum_of_three(const int *x, int *y) {
    int i = blockIdx.x * 64 + threadIdx.x;
    y[i] = x[i] + x[i + 1] + x[i + 2];
}
