/* MMAs of 16 rows of A and 8 columns of B: k = 16 in 16 bits, with fp32 sums, and k = 8 in fp64.
 *
 * Registers of lane 4 g + t. Those of A and B hold a word: two adjacent k in 16 bits, one in fp64.
 *   a0: row g, word t of k        a2: row g, word t + 4           b0: column g, word t
 *   a1: row g + 8, word t         a3: row g + 8, word t + 4       b1: column g, word t + 4
 *   d[0], d[1]: row g of C, columns 2 t and 2 t + 1               d[2], d[3]: row g + 8, the same
 */
#ifndef SMK_MMA_16X8_CUH
#define SMK_MMA_16X8_CUH

#include "args.h"

#define MMA_16BIT(type, name)                                                                      \
    __device__ __forceinline__ void mma_16x8(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, \
                                             unsigned a3, unsigned b0, unsigned b1, type) {        \
        asm("mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32"                          \
            " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                     \
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                       \
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));                               \
    }
MMA_16BIT(float16, "f16")
MMA_16BIT(bfloat16, "bf16")
#undef MMA_16BIT

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
