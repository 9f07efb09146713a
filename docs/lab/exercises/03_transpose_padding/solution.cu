#define TILE 32

// y is x transposed. A block moves one tile of 32 x 32 elements.
__global__ void transpose(const float *x, float *y, int rows, int cols) {
    __shared__ float tile[TILE][TILE + 1];
    int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE;

    for (int r = threadIdx.y; r < TILE; r += blockDim.y)
        tile[r][threadIdx.x] = x[(row + r) * cols + col];
    __syncthreads();

    col = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE;
    for (int r = threadIdx.y; r < TILE; r += blockDim.y)
        y[(row + r) * rows + col] = tile[threadIdx.x][r];
}
