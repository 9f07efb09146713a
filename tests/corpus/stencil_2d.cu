// Jacobi step on a grid: the mean of four neighbours, from a tile with a halo; borders stay.
template <int TILE> __global__ void stencil_2d(const float *x, float *y, int rows, int cols) {
    __shared__ float tile[TILE + 2][TILE + 2];
    int tx = threadIdx.x, ty = threadIdx.y;
    int col = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
    auto at = [&](int r, int c) {
        return x[min(max(r, 0), rows - 1) * cols + min(max(c, 0), cols - 1)];
    };
    tile[ty + 1][tx + 1] = at(row, col);
    if (ty == 0) tile[0][tx + 1] = at(row - 1, col);
    if (ty == TILE - 1) tile[TILE + 1][tx + 1] = at(row + 1, col);
    if (tx == 0) tile[ty + 1][0] = at(row, col - 1);
    if (tx == TILE - 1) tile[ty + 1][TILE + 1] = at(row, col + 1);
    __syncthreads();
    if (row >= rows || col >= cols) return;
    bool inside = row > 0 && row < rows - 1 && col > 0 && col < cols - 1;
    float mean =
        0.25f * (tile[ty][tx + 1] + tile[ty + 2][tx + 1] + tile[ty + 1][tx] + tile[ty + 1][tx + 2]);
    y[row * cols + col] = inside ? mean : tile[ty + 1][tx + 1];
}
