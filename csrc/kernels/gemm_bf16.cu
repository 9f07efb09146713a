/* GEMM of bfloat16 matrices: products are exact, sums fp32, the result is rounded to bfloat16.
 *
 *      A, B row-major or transposed    TMA -> 128-byte swizzle -> wgmma, which reads tiles of 16-bit elements
 *                                      along K and across: nothing is packed or copied
 *      rows off 16-byte boundaries     are packed first (wgmma_pack.cuh)
 *
 * FLOPs: 2 M N K at bfloat16's rate, fp16's.
 * Differs from fp16 by the type: fp32's range, 8 bits.
 */
#define WGMMA_INPUT "bf16"
#include "wgmma_16bit.cuh"

WGMMA_PREPARE(gemm_bf16_pack, pack)
WGMMA_PREPARE(gemm_bf16_reduce, sum_parts)
WGMMA_PRODUCT(gemm_bf16, 0, 0)
WGMMA_PRODUCT(gemm_bf16_b, 0, 1)
WGMMA_PRODUCT(gemm_bf16_a, 1, 0)
WGMMA_PRODUCT(gemm_bf16_ab, 1, 1)
