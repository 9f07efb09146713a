/* MMAs of 16 rows of A and 8 columns of B: k = 16 in 16 bits, with fp32 sums, and k = 8 in fp64.
 *
 * Lane 4 g + t has, in words of two 16-bit elements or one fp64:
 *   a[0], a[1]   rows g and g + 8 of A, k in word t     b[0]   column g of B, k in word t
 *   a[2], a[3]   the same rows, word t + 4              b[1]   the same column, word t + 4
 *   d            row g, columns 2 t and 2 t + 1 of C, then row g + 8
 */
#ifndef SMK_MMA_16X8_CUH
#define SMK_MMA_16X8_CUH

#include "args.h"

__device__ __forceinline__ void mma_16x8(float (&d)[4], unsigned a0, unsigned a1, unsigned a2,
                                         unsigned a3, unsigned b0, unsigned b1, float16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_16x8(float (&d)[4], unsigned a0, unsigned a1, unsigned a2,
                                         unsigned a3, unsigned b0, unsigned b1, bfloat16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* 8 x 8 x 4, of every chip from sm_80 on: at half the rate of 16 x 8 x 8 on sm_90. */
__device__ __forceinline__ void mma_8x8x4(double *d, double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[0]), "+d"(d[1])
        : "d"(a), "d"(b));
}

__device__ __forceinline__ void mma_16x8(double (&d)[4], double a0, double a1, double a2, double a3,
                                         double b0, double b1, double) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3},"
        " {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(b0), "d"(b1));
#else
    mma_8x8x4(d, a0, b0);
    mma_8x8x4(d + 2, a1, b0);
    mma_8x8x4(d, a2, b1);
    mma_8x8x4(d + 2, a3, b1);
#endif
}

#endif
