/* GEMM of fp16 matrices: products are exact, sums fp32, the result is rounded to fp16.
 *
 *      A, B row-major or transposed    TMA -> 128-byte swizzle -> wgmma, which reads tiles of 16-bit elements
 *                                      along K and across: nothing is packed or copied
 *      rows off 16-byte boundaries     are packed first (wgmma_pack.cuh)
 *
 * FLOPs: 2 M N K at fp16's rate.
 * Differs from tf32 by the type, and by reading operands where they are.
 */
#define WGMMA_INPUT "f16"
#include "wgmma_16bit.cuh"

WGMMA_PREPARE(gemm_fp16_pack, pack)
WGMMA_PREPARE(gemm_fp16_reduce, sum_parts)
WGMMA_PRODUCT(gemm_fp16, 0, 0)
WGMMA_PRODUCT(gemm_fp16_b, 0, 1)
WGMMA_PRODUCT(gemm_fp16_a, 1, 0)
WGMMA_PRODUCT(gemm_fp16_ab, 1, 1)
