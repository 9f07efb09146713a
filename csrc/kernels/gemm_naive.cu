/* GEMM, first rung: one thread per output element, no shared memory, lanes along the wrong axis.
 *
 *            B            thread (x, y) of a 32 x 32 block computes C[row + x][column + y]:
 *           [ | ]         the 32 lanes of a warp share a column and span 32 rows.
 *       A   [ | ]
 *     [---] [ o ]  lane 0
 *     [---] [ o ]  lane 1       load of A: A[row + lane][k], lda apart, 32 sectors
 *     [---] [ o ]  ...          load of B: B[k][column], one word, 1 sector
 *     [---] [ o ]  lane 31      store of C: C[row + lane][column], 32 sectors
 *
 * Banks: none; shared memory is not used.
 * Bytes: 2 M N K words requested for 2 M N K FLOPs; caches serve a part of them. A sector holds 8
 * floats and a load of A uses 1 of each, so 7/8 of what it moves is for later iterations.
 * Differs from nothing: this is the baseline.
 */
#include "common.cuh"

#define TILE 32

extern "C" __global__ void __launch_bounds__(TILE *TILE)
    gemm_naive(const __grid_constant__ gemm_args g) {
    const REAL *A = g.A + blockIdx.z * g.batch_a;
    const REAL *B = g.B + blockIdx.z * g.batch_b;
    REAL *C = g.C + blockIdx.z * g.batch_c;

    const tile_origin tile = block_tile(g.N, TILE, TILE);
    const long long row = tile.row + threadIdx.x;
    const long long column = tile.column + threadIdx.y;
    if (row >= g.M || column >= g.N) return;

    REAL sum = 0;
    for (long long k = 0; k < g.K; k++) {
        sum += A[row * g.lda + k] * B[k * g.ldb + column];
    }

    REAL *c = C + row * g.ldc + column;
    *c = epilogue(g, sum, c);
}
