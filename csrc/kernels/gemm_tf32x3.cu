/* GEMM of fp32 matrices by tf32 tensor cores: each element becomes two tf32 numbers, 3 products for one.
 *
 *      a = a0 + a1     a0: 11 bits, a1: the next 11      a b = a1 b0 + a0 b1 + a0 b0
 *      b = b0 + b1     tf32 has fp32's range: no scales
 *
 * What is lost is a1 b1, and the bits behind the 22nd: errors of 2^-22 of each product, less than what
 * fp32 sums lose when K is large. Elements below 2^-114 lose bits: a1 ends at tf32's smallest number, 2^-136.
 * FLOPs: 3 times 2 M N K at tf32's rate. Bytes: wgmma_pack.cuh's beside the operands'.
 * Differs from tf32 by the second part and the sums in fp32.
 */
#define OPERAND_TF32
#define WGMMA_INPUT "tf32"
#define PARTS       2
#define SCALED      0
#include "wgmma_gemm.cuh"

WGMMA_PREPARE(gemm_tf32x3_pack, pack)
WGMMA_PRODUCT(gemm_tf32x3, 0, 0)
