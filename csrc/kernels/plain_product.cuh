/* One element of a product by FFMAs, for what tensor cores in parts cannot say: infinity times part 1 of a
 * number that has none is a NaN that the product may not have. */
#ifndef SMK_PLAIN_PRODUCT_CUH
#define SMK_PLAIN_PRODUCT_CUH

#include "args.h"

/* Out of line: it is almost never needed. */
__device__ __noinline__ float plain_product(const gemm_args &g, long long row, long long column) {
    const REAL *a = g.A + blockIdx.z * g.batch_a + row * g.lda;
    const REAL *b = g.B + blockIdx.z * g.batch_b + column * g.step_b;
    float sum = 0;
    for (long long k = 0; k < g.K; k++) {
        sum += a[k * g.step_a] * b[k * g.ldb];
    }
    return sum;
}

#endif
