/* gemm_small_k by MMA: 16 bits and fp64. Panels and MMAs: panel_mma.cuh; the rest is as in fp32.
 *
 * A warp's tile of C is 16 rows; BLOCK_M / THREAD_M warps share the block's. They are stored through
 * shared memory (row_stores.cuh). With beta, sums are not rounded before C is added: stored by
 * elements from registers.
 */
#ifndef SMK_SMALL_K_MMA_CUH
#define SMK_SMALL_K_MMA_CUH

constexpr int BATCH = 4; /* loads of 16-bit pairs in flight, per thread and operand */
#include "panel_mma.cuh"

constexpr int BLOCK_N = 32 * THREAD_N, WARPS = BLOCK_M / THREAD_M, THREADS = 32 * WARPS;
constexpr int WARP_M = 16, WARPS_N = WARPS * WARP_M / BLOCK_M, WARP_N = BLOCK_N / WARPS_N;
constexpr int N_TILES = WARP_N / 8;
static_assert(WARPS_N >= 1 && N_TILES % 2 == 0, "whole pairs of MMAs");

typedef part_sum warp_sums[1][N_TILES][4];

#include "row_stores.cuh"

/* alpha * sums + beta * C, from registers. */
__device__ __forceinline__ void store_with_beta(const warp_result &to, const warp_sums &sum,
                                                part_sum alpha, part_sum beta) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < N_TILES; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + i / 2 * 8, column = 8 * n + lane % 4 * 2 + i % 2;
            REAL *c = to.C + row * to.pitch + column;
            if (row < to.rows && column < to.columns) {
                *c = narrow(alpha * sum[0][n][i] + beta * widen(*c), REAL());
            }
        }
    }
}

/* `tile`: the warp's own shared memory. */
__device__ __forceinline__ void store(const warp_result &to, unsigned tile, const warp_sums &sum,
                                      part_sum alpha, part_sum beta) {
    if (beta != 0) {
        store_with_beta(to, sum, alpha, beta);
        return;
    }
    store_rows(to, tile, sum[0], alpha);
}

#endif
