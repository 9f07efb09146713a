/* GEMM of fp32 matrices on fp16 tensor cores: each element becomes two fp16 terms, 3 products.
 *
 *   a = 2^-e (a0 + a1)   e: scales the row's largest element to 2^14   a0: 11 bits, a1: the next 11
 *   b = 2^-f (b0 + b1)   f: the same for the column       a b = 2^-e-f (a1 b0 + a0 b1 + a0 b0)
 *
 * Lost: a1 b1 and the bits after the 22nd, errors of 2^-22 per product, less than fp32 sums lose
 * when K is large. Elements below 2^-17 of their row's largest keep fewer bits: where magnitudes in
 * a row of A or a column of B span more than 2^12, consider tf32x3.
 * FLOPs: 3 times 2 M N K at the fp16 rate, twice tf32's. Bytes: the operands' and wgmma_pack.cuh's.
 * Differs from tf32x3 by fp16's smaller range and higher rate.
 */
#define OPERAND_F16
#define PARTS 2
#include "wgmma_fp32.cuh"

WGMMA_PREPARE(gemm_fp16x3_pack, pack)
WGMMA_PREPARE(gemm_fp16x3_reduce, sum_parts)
WGMMA_PRODUCT(gemm_fp16x3, 0)
WGMMA_PRODUCT(gemm_fp16x3_b, 1)
