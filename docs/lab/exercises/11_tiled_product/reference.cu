__global__ void product(const float *A, const float *B, float *C) {
    int r = threadIdx.y, c = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 32; k++)
        sum += A[r * 32 + k] * B[k * 32 + c];
    C[r * 32 + c] = sum;
}
