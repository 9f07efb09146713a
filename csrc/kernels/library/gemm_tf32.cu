/* GEMM of fp32 matrices on tf32 tensor cores: elements are rounded to 11 bits, to nearest.
 *
 *      a0 = a (1 + e), |e| <= 2^-11      a b = a0 b0
 *
 * The tensor core by itself would truncate, which doubles the error and biases it. TMA rounds A as
 * it loads; B is rounded on its way through registers. Values within 2^-12 of the largest fp32
 * number may round to infinity.
 * FLOPs: 2 M N K at the tf32 rate. Bytes: the operands', plus wgmma_pack.cuh's where A is
 * transposed or rows are not 16-byte aligned.
 * Differs from pipelined by tensor cores, TMA and warp specialization.
 */
#define OPERAND_TF32
#define PARTS 1
#include "wgmma_fp32.cuh"

WGMMA_PREPARE(gemm_tf32_pack, pack)
WGMMA_PREPARE(gemm_tf32_reduce, sum_parts)
WGMMA_PRODUCT(gemm_tf32, 0)
WGMMA_PRODUCT(gemm_tf32_b, 1)
