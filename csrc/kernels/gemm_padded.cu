/* GEMM: conflicted, with the conflicts removed by one unused column.
 *
 *        Bs[x][k]          k ->
 *      lane 0   x=0   |  0  1  2 ... 31 | 0     rows are 33 words apart, so word [x][k] is in bank
 *      lane 1   x=1   |  1  2  3 ...  0 | 1     (33 x + k) mod 32 = (x + k) mod 32:
 *      ...                                      32 lanes, 32 banks
 *      lane 31  x=31  | 31  0  1 ... 30 | 31    (the numbers are banks)
 *
 * Banks (float, TILE = 32): with any odd row pitch a column covers all 32 banks: load and store
 * take 1 wavefront each. double: 66 words, 2 x mod 32 for 16 lanes of a group, 1 wavefront each.
 * TILE = 16: a warp stores two adjacent columns. With pitch 17 the last word of one and the first
 * of the other share a bank, 2 wavefronts; PAD = 2 (32 banks / 16 rows): 1. double, PAD = 1: 1.
 * Bytes and FLOPs: as in tiled; one of the two tiles takes 1/TILE more shared memory, 3.1 %.
 * Differs from conflicted by PAD.
 */
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(TILE *TILE)
    gemm_padded(const __grid_constant__ gemm_args g) {
    __shared__ REAL As[TILE][TILE];
    __shared__ REAL Bs[TILE][TILE + PAD];

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
            const REAL b = Bs[x][k];
            sum += a * b;
        }
        __syncthreads();
    }

    if (row < g.M && column < g.N) {
        REAL *c = C + row * g.ldc + column;
        *c = epilogue(g, sum, c);
    }
}
