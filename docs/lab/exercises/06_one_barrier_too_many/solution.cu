// y[i] = x[i] + x[i + 1] + x[i + 2]. One block goes through 8 segments of 64 elements.
__global__ void sum_of_three(const int *x, int *y) {
    __shared__ int tile[66];
    int t = threadIdx.x;

    for (int first = 0; first < 512; first += 64) {
        tile[t] = x[first + t];
        if (t < 2)
            tile[64 + t] = x[first + 64 + t];
        __syncthreads();
        int sum = tile[t] + tile[t + 1] + tile[t + 2];
        __syncthreads();
        y[first + t] = sum;
    }
}
