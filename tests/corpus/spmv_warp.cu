// Sparse matrix (CSR) times vector, one warp a row.
__global__ void spmv_warp(const int *starts, const int *cols, const float *values, const float *x,
                          float *y, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int i = starts[row] + lane; i < starts[row + 1]; i += 32)
        sum = fmaf(values[i], x[cols[i]], sum);
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (lane == 0) y[row] = sum;
}
