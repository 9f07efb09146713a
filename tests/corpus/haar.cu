// Haar wavelet transform of rows, all levels, in place in shared memory.
__global__ void haar(float *x, int n) {
    extern __shared__ float row[];
    float *own = x + blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        row[i] = own[i];
    for (int length = n; length > 1; length /= 2) {
        __syncthreads();
        float mean = 0, detail = 0;
        int t = threadIdx.x;
        if (t < length / 2) {
            mean = (row[2 * t] + row[2 * t + 1]) * 0.5f;
            detail = (row[2 * t] - row[2 * t + 1]) * 0.5f;
        }
        __syncthreads();
        if (t < length / 2) row[t] = mean, row[length / 2 + t] = detail;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        own[i] = row[i];
}
