// Sparse matrix (CSR) times vector, one thread a row.
template <typename T>
__global__ void spmv_scalar(const int *starts, const int *cols, const T *values, const T *x, T *y,
                            int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    T sum = 0;
    for (int i = starts[row]; i < starts[row + 1]; i++)
        sum += values[i] * x[cols[i]];
    y[row] = sum;
}
