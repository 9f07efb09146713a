/* GEMM of fp32 matrices on tf32 tensor cores: elements are rounded to 11 bits, to nearest.
 *
 *      a0 = a (1 + e), |e| <= 2^-11      a b = a0 b0
 *
 * The tensor core by itself would truncate, which doubles the error and biases it. TMA rounds one
 * operand as it loads, ties to even; the other is rounded so on its way through registers. Values
 * within 2^-12 of the largest fp32 number may round to infinity.
 * FLOPs: 2 M N K at the tf32 rate. Bytes: the operands', plus wgmma_pack.cuh's where rows are not
 * 16-byte aligned, or A is transposed and B is not.
 * Differs from pipelined by tensor cores, TMA and warp specialization.
 */
#include "wgmma_tf32.cuh"

WGMMA_PREPARE(gemm_tf32_pack, pack)
WGMMA_PREPARE(gemm_tf32_reduce, sum_parts)
WGMMA_PRODUCTS(gemm_tf32, 64)
WGMMA_PRODUCTS(gemm_tf32, 96)
WGMMA_PRODUCTS(gemm_tf32, 128)
#if BLOCK_M == 64
WGMMA_PRODUCTS(gemm_tf32, 16)
WGMMA_PRODUCTS(gemm_tf32, 32)
#else /* of 64 rows, two blocks share the registers of a multiprocessor */
WGMMA_PRODUCTS(gemm_tf32, 160)
WGMMA_PRODUCTS(gemm_tf32, 192)
WGMMA_PRODUCTS(gemm_tf32, 224)
WGMMA_PRODUCTS(gemm_tf32, 256)
#endif
