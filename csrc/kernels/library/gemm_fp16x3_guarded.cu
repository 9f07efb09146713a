/* GEMM of fp32 matrices: fp16x3, which finds the sums that fp16's range may have spoilt.
 *
 *   tile of C whose rows of A and columns of B have no element 0 < |x| < 2 / max(K, 16), scaled so
 *   that the largest is in [2^15, 2^16):                             fp16x3, two fp16 terms
 *   else, sums below 2^19, if they are few:                          also by FFMAs
 *   the whole tile, if they are many:                                also by tf32x3, two tf32 terms
 *
 * So every element of C has an error of at most (K + 64) 2^-24 of sum |a||b|: docs/choosing.md has
 * the proof.
 * FLOPs: 3 times 2 M N K at the fp16 rate; of tiles with many small sums, also at the tf32 rate.
 * Bytes: fp16x3's.
 * Differs from fp16x3 by the test of each tile, and by what is computed again.
 */
#define OPERAND_F16
#define PARTS   2
#define GUARDED 1
#include "wgmma_fp32.cuh"

WGMMA_PREPARE(gemm_fp16x3_guarded_pack, pack)
WGMMA_PREPARE(gemm_fp16x3_guarded_reduce, sum_parts)
WGMMA_PRODUCT(gemm_fp16x3_guarded, 0)
WGMMA_PRODUCT(gemm_fp16x3_guarded_b, 1)
