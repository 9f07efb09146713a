/* GEMM of fp16 matrices: exact products, fp32 sums, result rounded to fp16.
 *
 *      A, B row-major or transposed    TMA -> 128-byte swizzle -> wgmma, which reads 16-bit tiles
 *                                      K-major or MN-major: nothing is packed or copied
 *      rows not 16-byte aligned        packed first (wgmma_pack.cuh)
 *
 * FLOPs: 2 M N K at the fp16 rate.
 * Differs from tf32 by the type, and by reading both operands in place.
 */
#define WGMMA_INPUT "f16"
#include "wgmma_thin.cuh"

WGMMA_PREPARE(gemm_fp16_pack, pack)
WGMMA_PREPARE(gemm_fp16_reduce, sum_parts)
WGMMA_PRODUCT(gemm_fp16, 0, 0)
WGMMA_PRODUCT(gemm_fp16_b, 0, 1)
WGMMA_PRODUCT(gemm_fp16_a, 1, 0)
WGMMA_PRODUCT(gemm_fp16_ab, 1, 1)
WGMMA_SWAPPED_PRODUCT(gemm_fp16_swapped, 0, 0)
WGMMA_SWAPPED_PRODUCT(gemm_fp16_swapped_b, 0, 1)
WGMMA_SWAPPED_PRODUCT(gemm_fp16_swapped_a, 1, 0)
WGMMA_SWAPPED_PRODUCT(gemm_fp16_swapped_ab, 1, 1)
WGMMA_THIN_PRODUCT(gemm_fp16_thin, 0, 0)
WGMMA_THIN_PRODUCT(gemm_fp16_thin_b, 0, 1)
WGMMA_THIN_PRODUCT(gemm_fp16_thin_a, 1, 0)
WGMMA_THIN_PRODUCT(gemm_fp16_thin_ab, 1, 1)
WGMMA_SUMMED_PRODUCT(gemm_fp16_summed, 0, 0)
WGMMA_SUMMED_PRODUCT(gemm_fp16_summed_b, 0, 1)
WGMMA_SUMMED_PRODUCT(gemm_fp16_summed_a, 1, 0)
WGMMA_SUMMED_PRODUCT(gemm_fp16_summed_ab, 1, 1)
