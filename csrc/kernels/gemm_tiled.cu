/* GEMM: a block copies a tile of A and a tile of B into shared memory and works on those.
 *
 *                     B
 *                 +--------+
 *          k0 ->  | [Bs]   |        thread (x, y) copies As[y][x] and Bs[y][x],
 *                 +--------+        then computes C[row + y][column + x] from row y of As
 *     A     k0                      and column x of Bs
 *   +---------+   +--------+
 *   |  [As]   |   | [C  ]  |
 *   +---------+   +--------+
 *
 * Banks (float, TILE = 32; a warp has one y): the stores and the load Bs[k][x] go along a row,
 * words ... + x, 32 different banks; As[y][k] is one word for all lanes, a broadcast. No conflict,
 * with or without PAD: no request spans rows, so the row pitch does not matter. With TILE = 16 a
 * warp has two y, and the two rows of a store are 16 words apart, 17 with PAD = 1, which *adds* a
 * conflict. ptxas merges four As[y][k] into an LDS.128 if it can prove alignment: not if PAD = 1.
 * Bytes: every element is read N/TILE or M/TILE times: 2 M N K / TILE words for 2 M N K FLOPs.
 * Differs from coalesced by the two tiles and the two barriers that guard them.
 */
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(TILE *TILE)
    gemm_tiled(const __grid_constant__ gemm_args g) {
    __shared__ REAL As[TILE][TILE + PAD];
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
        Bs[y][x] = k0 + y < g.K && column < g.N ? B[(k0 + y) * g.ldb + column] : REAL(0);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++) {
            const REAL a = As[y][k];
            const REAL b = Bs[k][x];
            sum += a * b;
        }
        __syncthreads();
    }

    if (row < g.M && column < g.N) {
        REAL *c = C + row * g.ldc + column;
        *c = epilogue(g, sum, c);
    }
}
