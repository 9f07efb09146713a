/* One element of a product over k = first..end - 1, by FFMAs. Products of split operands fail for
 * infinities: infinity times a low term of 0 is NaN, which the true product need not be. */
#ifndef SMK_PLAIN_PRODUCT_CUH
#define SMK_PLAIN_PRODUCT_CUH

#include "args.h"

/* Of every `step`-th k. Not inlined, because it is almost never needed. */
__device__ __noinline__ float plain_product(const gemm_args &g, long long row, long long column,
                                            long long first, long long end, int step = 1) {
    const REAL *a = g.A + blockIdx.z * g.batch_a + row * g.lda;
    const REAL *b = g.B + blockIdx.z * g.batch_b + column * g.step_b;
    float sum = 0;
#pragma unroll 8
    for (long long k = first; k < end; k += step) {
        sum += a[k * g.step_a] * b[k * g.ldb];
    }
    return sum;
}

/* The same of all k, shared by the 32 lanes of a warp; in each of them. */
__device__ __forceinline__ float plain_product_by_warp(const gemm_args &g, long long row,
                                                       long long column, long long first,
                                                       long long end) {
    float sum = plain_product(g, row, column, first + threadIdx.x % 32, end, 32);
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, lanes);
    return sum;
}

#endif
