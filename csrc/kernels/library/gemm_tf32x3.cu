/* GEMM of fp32 matrices on tf32 tensor cores: each element becomes two tf32 terms, 3 products.
 *
 *   a = 2^-e (a0 + a1)   e: scales the row's largest element to 2^14   a0: 11 bits, a1: the next 11
 *   b = 2^-f (b0 + b1)   f: the same for the column       a b = 2^-e-f (a1 b0 + a0 b1 + a0 b0)
 *
 * Lost: a1 b1 and the bits after the 22nd, errors of 2^-22 per product, less than fp32 sums lose
 * when K is large. The scales keep a1 and b1 of tiny elements above tf32's smallest number, 2^-136.
 * FLOPs: 3 times 2 M N K at the tf32 rate. Bytes: the operands' and wgmma_pack.cuh's.
 * Differs from tf32 by the second term and by sums in fp32.
 */
#define OPERAND_TF32
#define PARTS 2
#include "wgmma_fp32.cuh"

WGMMA_PREPARE(gemm_tf32x3_pack, pack)
WGMMA_PREPARE(gemm_tf32x3_reduce, sum_parts)
WGMMA_PRODUCT(gemm_tf32x3, 0)
WGMMA_PRODUCT(gemm_tf32x3_b, 1)
