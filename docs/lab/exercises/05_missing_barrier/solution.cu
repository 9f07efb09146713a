// Each block reverses its 128 elements.
__global__ void reverse(const int *x, int *y) {
    __shared__ int tile[128];
    int t = threadIdx.x, first = blockIdx.x * 128;

    tile[t] = x[first + t];
    __syncthreads();
    y[first + t] = tile[127 - t];
}
