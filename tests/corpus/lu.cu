// LU factorisation without pivots of small matrices, in place, one block a matrix.
__global__ void lu(float *A, int n) {
    extern __shared__ float m[];
    float *own = A + blockIdx.x * n * n;
    for (int i = threadIdx.x; i < n * n; i += blockDim.x)
        m[i] = own[i];
    for (int k = 0; k < n; k++) {
        __syncthreads();
        for (int row = k + 1 + threadIdx.x; row < n; row += blockDim.x)
            m[row * n + k] /= m[k * n + k];
        __syncthreads();
        int left = n - k - 1;
        for (int i = threadIdx.x; i < left * left; i += blockDim.x) {
            int row = k + 1 + i / left, col = k + 1 + i % left;
            m[row * n + col] -= m[row * n + k] * m[k * n + col];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n * n; i += blockDim.x)
        own[i] = m[i];
}
