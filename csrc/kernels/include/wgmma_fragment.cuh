/* Loads of B for wgmma_fp32.cuh, or of the rows of wgmma_tf32.cuh: from shared memory to the
 * registers of wgmma's first operand.
 *
 * Banks. A thread's rows g and g + 8 of its warp's 16 are columns n and n + 1, so it reads 8 bytes
 * of a row of 32 columns: chunk (2 (warp % 2) + g / 4) ^ 5 (g / 2 % 2), half g % 2. Half a warp has
 * k = t = 0..3 (tf32) or 2t + e (fp16) and g = 0..3: chunks {c, c ^ 5}, XORed by the swizzle with
 * k % 8: c ^ {0, 1, 2, 3, 5, 4, 7, 6} or c ^ {0, 2, 4, 6, 5, 7, 1, 3}, 8 different ones: no
 * conflict. C is written in rows m = 2t + e: the second pattern again.
 * K-major B (transposed, or packed): its tile has rows of 32 k of one n; g has columns 2g, 2g + 1.
 * fp16 reads 8 bytes: rows 2g + h, chunks {c, c + 1}: c ^ {0, 2, 4, 6} and + 1. tf32 reads 4
 * bytes: g >= 4 reads column 1 while g < 4 reads column 0, so that the 8 rows differ modulo 8.
 * PACK_BOTH: wgmma reads B's tile itself, so rows g and g + 8 are columns g and g + 8. C is written
 * in words, in rows m = 2t + e of 8 adjacent columns: chunks {c, c + 1} ^ {0, 2, 4, 6} + e.
 */
#ifndef SMK_WGMMA_FRAGMENT_CUH
#define SMK_WGMMA_FRAGMENT_CUH

#include "wgmma_gemm.cuh"

/* T: float for tf32, unsigned short for fp16. */
template <typename T> constexpr bool WORDS = sizeof(T) == 4;
template <typename T> constexpr int BLOCK_K = 128 / sizeof(T); /* per stage */
constexpr int BLOCK_N = 64 * CONSUMERS;

/* Bytes of a part of B's tile: 32 columns; K-major, 32 k. */
template <typename T, int B_ACROSS> constexpr int B_BOX = (B_ACROSS ? BLOCK_K<T> : BLOCK_N) * 128;

typedef struct fragment {
    unsigned part[PARTS][4][4]; /* [step of 32 bytes of operand][wgmma's register] */
} fragment;

constexpr int COLUMN_STEP = PACK_BOTH ? 8 : 1;

/* A thread's two columns of B, n and n + COLUMN_STEP. */
typedef struct line_pair {
    int offset; /* of the first one in the block's tile */
    /* Byte offsets in B's tile: MN-major, of its first two k; K-major, of the two columns' rows. */
    unsigned read[2];
    float scale[2]; /* PARTS 2: powers of two */
} line_pair;

template <typename T, int B_ACROSS> __device__ __forceinline__ line_pair my_lines(int consumer) {
    const int t = threadIdx.x % 128, warp = t / 32, g = t % 32 / 4, q = t % 4;
    const int chunk = (2 * (warp % 2) + g / 4) ^ g / 2 % 2 * 5;
    line_pair c;
    if (PACK_BOTH) {
        c.offset = consumer * 64 + warp * 16 + g;
        return c;
    }
    c.offset =
        consumer * 64 + (B_ACROSS ? warp / 2 * 32 + chunk * 4 + g % 2 * 2 : warp * 16 + 2 * g);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (B_ACROSS) {
            const int k = WORDS<T> ? q + 4 * i : 2 * q + i;
            c.read[i] = c.offset / 32 * B_BOX<T, 1> + k * 128 + ((chunk ^ k) << 4) + g % 2 * 8;
        } else {
            /* Words: lanes with g >= 4 take the rows in the other order, see load_words(). */
            const int n = c.offset + (WORDS<T> ? i ^ g / 4 : i);
            c.read[i] =
                n * 128 + (WORDS<T> ? n % 8 * 16 + q * 4 : (n % 8 ^ q / 2) * 16 + q % 2 * 8);
        }
        c.scale[i] = 1;
    }
    return c;
}

/* Word i of a step is k = q + 4 (i / 2) of column i % 2. */
__device__ __forceinline__ void split_word(float x, fragment &f, int step, int i) {
    f.part[0][step][i] = PARTS == 1 ? round_tf32_to_even(x) : round_tf32(x);
    if (PARTS == 2)
        f.part[PARTS - 1][step][i] = round_tf32(x - __uint_as_float(f.part[0][step][i]));
}

template <int B_ACROSS>
__device__ __forceinline__ void load_part(float, fragment &f, const line_pair &c, unsigned tile) {
    const bool swapped = threadIdx.x % 32 >= 16;
#pragma unroll
    for (int step = 0; step < 4; step++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float2 v;
            if (B_ACROSS) {
                v = shared_load_pair(tile + c.read[i] + step * 1024);
            } else {
                const unsigned chunk = (2 * step + i) * 16;
                const float x = shared_load(tile + (c.read[0] ^ chunk));
                const float y = shared_load(tile + (c.read[1] ^ chunk));
                v = {swapped ? y : x, swapped ? x : y};
            }
            split_word(v.x * c.scale[0], f, step, 2 * i);
            split_word(v.y * c.scale[1], f, step, 2 * i + 1);
        }
    }
}

/* Splits two adjacent k. */
__device__ __forceinline__ void split_halves(float x, float y, fragment &f, int step, int i) {
    f.part[0][step][i] = pack_pair(x, y, float16());
    const float2 high = unpack_f16(f.part[0][step][i]);
    f.part[PARTS - 1][step][i] = pack_pair(x - high.x, y - high.y, float16());
}

template <int B_ACROSS>
__device__ __forceinline__ void load_part(unsigned short, fragment &f, const line_pair &c,
                                          unsigned tile) {
#pragma unroll
    for (int step = 0; step < 4; step++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (B_ACROSS) {
                const unsigned from = tile + step * 2048 + i * 1024;
                const float2 x = shared_load_pair(from + c.read[0]),
                             y = shared_load_pair(from + c.read[1]);
                split_halves(x.x * c.scale[0], y.x * c.scale[0], f, step, 2 * i);
                split_halves(x.y * c.scale[1], y.y * c.scale[1], f, step, 2 * i + 1);
            } else {
                const unsigned from = tile + step / 2 * B_BOX<unsigned short, 0>,
                               chunk = (step % 2 * 4 + 2 * i) * 16;
                const float2 x = shared_load_pair(from + (c.read[0] ^ chunk));
                const float2 y = shared_load_pair(from + (c.read[1] ^ chunk));
                split_halves(x.x * c.scale[0], x.y * c.scale[0], f, step, 2 * i);
                split_halves(y.x * c.scale[1], y.y * c.scale[1], f, step, 2 * i + 1);
            }
        }
    }
}

#endif
