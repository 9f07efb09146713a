__global__ void product(const float *A, const float *B, float *C, int K) {
    int r = threadIdx.y, c = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < K; k++)
        sum += A[r * K + k] * B[k * 16 + c];
    C[r * 16 + c] = sum;
}
