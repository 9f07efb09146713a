/* The words that transpose_sectors moves: elements, or of 1 and 2 bytes as many as 4 bytes hold. */
#ifndef SMK_TRANSPOSE_WORDS_CUH
#define SMK_TRANSPOSE_WORDS_CUH

#include "common.cuh"

template <int BYTES> struct word_of {
    typedef ELEMENT type;
};
template <> struct word_of<1> {
    typedef unsigned type;
};
template <> struct word_of<2> {
    typedef unsigned type;
};
constexpr int E = sizeof(ELEMENT), N = E < 4 ? 4 / E : 1; /* elements of a word */
/* Read once, with the neighbours that other requests of the tile ask for. */
__device__ __forceinline__ unsigned load(const unsigned *p) {
    unsigned v;
    asm volatile("ld.global.nc.L2::256B.b32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}
__device__ __forceinline__ unsigned long long load(const unsigned long long *p) {
    unsigned long long v;
    asm volatile("ld.global.nc.L2::256B.b64 %0, [%1];" : "=l"(v) : "l"(p));
    return v;
}
__device__ __forceinline__ uint4 load(const uint4 *p) {
    uint4 v;
    asm volatile("ld.global.nc.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}

/* The aligned word at p, of which the array may have only a part. */
__device__ __forceinline__ unsigned load_part(unsigned long long p, unsigned long long begin,
                                              unsigned long long end) {
    if (p >= begin && p + 4 <= end) return load(reinterpret_cast<const unsigned *>(p));
    unsigned v = 0;
    for (int b = 0; b < 4; b++)
        if (p + b >= begin && p + b < end)
            v |= *reinterpret_cast<const unsigned char *>(p + b) << 8 * b;
    return v;
}

/* Columns out of rows: rows[n] are N neighbours of row n, then element n of each. */
__device__ __forceinline__ void turn(unsigned (&rows)[2]) {
    const unsigned a = rows[0], b = rows[1];
    rows[0] = __byte_perm(a, b, 0x5410), rows[1] = __byte_perm(a, b, 0x7632);
}
__device__ __forceinline__ void turn(unsigned (&rows)[4]) {
    const unsigned a = __byte_perm(rows[0], rows[1], 0x5140);
    const unsigned b = __byte_perm(rows[2], rows[3], 0x5140);
    const unsigned c = __byte_perm(rows[0], rows[1], 0x7362);
    const unsigned d = __byte_perm(rows[2], rows[3], 0x7362);
    rows[0] = __byte_perm(a, b, 0x5410), rows[1] = __byte_perm(a, b, 0x7632);
    rows[2] = __byte_perm(c, d, 0x5410), rows[3] = __byte_perm(c, d, 0x7632);
}

#endif
