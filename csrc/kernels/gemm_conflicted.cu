/* GEMM: tiled, but with B's tile stored transposed, so that the inner loop walks a column.
 *
 *        Bs[x][k]          k ->
 *      lane 0   x=0   | 0 1 2 3 ... 31 |     rows are 32 words apart, so word [x][k] lies in bank
 *      lane 1   x=1   | 0 1 2 3 ... 31 |     (32 x + k) mod 32 = k: all 32 lanes want bank k
 *      ...
 *      lane 31  x=31  | 0 1 2 3 ... 31 |     (the digits are banks)
 *
 * Banks (float, TILE = 32): the read Bs[x][k] takes 32 wavefronts, 32 times a tile; the store
 * Bs[x][y] walks a column too, 32 wavefronts, once a tile. A's accesses are those of tiled: 1.
 * double: 16 lanes a group, all in one pair of banks: 2 x 16 = 32 wavefronts where 2 would do.
 * TILE = 16: a row is half the banks, so even x share one word of them and odd x another: 8 ways.
 * Bytes and FLOPs: those of tiled; only the order within the tile changed, and that is the point.
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
        /* What lies outside becomes 0 in both tiles: 0 * 0 adds nothing, even beside a NaN. */
        As[y][x] = row < g.M && k0 + x < g.K ? A[row * g.lda + k0 + x] : REAL(0);
        Bs[x][y] = k0 + y < g.K && column < g.N ? B[(k0 + y) * g.ldb + column] : REAL(0);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++) {
            const REAL a = As[y][k];
            /* volatile: one access of one word. Free to, ptxas would fetch four k in one LDS.128, which
             * also conflicts, but costs 32 wavefronts for four words. */
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
