/* GEMM of fp32 matrices by tf32 tensor cores: elements are rounded to 11 bits, to nearest.
 *
 *      a0 = a (1 + e), |e| <= 2^-11      a b = a0 b0
 *
 * The tensor core would cut the last bits off by itself: that doubles the error, and all of it goes one way.
 * TMA rounds A as it loads, and B is rounded on its way through registers; what is within 2^-12 of fp32's
 * largest number may round to infinity.
 * FLOPs: 2 M N K at tf32's rate. Bytes: the operands', and wgmma_pack.cuh's where A is transposed, or rows
 * are off 16-byte boundaries.
 * Differs from the ladder below by the tensor core, TMA, and warps that do one thing each.
 */
#define OPERAND_TF32
#define PARTS 1
#include "wgmma_fp32.cuh"

WGMMA_PREPARE(gemm_tf32_pack, pack)
WGMMA_PREPARE(gemm_tf32_reduce, sum_parts)
WGMMA_PRODUCT(gemm_tf32, 0)
WGMMA_PRODUCT(gemm_tf32_b, 1)
