#define TILE 16

// C = A B; A has 16 rows, B 16 columns. One block goes along K in tiles of 16.
__global__ void product(const float *A, const float *B, float *C, int K) {
    __shared__ float a[2][TILE][TILE], b[2][TILE][TILE];
    int c = threadIdx.x, r = threadIdx.y;
    float sum = 0;

    for (int first = 0; first < K; first += TILE) {
        int buffer = first / TILE % 2;
        a[buffer][r][c] = A[r * K + first + c];
        b[buffer][r][c] = B[(first + r) * TILE + c];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += a[buffer][r][k] * b[buffer][k][c];
    }
    C[r * TILE + c] = sum;
}
