#define TILE 16

// C = A B; A has 16 rows, B 16 columns. One block goes along K in tiles of 16.
__global__ void product(const float *A, const float *B, float *C, int K) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int c = threadIdx.x, r = threadIdx.y;
    float sum = 0;

    for (int first = 0; first < K; first += TILE) {
        a[r][c] = A[r * K + first + c];
        b[r][c] = B[(first + r) * TILE + c];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += a[r][k] * b[k][c];
        __syncthreads();
    }
    C[r * TILE + c] = sum;
}
