__global__ void transpose(const float *x, float *y, int rows, int cols) {
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y;
    y[col * rows + row] = x[row * cols + col];
}
