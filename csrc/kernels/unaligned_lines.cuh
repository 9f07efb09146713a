/* Lines of neighbours that begin anywhere, read in aligned 16 bytes.
 *
 *      memory    |...01234|56789abc|defghijk|lmn.....|     words, of 16 bytes; the line begins at 0
 *      pieces       |01234567|89abcdef|ghijklmn|           16 bytes each, of two neighbouring words
 *
 * A lane reads both words and shifts them together; the second one is the first one of its neighbour, so it comes out of
 * L1. Words that are not all of the line's are not touched: what they hold goes element by element.
 */
#ifndef SMK_UNALIGNED_LINES_CUH
#define SMK_UNALIGNED_LINES_CUH

#include "args.h"

/* What a lane keeps of an element until it is packed. */
template <typename T> struct bits_of {
    typedef unsigned short type;
    static __device__ __forceinline__ type at(const T *p) { return p->bits; }
};
template <> struct bits_of<float> {
    typedef float type;
    static __device__ __forceinline__ type at(const float *p) { return *p; }
};
typedef bits_of<REAL>::type raw;

template <typename T, int N> struct __align__(N * sizeof(T)) several {
    T at[N];
};

constexpr int WIDE = 16 / sizeof(raw); /* elements of a piece */

/* Piece j of a line is its elements from j * WIDE on, which lie in words[j] and, where the line is `skew` bytes
 * off a 16-byte boundary, words[j + 1]. */
typedef struct line_pieces {
    const uint4 *words;
    int skew;
    int first, inside; /* of words, those that the line has all of */
    int end;           /* pieces first .. end - 1 need no others */
} line_pieces;

__device__ __forceinline__ line_pieces pieces_of(const REAL *from, int length) {
    line_pieces x;
    x.skew = (int)((unsigned long long)from % 16);
    x.words = reinterpret_cast<const uint4 *>(reinterpret_cast<const char *>(from) - x.skew);
    x.first = x.skew != 0;
    x.inside = (int)(((long long)length * (int)sizeof(REAL) + x.skew) / 16);
    x.end = max(x.first, x.inside - x.first);
    return x;
}

/* The 16 bytes from byte `skew` of `low` on. */
__device__ __forceinline__ uint4 joined(const uint4 &low, const uint4 &high, int skew) {
    unsigned w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int words = 2; words > 0; words /= 2) {
#pragma unroll
        for (int i = 0; i < 8 - words; i++)
            w[i] = skew & 4 * words ? w[i + words] : w[i];
    }
    if (sizeof(raw) < 4) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            w[i] = __funnelshift_r(w[i], w[i + 1], 8 * (skew & 3));
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

#endif
