// 2D convolution of bytes with a 5 x 5 filter in constant memory.
__constant__ float filter[5][5] = {
    {1, 4, 6, 4, 1}, {4, 16, 24, 16, 4}, {6, 24, 36, 24, 6}, {4, 16, 24, 16, 4}, {1, 4, 6, 4, 1}};

__global__ void convolve_2d(const unsigned char *image, unsigned char *out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || col >= cols) return;
    float sum = 0;
#pragma unroll
    for (int r = 0; r < 5; r++)
        for (int c = 0; c < 5; c++) {
            int y = row + r - 2, x = col + c - 2;
            if (y >= 0 && y < rows && x >= 0 && x < cols) sum += filter[r][c] * image[y * cols + x];
        }
    out[row * cols + col] = (unsigned char)(sum / 256.0f + 0.5f);
}
