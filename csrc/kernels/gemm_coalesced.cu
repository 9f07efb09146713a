/* GEMM: one thread per output element, lanes along a row of C.
 *
 *              B           thread (x, y) of a 32 x 32 block computes C[row + y][column + x]:
 *          [||||||||]      the 32 lanes of a warp share a row and span 32 columns.
 *     A    [||||||||]
 *  [-----] [oooooooo]            load of A: A[row][k], one word for all lanes, 1 sector
 *           lane 0..31           load of B: B[k][column + lane], 128 contiguous bytes, 4 sectors
 *                                store of C: 128 contiguous bytes, 4 sectors
 *
 * Banks: none; shared memory is not used.
 * Bytes: still 2 M N K words requested for 2 M N K FLOPs, but every sector is used in full.
 * Each FFMA needs two load requests, so the load units, not the arithmetic, limit the speed.
 * Differs from naive by two lines, which map x to the column: 4 sectors per request, not 32.
 */
#include "common.cuh"

#define TILE 32

extern "C" __global__ void __launch_bounds__(TILE *TILE)
    gemm_coalesced(const __grid_constant__ gemm_args g) {
    const REAL *A = g.A + blockIdx.z * g.batch_a;
    const REAL *B = g.B + blockIdx.z * g.batch_b;
    REAL *C = g.C + blockIdx.z * g.batch_c;

    const tile_origin tile = block_tile(g.N, TILE, TILE);
    const long long row = tile.row + threadIdx.y;
    const long long column = tile.column + threadIdx.x;
    if (row >= g.M || column >= g.N) return;

    REAL sum = 0;
    for (long long k = 0; k < g.K; k++) {
        sum += A[row * g.lda + k] * B[k * g.ldb + column];
    }

    REAL *c = C + row * g.ldc + column;
    *c = epilogue(g, sum, c);
}
