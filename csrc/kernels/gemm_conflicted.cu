/* GEMM: tiled, but with B's tile stored transposed, so that the inner loop reads down a column.
 *
 *        Bs[x][k]          k ->
 *      lane 0   x=0   | 0 1 2 3 ... 31 |     rows are 32 words apart, so word [x][k] is in bank
 *      lane 1   x=1   | 0 1 2 3 ... 31 |     (32 x + k) mod 32 = k: all 32 lanes access bank k
 *      ...
 *      lane 31  x=31  | 0 1 2 3 ... 31 |     (the numbers are banks)
 *
 * Banks (float, TILE = 32): the load Bs[x][k] takes 32 wavefronts, 32 times per tile; the store
 * Bs[x][y] also goes down a column, 32 wavefronts, once per tile. A's accesses take 1, as in tiled.
 * double: the 16 lanes of a group access one pair of banks: 2 x 16 = 32 wavefronts instead of 2.
 * TILE = 16: a row is half the banks, so all even x share one bank and all odd x another: 8-way.
 * Bytes and FLOPs: as in tiled; only the layout of the tile differs, which is the point.
 * Differs from tiled by the order of the two indices of Bs.
 */
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(TILE *TILE)
    gemm_conflicted(const __grid_constant__ gemm_args g) {
    __shared__ REAL As[TILE][TILE];
    __shared__ REAL Bs[TILE][TILE];

    const REAL *A = g.A + blockIdx.z * g.batch_a;
    const REAL *B = g.B + blockIdx.z * g.batch_b;
    REAL *C = g.C + blockIdx.z * g.batch_c;

    const int x = threadIdx.x, y = threadIdx.y;
    const tile_origin tile = block_tile(g.N, TILE, TILE);
    const long long row = tile.row + y;
    const long long column = tile.column + x;

    REAL sum = 0;
    for (long long k0 = 0; k0 < g.K; k0 += TILE) {
        /* Elements outside are 0 in both tiles: 0 * 0 adds nothing, but 0 * NaN would. */
        As[y][x] = row < g.M && k0 + x < g.K ? A[row * g.lda + k0 + x] : REAL(0);
        Bs[x][y] = k0 + y < g.K && column < g.N ? B[(k0 + y) * g.ldb + column] : REAL(0);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++) {
            const REAL a = As[y][k];
            /* volatile: one access per word. Otherwise ptxas would merge four k into an LDS.128,
             * which also conflicts, but takes 32 wavefronts for four words. */
            const REAL b = *(volatile REAL *)&Bs[x][k];
            sum += a * b;
        }
        __syncthreads();
    }

    if (row < g.M && column < g.N) {
        REAL *c = C + row * g.ldc + column;
        *c = epilogue(g, sum, c);
    }
}
