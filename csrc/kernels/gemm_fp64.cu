/* GEMM of fp64 matrices by tensor cores: DMMA 16 x 8 x 16, the widest there is.
 *
 *      block 128 x 128 x 16: 8 warps of 32 x 64        stage: 32 KiB, three of them
 *      warp, a stage: A's 32 x 16 once, B's 16 x 64 in groups of 16 columns, each while the one before is
 *      multiplied: 4 steps of 4 DMMAs
 *      registers: 128 sums, 32 of A, 2 x 16 of B
 *
 * Clocks: a multiprocessor makes 128 multiply-adds a clock, so a stage takes 2048. Shared memory serves 96
 * wavefronts of reads to each warp and 256 of copies, half of that time; L2 16 bytes a clock.
 * Banks: mma_words.cuh.
 * FLOPs: 2 M N K at DMMA's rate, with fp64's own rounding after each product of the sum.
 * Before sm_90 there is 8 x 8 x 4 only, at half the rate of a Hopper; ptxas makes that of this for sm_100 and on.
 * Differs from pipelined by the instruction; by groups of columns; by A and B loaded a step ahead.
 */
#include "mma_words.cuh"

__device__ __forceinline__ void multiply(double (*sum)[4], const a_fragment &a, int tile,
                                         const b_fragment &b) {
    const double (*x)[V] = b.x;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        double *d = sum[e];
        const double *y = a.x[2 * tile + e];
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3},"
                     " {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                     : "d"(x[0][0]), "d"(x[1][0]), "d"(x[0][1]), "d"(x[1][1]), "d"(y[0]),
                       "d"(y[1]));
    }
}

__device__ __forceinline__ void check(const gemm_args &, double &, const block_work &, long long,
                                      long long) {}

MMA_GEMM(gemm_fp64)
