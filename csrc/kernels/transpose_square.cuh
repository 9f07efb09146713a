/* A square of elements in registers: what 16 bytes of as many rows hold, transposed there. */
#ifndef SMK_TRANSPOSE_SQUARE_CUH
#define SMK_TRANSPOSE_SQUARE_CUH

#include "common.cuh"

constexpr int S = 16 / sizeof(ELEMENT); /* its side */

/* A square of S x S elements, in place. Halving: swap the two quarters off the diagonal, then do the
 * same in each quarter; here all squares of one size at once. Below a word PRMT picks the bytes. */
__device__ __forceinline__ void transpose_square(unsigned (&square)[S][4]) {
#pragma unroll
    for (int half = S / 2; half > 0; half /= 2) {
        const int bytes = half * (int)sizeof(ELEMENT), words = bytes / 4;
#pragma unroll
        for (int i = 0; i < S * 4; i++) {
            const int r = i / 4, w = i % 4;
            if (r & half || w & words) continue; /* the swap of another pair */
            const unsigned a = square[r][w + words], b = square[r + half][w];
            square[r][w + words] = words ? b : __byte_perm(a, b, bytes == 2 ? 0x5410 : 0x6240);
            square[r + half][w] = words ? a : __byte_perm(a, b, bytes == 2 ? 0x7632 : 0x7351);
        }
    }
}

#endif
