/* One element of a product over k = first..end - 1, by FFMAs. Products of split operands fail for
 * infinities: infinity times a low term of 0 is NaN, which the true product need not be. */
#ifndef SMK_PLAIN_PRODUCT_CUH
#define SMK_PLAIN_PRODUCT_CUH

#include "args.h"

/* Not inlined, because it is almost never needed. */
__device__ __noinline__ float plain_product(const gemm_args &g, long long row, long long column,
                                            long long first, long long end) {
    const REAL *a = g.A + blockIdx.z * g.batch_a + row * g.lda;
    const REAL *b = g.B + blockIdx.z * g.batch_b + column * g.step_b;
    float sum = 0;
    for (long long k = first; k < end; k++) {
        sum += a[k * g.step_a] * b[k * g.ldb];
    }
    return sum;
}

#endif
