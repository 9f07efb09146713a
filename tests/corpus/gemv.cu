// Matrix times vector, one warp a row, four columns a load.
__global__ void gemv(const float4 *A, const float4 *x, float *y, int rows, int quads) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    for (int i = lane; i < quads; i += 32) {
        float4 a = __ldg(&A[row * quads + i]), v = x[i];
        sum += a.x * v.x + a.y * v.y + a.z * v.z + a.w * v.w;
    }
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (lane == 0) y[row] = sum;
}
