/* GEMM of fp32 matrices by fp16 tensor cores: each element becomes two fp16 numbers, 3 products for one.
 *
 *      a = 2^-e (a0 + a1)      e: brings the row's largest element to 2^14     a0: 11 bits, a1: the next 11
 *      b = 2^-f (b0 + b1)      f: the column's                                 a b = 2^-e-f (a1 b0 + a0 b1 + a0 b0)
 *
 * What is lost is a1 b1, and the bits behind the 22nd: errors of 2^-22 of each product, less than what
 * fp32 sums lose when K is large. An element below 2^-17 of its row's largest keeps fewer bits: where rows of A
 * or columns of B span more than 2^12 in magnitude, look at tf32x3.
 * FLOPs: 3 times 2 M N K at fp16's rate, twice tf32's. Bytes: wgmma_pack.cuh's beside the operands'.
 * Differs from tf32x3 by fp16's smaller range and its rate.
 */
#define OPERAND_F16
#define PARTS 2
#include "wgmma_fp32.cuh"

WGMMA_PREPARE(gemm_fp16x3_largest, find_largest)
WGMMA_PREPARE(gemm_fp16x3_pack, pack)
WGMMA_PREPARE(gemm_fp16x3_reduce, sum_parts)
WGMMA_PRODUCT(gemm_fp16x3, 0)
WGMMA_PRODUCT(gemm_fp16x3_b, 1)
