/* GEMM: one thread an output element, lanes along the columns.
 *
 *              B           thread (x, y) of a block of 32 x 32 makes C[row + y][column + x]:
 *          [||||||||]      the 32 lanes of a warp share a row and walk 32 columns.
 *     A    [||||||||]
 *  [-----] [oooooooo]            A request reads A[row][k]: one word for all lanes, 1 sector
 *           lane 0..31           B request reads B[k][column + lane]: 128 bytes in a row, 4 sectors
 *                                C request writes 128 bytes in a row, 4 sectors
 *
 * Banks: none, nothing is shared.
 * Bytes: still 2 M N K words asked for 2 M N K FLOPs, but every byte of a moved sector is used at once.
 * Two requests feed one FFMA, so the load units, not the arithmetic, set the pace.
 * Differs from naive by the two lines that give x to the column: 32 -> 4 sectors a request.
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
