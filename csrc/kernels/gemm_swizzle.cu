/* GEMM: conflicted, cured by permuting each row instead of lengthening it.
 *
 *        Bs[x][k ^ x]      k = 0, 1, ... stands at
 *      lane 0   x=0   | 0  1  2  3 ... 31 |     word [x][k ^ x] lies in bank k ^ x:
 *      lane 1   x=1   | 1  0  3  2 ... 30 |     for a fixed k, 32 different x give 32 banks
 *      lane 2   x=2   | 2  3  0  1 ... 29 |
 *      ...                                      (the digits are banks)
 *
 * Banks (float, TILE = 32): x -> k ^ x is a permutation, so read and store take 1 wavefront each.
 * double: the 16 lanes of a group have 16 different (k ^ x) mod 16, 1 wavefront a group. TILE = 16
 * or 8: the 2 or 4 rows of a warp fill what the shorter rows leave free; still 1 everywhere.
 * The XOR stays inside the row only if TILE is a power of two.
 * Bytes and FLOPs: those of tiled; no memory is wasted, the price is one XOR an access.
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
        /* What lies outside becomes 0 in both tiles: 0 * 0 adds nothing, even beside a NaN. */
        As[y][x] = row < g.M && k0 + x < g.K ? A[row * g.lda + k0 + x] : REAL(0);
        Bs[x][y ^ x] = k0 + y < g.K && column < g.N ? B[(k0 + y) * g.ldb + column] : REAL(0);
        __syncthreads();
/* In steps of 8: unrolled whole, the compiler keeps all TILE XORed addresses in registers, 63 of them,
 * and the SM has room for one block where padded has two. */
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
