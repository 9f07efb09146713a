/* 16 bytes at any address, from the two aligned words of 16 bytes that they lie in. */
#ifndef SMK_JOINED_WORDS_CUH
#define SMK_JOINED_WORDS_CUH

/* 16 bytes of low, high, from byte `skew` on: a multiple of the size of T. */
template <typename T>
__device__ __forceinline__ uint4 joined(const uint4 &low, const uint4 &high, int skew) {
    unsigned w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int words = 2; words > 0; words /= 2) {
#pragma unroll
        for (int i = 0; i < 8 - words; i++)
            w[i] = skew & 4 * words ? w[i + words] : w[i];
    }
    if (sizeof(T) < 4) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            w[i] = __funnelshift_r(w[i], w[i + 1], 8 * (skew & 3));
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

#endif
