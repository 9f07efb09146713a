/* GEMM of bfloat16 matrices: exact products, fp32 sums, result rounded to bfloat16.
 *
 *      A, B row-major or transposed    TMA -> 128-byte swizzle -> wgmma, which reads 16-bit tiles
 *                                      K-major or MN-major: nothing is packed or copied
 *      rows not 16-byte aligned        packed first (wgmma_pack.cuh)
 *
 * FLOPs: 2 M N K at the bfloat16 rate, which equals fp16's.
 * Differs from fp16 by the type: fp32's range, 8 significant bits.
 */
#define WGMMA_INPUT "bf16"
#include "wgmma_thin.cuh"

WGMMA_PREPARE(gemm_bf16_pack, pack)
WGMMA_PREPARE(gemm_bf16_reduce, sum_parts)
WGMMA_PRODUCT(gemm_bf16, 0, 0)
WGMMA_PRODUCT(gemm_bf16_b, 0, 1)
WGMMA_PRODUCT(gemm_bf16_a, 1, 0)
WGMMA_PRODUCT(gemm_bf16_ab, 1, 1)
WGMMA_SWAPPED_PRODUCT(gemm_bf16_swapped, 0, 0)
WGMMA_SWAPPED_PRODUCT(gemm_bf16_swapped_b, 0, 1)
WGMMA_SWAPPED_PRODUCT(gemm_bf16_swapped_a, 1, 0)
WGMMA_SWAPPED_PRODUCT(gemm_bf16_swapped_ab, 1, 1)
WGMMA_THIN_PRODUCT(gemm_bf16_thin, 0, 0)
WGMMA_THIN_PRODUCT(gemm_bf16_thin_b, 0, 1)
WGMMA_THIN_PRODUCT(gemm_bf16_thin_a, 1, 0)
WGMMA_THIN_PRODUCT(gemm_bf16_thin_ab, 1, 1)
WGMMA_SUMMED_PRODUCT(gemm_bf16_summed, 0, 0)
WGMMA_SUMMED_PRODUCT(gemm_bf16_summed_b, 0, 1)
WGMMA_SUMMED_PRODUCT(gemm_bf16_summed_a, 1, 0)
WGMMA_SUMMED_PRODUCT(gemm_bf16_summed_ab, 1, 1)
