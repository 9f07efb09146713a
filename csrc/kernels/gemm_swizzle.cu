/* GEMM: conflicted, with the conflicts removed by permuting each row instead of padding it.
 *
 *        Bs[x][k ^ x]      k = 0, 1, ... is at
 *      lane 0   x=0   | 0  1  2  3 ... 31 |     word [x][k ^ x] is in bank k ^ x:
 *      lane 1   x=1   | 1  0  3  2 ... 30 |     for a fixed k, 32 different x give 32 banks
 *      lane 2   x=2   | 2  3  0  1 ... 29 |
 *      ...                                      (the numbers are banks)
 *
 * Banks (float, TILE = 32): x -> k ^ x is a permutation, so load and store take 1 wavefront each.
 * double: the 16 lanes of a group have 16 different (k ^ x) mod 16, 1 wavefront per group.
 * TILE = 16 or 8: the 2 or 4 rows of a warp fill the banks that shorter rows leave free; still 1
 * everywhere. The XOR stays within the row only if TILE is a power of two.
 * Bytes and FLOPs: as in tiled; no memory is wasted, and the price is one XOR per access.
 * Differs from padded by ^ x in place of PAD.
 */
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(TILE *TILE)
    gemm_swizzle(const __grid_constant__ gemm_args g) {
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
        Bs[x][y ^ x] = k0 + y < g.K && column < g.N ? B[(k0 + y) * g.ldb + column] : REAL(0);
        __syncthreads();
/* By 8: fully unrolled, the compiler keeps all TILE XORed addresses in registers, 63 of them, and
 * the SM has room for one block instead of two as with padded. */
#pragma unroll 8
        for (int k = 0; k < TILE; k++) {
            const REAL a = As[y][k];
            const REAL b = Bs[x][k ^ x];
            sum += a * b;
        }
        __syncthreads();
    }

    if (row < g.M && column < g.N) {
        REAL *c = C + row * g.ldc + column;
        *c = epilogue(g, sum, c);
    }
}
