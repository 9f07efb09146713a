#define N 32

// C = A B for matrices of 32 x 32. Thread (c, ty) computes rows ty, ty + 8, ty + 16, ty + 24
// of column c.
__global__ void product(const float *A, const float *B, float *C) {
    __shared__ float a[N][N], b[N][N];
    int c = threadIdx.x, ty = threadIdx.y;

    for (int r = ty; r < N; r += 8) {
        a[r][c] = A[r * N + c];
        b[r][c] = B[r * N + c];
    }
    __syncthreads();

#pragma unroll 1
    for (int r = ty; r < N; r += 8) {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < N; k++)
            sum += a[r][k] * b[k][c];
        C[r * N + c] = sum;
    }
}
