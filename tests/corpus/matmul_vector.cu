// Matrix product with 64 x 64 tiles, float4 loads and 4 x 4 results per thread.
__global__ void matmul_vector(const float *__restrict__ A, const float *__restrict__ B, float *C,
                              int N, int K) {
    __shared__ float a[16][64], b[16][64];
    int t = threadIdx.x, row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    int ty = t / 16 * 4, tx = t % 16 * 4;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        float4 v = *(const float4 *)&A[(row0 + t / 4) * K + k0 + t % 4 * 4];
        a[t % 4 * 4][t / 4] = v.x, a[t % 4 * 4 + 1][t / 4] = v.y;
        a[t % 4 * 4 + 2][t / 4] = v.z, a[t % 4 * 4 + 3][t / 4] = v.w;
        *(float4 *)&b[t / 16][tx] = *(const float4 *)&B[(k0 + t / 16) * N + col0 + tx];
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            float4 p = *(float4 *)&a[k][ty], q = *(float4 *)&b[k][tx];
            float left[4] = {p.x, p.y, p.z, p.w}, right[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
            for (int i = 0; i < 16; i++)
                sum[i / 4][i % 4] += left[i / 4] * right[i % 4];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        *(float4 *)&C[(row0 + ty + i) * N + col0 + tx] =
            make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}
