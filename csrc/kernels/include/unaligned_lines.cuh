/* Lines of contiguous elements that begin at any address, read by aligned 16-byte loads.
 *
 *      memory    |...01234|56789abc|defghijk|lmn.....|     16-byte words; the line begins at 0
 *      pieces       |01234567|89abcdef|ghijklmn|           16 bytes each, of two adjacent words
 *
 * A lane reads both words and shifts them together. The second is the first of the next lane, so it
 * comes from L1. Words that the line fills only in part are not read; single elements are.
 */
#ifndef SMK_UNALIGNED_LINES_CUH
#define SMK_UNALIGNED_LINES_CUH

#include "args.h"

/* The type in which a lane holds an element until it is packed. */
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

constexpr int WIDE = 16 / sizeof(raw); /* elements per piece */

/* Piece j of a line is its elements from j * WIDE on. They are in words[j] and, if the line begins
 * `skew` bytes after a 16-byte boundary, in words[j + 1]. */
typedef struct line_pieces {
    const uint4 *words;
    int skew;
    int first, inside; /* words first..inside - 1 are within the line */
    int end;           /* pieces first..end - 1 need only these */
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

/* 16 bytes of low, high, from byte `skew` on. */
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
