/* GEMM of fp32 matrices by tf32 tensor cores: elements are rounded to 11 bits, to nearest.
 *
 *      a0 = a (1 + e), |e| <= 2^-11      a b = a0 b0
 *
 * The tensor core would cut the last bits off by itself: that doubles the error, and all of it goes one way.
 * wgmma reads 32-bit operands along K only, so B has to turn round in any case, and is rounded on the way.
 * FLOPs: 2 M N K at tf32's rate. Bytes: wgmma_pack.cuh's beside the operands'.
 * Differs from the ladder below by the tensor core, TMA, and warps that do one thing each.
 */
#define OPERAND_TF32
#define WGMMA_INPUT "tf32"
#define PARTS       1
#define SCALED      0
#include "wgmma_gemm.cuh"

WGMMA_PREPARE(gemm_tf32_pack, pack)
WGMMA_PRODUCT(gemm_tf32, 0, 0)
