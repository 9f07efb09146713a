/* GEMM of bfloat16 matrices by mma.sync, from sm_80 on: products are exact, sums fp32, the result is rounded.
 *
 *      block 128 x 128 x 64: 4 warps of 64 x 64        stage: 32 KiB, three of them: 96 of sm_86's 99 KiB
 *      warp, a slab of 16 k: A's 64 x 16 once, B's 16 x 64 in groups of 16 columns, each while the one before
 *      is multiplied: 4 steps of 8 MMAs
 *      registers: 128 sums, 16 of A, 2 x 4 of B: two blocks fit a multiprocessor of sm_90
 *
 * Clocks: an MMA of 16 x 8 x 16 takes a sub-partition 8 on sm_80, about 6 on sm_90: a stage 1024 or 770.
 * Shared memory serves 128 wavefronts of reads to each warp and 256 of copies, 768: on sm_90 it binds as soon
 * as the tensor core does. From L2, 32 KiB a stage: 32 or 42 bytes a clock. Blocks of 256 columns (8 warps,
 * 144 KiB) have 704 wavefronts and 31 bytes for as much work.
 * Banks: mma_halves.cuh.
 * FLOPs: 2 M N K at mma.sync's 16-bit rate, on sm_90 some 60 % of wgmma's.
 * Differs from mma_fp16 by the type: fp32's range, 8 bits.
 */
#define MMA_INPUT "bf16"
#include "mma_halves.cuh"

MMA_GEMM(gemm_mma_bf16)
