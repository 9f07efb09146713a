// gemm_double_buffer.cu in OpenCL C: two buffers, one barrier a tile.
#define TILE 8

kernel void gemm_double_buffer(global const float *A, global const float *B, global float *C, int M,
                               int N, int K) {
    local float As[2][TILE][TILE];
    local float Bs[2][TILE][TILE + 1];
    const int x = get_local_id(0), y = get_local_id(1);
    const int row = get_group_id(1) * TILE + y, column = get_group_id(0) * TILE + x;
    float sum = 0, a = 0, b = 0;
    int buffer = 0;
    for (int k0 = 0; k0 < K + TILE; k0 += TILE, buffer ^= 1) {
        if (k0 < K) {
            a = row < M && k0 + x < K ? A[row * K + k0 + x] : 0;
            b = k0 + y < K && column < N ? B[(k0 + y) * N + column] : 0;
        }
        if (k0 > 0)
            for (int k = 0; k < TILE; k++)
                sum += As[buffer ^ 1][y][k] * Bs[buffer ^ 1][x][k];
        if (k0 < K) {
            As[buffer][y][x] = a;
            Bs[buffer][x][y] = b;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < M && column < N) C[row * N + column] = sum;
}
