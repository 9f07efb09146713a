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

    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int k = 0; k < N; k++) {
        float column = b[k][c];
        s0 += a[ty][k] * column;
        s1 += a[ty + 8][k] * column;
        s2 += a[ty + 16][k] * column;
        s3 += a[ty + 24][k] * column;
    }
    C[ty * N + c] = s0;
    C[(ty + 8) * N + c] = s1;
    C[(ty + 16) * N + c] = s2;
    C[(ty + 24) * N + c] = s3;
}
