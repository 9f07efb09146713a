// gemm_tiled.cu in OpenCL C: two tiles, a barrier after the copies and one after the products.
#define TILE 8

kernel void gemm_tiled(global const float *A, global const float *B, global float *C, int M, int N,
                       int K) {
    local float As[TILE][TILE];
    local float Bs[TILE][TILE];
    const int x = get_local_id(0), y = get_local_id(1);
    const int row = get_group_id(1) * TILE + y, column = get_group_id(0) * TILE + x;
    float sum = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        As[y][x] = row < M && k0 + x < K ? A[row * K + k0 + x] : 0;
        Bs[y][x] = k0 + y < K && column < N ? B[(k0 + y) * N + column] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            sum += As[y][k] * Bs[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < M && column < N) C[row * N + column] = sum;
}
