// Cholesky factor of a matrix, by one warp whose lanes hold a row each.
template <int N> __global__ void cholesky(const double *A, double *L) {
    __shared__ double column[N];
    int row = threadIdx.x;
    double own[N];
    for (int k = 0; k < N; k++)
        own[k] = row < N ? A[row * N + k] : 0.0;
    for (int k = 0; k < N; k++) {
        if (row == k) own[k] = sqrt(own[k]);
        double pivot = __shfl_sync(0xffffffff, own[k], k);
        if (row > k) own[k] /= pivot;
        if (row < N) column[row] = own[k];
        __syncwarp();
        for (int j = k + 1; j < N; j++)
            if (row >= j) own[j] -= own[k] * column[j];
        __syncwarp();
    }
    if (row < N)
        for (int k = 0; k < N; k++)
            L[row * N + k] = k <= row ? own[k] : 0.0;
}
