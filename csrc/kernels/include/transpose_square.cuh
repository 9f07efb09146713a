/* Transposes a square of elements in registers: as many rows as there are elements in 16 bytes. */
#ifndef SMK_TRANSPOSE_SQUARE_CUH
#define SMK_TRANSPOSE_SQUARE_CUH

#include "common.cuh"

constexpr int S = 16 / sizeof(ELEMENT); /* its side */

/* Transposes S x S elements in place: swap the two off-diagonal quarters, then the same in each
 * quarter; here for all squares of one size at once. Below a word, PRMT selects the bytes. */
__device__ __forceinline__ void transpose_square(unsigned (&square)[S][4]) {
#pragma unroll
    for (int half = S / 2; half > 0; half /= 2) {
        const int bytes = half * (int)sizeof(ELEMENT), words = bytes / 4;
#pragma unroll
        for (int i = 0; i < S * 4; i++) {
            const int r = i / 4, w = i % 4;
            if (r & half || w & words) continue; /* swapped by its partner */
            const unsigned a = square[r][w + words], b = square[r + half][w];
            square[r][w + words] = words ? b : __byte_perm(a, b, bytes == 2 ? 0x5410 : 0x6240);
            square[r + half][w] = words ? a : __byte_perm(a, b, bytes == 2 ? 0x7632 : 0x7351);
        }
    }
}

#endif
