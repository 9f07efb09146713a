/* GEMM of float16 matrices by mma.sync, sm_80 and up: exact products, fp32 sums, rounded result.
 *
 *      block 128 x 128 x 64: 4 warps of 64 x 64    three stages of 32 KiB: 96 of sm_86's 99 KiB
 *      warp, per slab of 16 k: A's 64 x 16 once, B's 16 x 64 in groups of 16 columns, each loaded
 *      while the previous group is multiplied: 4 steps of 8 MMAs
 *      registers: 128 sums, 16 of A, 2 x 4 of B: two blocks fit on a multiprocessor of sm_90
 *
 * Clocks: an MMA 16 x 8 x 16 takes a sub-partition 8 on sm_80, about 6 on sm_90; a stage 1024, 770.
 * Shared memory takes 768, 128 wavefronts of loads per warp and 256 of copies: on sm_90 it binds as
 * soon as the tensor core does. L2 delivers 32 KiB per stage: 32 or 42 bytes per clock. Blocks of
 * 256 columns (8 warps, 144 KiB) take 704 wavefronts and 31 bytes per clock for the same work.
 * Banks: mma_halves.cuh.
 * FLOPs: 2 M N K at the 16-bit rate of mma.sync, on sm_90 some 60 % of wgmma's.
 * Differs from pipelined by the instruction, ldmatrix, and A and B loaded one step ahead.
 */
#define MMA_INPUT "f16"
#include "mma_halves.cuh"

MMA_GEMM(gemm_mma_fp16)
