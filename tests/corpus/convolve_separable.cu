// A 2D filter as one along rows and one along columns, both in one kernel over a shared tile.
__global__ void convolve_separable(const float *x, const float *taps, float *y, int rows,
                                   int cols) {
    const int R = 2, TILE = 16;
    __shared__ float in[TILE + 2 * R][TILE + 2 * R], across[TILE + 2 * R][TILE];
    int t = threadIdx.y * TILE + threadIdx.x;
    int row0 = blockIdx.y * TILE - R, col0 = blockIdx.x * TILE - R;
    for (int k = t; k < (TILE + 2 * R) * (TILE + 2 * R); k += TILE * TILE) {
        int r = row0 + k / (TILE + 2 * R), c = col0 + k % (TILE + 2 * R);
        in[k / (TILE + 2 * R)][k % (TILE + 2 * R)] =
            r >= 0 && r < rows && c >= 0 && c < cols ? __ldg(&x[r * cols + c]) : 0.0f;
    }
    __syncthreads();
    for (int k = t; k < (TILE + 2 * R) * TILE; k += TILE * TILE) {
        float sum = 0;
        for (int d = 0; d <= 2 * R; d++)
            sum += taps[d] * in[k / TILE][k % TILE + d];
        across[k / TILE][k % TILE] = sum;
    }
    __syncthreads();
    int row = row0 + R + threadIdx.y, col = col0 + R + threadIdx.x;
    if (row >= rows || col >= cols) return;
    float sum = 0;
    for (int d = 0; d <= 2 * R; d++)
        sum += taps[d] * across[threadIdx.y + d][threadIdx.x];
    y[row * cols + col] = sum;
}
