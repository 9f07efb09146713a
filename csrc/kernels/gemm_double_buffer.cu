/* GEMM: two buffers, so that the next tile is loaded while this one is used.
 *
 *      tile      0        1        2        3
 *      fetch   global   global   global   global -> registers
 *      use              [0]      [1]      [0]    <- shared
 *      store     [0]      [1]      [0]      [1]  registers -> shared, then one barrier
 *
 * Banks: as in padded, in each buffer: 1 wavefront per request (float and double, TILE = 32).
 * A buffer is written only after the barrier that follows its last use, so one barrier per tile is
 * enough, where padded needs two.
 * Bytes and FLOPs: as in tiled; twice its shared memory (16.5 KiB for float), two more registers.
 * The loads of the next tile overlap the arithmetic of a whole tile, without cp.async.
 * Differs from padded by the second buffer and by the order fetch, use, store.
 */
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(TILE *TILE)
    gemm_double_buffer(const __grid_constant__ gemm_args g) {
    __shared__ REAL As[2][TILE][TILE];
    __shared__ REAL Bs[2][TILE][TILE + PAD];

    const REAL *A = g.A + blockIdx.z * g.batch_a;
    const REAL *B = g.B + blockIdx.z * g.batch_b;
    REAL *C = g.C + blockIdx.z * g.batch_c;

    const int x = threadIdx.x, y = threadIdx.y;
    const tile_origin tile = block_tile(g.N, TILE, TILE);
    const long long row = tile.row + y;
    const long long column = tile.column + x;

    REAL sum = 0, a = 0, b = 0;
    int buffer = 0;
    /* Iteration k0 fetches tile k0 into registers, uses the previous tile, then stores tile k0. */
    for (long long k0 = 0; k0 < g.K + TILE; k0 += TILE, buffer ^= 1) {
        const bool fetch = k0 < g.K, use = k0 > 0;
        if (fetch) {
            a = row < g.M && k0 + x < g.K ? A[row * g.lda + k0 + x] : REAL(0);
            b = k0 + y < g.K && column < g.N ? B[(k0 + y) * g.ldb + column] : REAL(0);
        }
        if (use) {
#pragma unroll
            for (int k = 0; k < TILE; k++) {
                const REAL from_a = As[buffer ^ 1][y][k];
                const REAL from_b = Bs[buffer ^ 1][x][k];
                sum += from_a * from_b;
            }
        }
        if (fetch) {
            As[buffer][y][x] = a;
            Bs[buffer][x][y] = b;
        }
        __syncthreads();
    }

    if (row < g.M && column < g.N) {
        REAL *c = C + row * g.ldc + column;
        *c = epilogue(g, sum, c);
    }
}
