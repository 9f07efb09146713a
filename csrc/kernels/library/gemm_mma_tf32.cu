/* GEMM of fp32 matrices by tf32 mma.sync, sm_80 and up: elements rounded to 11 bits, to nearest.
 *
 *      a0 = a (1 + e), |e| <= 2^-11      a b = a0 b0, summed in fp32 by the tensor core
 *
 *      block 128 x 128 x 32: 8 warps of 64 x 32    three stages of 32 KiB: 96 of sm_86's 99 KiB
 *      warp, per slab of 16 k: B's 16 x 32 and A's 64 x 16 are rounded in registers; per 16 x 8 of
 *      C 2 MMAs
 *
 * Precision: as tf32, two errors of 2^-11 per product, and the tensor core truncates when it adds.
 * NaN stays NaN, and infinity stays infinity. Values within 2^-12 of the largest fp32 number may
 * round to infinity.
 * Clocks per warp and slab: 32 MMAs at 8 per sub-partition on sm_80, about 6 on sm_90: 256 or 190.
 * Shared memory: 1024 wavefronts per stage, copies included, of 1024 or 768 clocks: the limit.
 * Banks: mma_words.cuh.
 * FLOPs: 2 M N K at the tf32 rate of mma.sync.
 * Differs from mma_tf32x3 by one product in place of three. Differs from tf32 by smaller tiles, and
 * by copies that take rows of any alignment and either order: no workspace.
 */
#include "mma_tf32.cuh"
#include "mma_loop.cuh"

/* Half a unit of the 11th bit up; the tensor core drops the bits below. Unlike cvt.rna, which takes
 * a comparison, an addition and moves. Exact but for subnormal numbers, which are only cut. */
template <int N>
__device__ __forceinline__ void round_all(const float (&x)[N], unsigned (&rounded)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        const float power = __uint_as_float(__float_as_uint(x[i]) & 0xff800000);
        rounded[i] = __float_as_uint(fmaf(power, 0x1p-11f, x[i]));
    }
}

__device__ __forceinline__ void multiply(float (*sum)[4], const a_fragment &a, int tile,
                                         const b_fragment &b) {
    unsigned a0[2][4], b0[V][4];
    round_all(a.x[2 * tile], a0[0]);
    round_all(a.x[2 * tile + 1], a0[1]);
#pragma unroll
    for (int q = 0; q < V; q++) {
        round_all(b.x[q], b0[q]);
    }
#pragma unroll
    for (int k = 0; k < 2; k++) {
#pragma unroll
        for (int q = 0; q < V; q++) {
            tf32_product(sum[q], b0 + q / 2 * 2, a0[q % 2], k);
        }
    }
}

__device__ __forceinline__ void check(const gemm_args &, float &, const block_work &, long long,
                                      long long) {}

MMA_GEMM(gemm_mma_tf32)
