/* The instruction of the tf32 products by mma.sync, on fragments of mma_words.cuh. */
#ifndef SMK_MMA_TF32_CUH
#define SMK_MMA_TF32_CUH

#include "mma_words.cuh"

/* d += a * b for 16 x 8 outputs and one half (k = 0 or 1) of the slab's 16 k. */
__device__ __forceinline__ void tf32_product(float (&d)[4], const unsigned (*a)[4],
                                             const unsigned (&b)[4], int k) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
        " {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0][2 * k]), "r"(a[1][2 * k]), "r"(a[0][2 * k + 1]), "r"(a[1][2 * k + 1]),
          "r"(b[2 * k]), "r"(b[2 * k + 1]));
}

#endif
