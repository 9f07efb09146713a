/* GEMM of fp32 matrices by tf32 mma.sync, sm_80 and up: 3 tf32 products for each fp32 product.
 *
 *      a = a0 + a1     a0: 11 bits, rounded      a b = a1 b0 + a0 b1 + a0 b0
 *      b = b0 + b1     a1: the exact rest, of which the tensor core uses 11 bits and drops 2
 *
 *      block 128 x 128 x 32: 8 warps of 64 x 32    three stages of 32 KiB: 96 of sm_86's 99 KiB
 *      warp, per slab of 16 k: B's 16 x 32 is split once, A's 16 x 16 tiles one by one; per 16 x 8
 *      of C 6 MMAs, which start from zero, small products first, then 4 FADDs
 *
 * Precision: as tf32x3, three errors of 2^-22 per product. The tensor core truncates when it adds,
 * so it adds 16 k only; FADDs, which round to nearest, add those sums. NaN sums are recomputed.
 * A split is an integer add and an AND (half a unit up, then cut) and an FADD. For NaN, infinity
 * and what rounds to it, a1 is NaN or infinite and so the sum is NaN: no test is needed beforehand.
 * Clocks per warp and slab: 96 MMAs at 8 per sub-partition on sm_80, about 6 on sm_90: 768 or 580.
 * Issue slots: 356, for MMAs, splits of 48 elements (144), 64 FADDs, 12 LDS.128, copies, addresses.
 * Two warps share a sub-partition, so the tensor core binds. Shared memory: 1024 wavefronts per
 * stage, copies included, of 3072 or 2300 clocks.
 * Banks: mma_words.cuh.
 * FLOPs: 3 times 2 M N K at the tf32 rate of mma.sync.
 * Differs from tf32x3 by mma.sync, which all chips have, and by splits in registers: no workspace.
 */
#include "mma_tf32.cuh"
#include "mma_loop.cuh"
#include "plain_product.cuh"

/* Splits N elements into high and low terms, as tf32 bits. */
template <int N>
__device__ __forceinline__ void split(const float (&x)[N], unsigned (&high)[N],
                                      unsigned (&low)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        high[i] = (__float_as_uint(x[i]) + 0x1000) & 0xffffe000;
        low[i] = __float_as_uint(x[i] - __uint_as_float(high[i]));
    }
}

__device__ __forceinline__ void multiply(float (*sum)[4], const a_fragment &a, int tile,
                                         const b_fragment &b) {
    unsigned a0[2][4], a1[2][4], b0[V][4], b1[V][4];
    float d[V][4] = {};
    split(a.x[2 * tile], a0[0], a1[0]);
    split(a.x[2 * tile + 1], a0[1], a1[1]);
#pragma unroll
    for (int q = 0; q < V; q++) {
        split(b.x[q], b0[q], b1[q]);
    }
#pragma unroll
    for (int order = 0; order < 3; order++) { /* a1 b0, a0 b1, a0 b0 */
#pragma unroll
        for (int k = 0; k < 2; k++) {
#pragma unroll
            for (int q = 0; q < V; q++) {
                tf32_product(d[q], (order == 1 ? b1 : b0) + q / 2 * 2,
                             (order == 0 ? a1 : a0)[q % 2], k);
            }
        }
    }
#pragma unroll
    for (int q = 0; q < V; q++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sum[q][i] += d[q][i];
        }
    }
}

__device__ __forceinline__ void check(const gemm_args &g, float &sum, const block_work &block,
                                      long long row, long long column) {
    if (sum != sum && row < g.M && column < g.N)
        sum = plain_product(g, row, column, block.first, block.end);
}

MMA_GEMM(gemm_mma_tf32x3)
