// A batch of small matrix products, one block a product, both factors in shared memory.
template <int N> __global__ void matmul_small(const double *A, const double *B, double *C) {
    __shared__ double a[N][N], b[N][N];
    int r = threadIdx.y, c = threadIdx.x, i = (blockIdx.x * N + r) * N + c;
    a[r][c] = A[i];
    b[r][c] = B[i];
    __syncthreads();
    double sum = 0;
#pragma unroll
    for (int k = 0; k < N; k++)
        sum += a[r][k] * b[k][c];
    C[i] = sum;
}
