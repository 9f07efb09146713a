/* GEMM of fp32 matrices on fp16 tensor cores: each element becomes one fp16 number, after scaling.
 *
 *   a = 2^-e (a0 + r)   e: scales the row's largest element to 2^14   a0: 11 bits, |r| <= 2^-12 |a0|
 *   b = 2^-f (b0 + s)   f: the same for the column                    a b = 2^-e-f a0 b0
 *
 * fp16 has as many bits as tf32, and the tensor core multiplies it twice as fast. It has a smaller
 * range, hence the scales, which are powers of two and divided out again. Elements below 2^-29 of
 * their row's largest keep fewer than 11 bits, those below 2^-40 none: errors in norm are tf32's.
 * FLOPs: 2 M N K at the fp16 rate. Bytes: the operands' and wgmma_pack.cuh's: A and B are read, in
 * the launch before, and written as fp16.
 * Differs from fp16x3 by the second terms, which are left out.
 */
#define OPERAND_F16
#define PARTS 1
#include "wgmma_fp32.cuh"

WGMMA_PREPARE(gemm_fp16x1_pack, pack)
WGMMA_PREPARE(gemm_fp16x1_reduce, sum_parts)
WGMMA_PRODUCT(gemm_fp16x1, 0)
