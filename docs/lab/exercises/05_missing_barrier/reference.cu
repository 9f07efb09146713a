__global__ void reverse(const int *x, int *y) {
    int t = threadIdx.x, first = blockIdx.x * 128;
    y[first + t] = x[first + 127 - t];
}
