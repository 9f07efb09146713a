/* Operations on the 32 lanes of a warp: predicates to a bit mask, tests for equal or evenly spaced
 * addresses.
 *
 * The portable loops define each function. The other versions use instructions that turn a vector
 * compare into a bit mask. Compilers do not derive them from the loops, and every branch and memory
 * access runs this code.
 */
#ifndef EMU_LANES_H
#define EMU_LANES_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__x86_64__)
#include <emmintrin.h> /* SSE2 alone: the whole set takes a file's compilation half of its time */
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

enum { LANES = 32 };
enum { FULL = 0xffffffff };

/* A register's values in all 32 lanes. */
typedef uint16_t lanes_u16[LANES] __attribute__((aligned(64)));
typedef uint32_t lanes_u32[LANES] __attribute__((aligned(64)));
typedef uint64_t lanes_u64[LANES] __attribute__((aligned(64)));

/* Marks a loop over lanes whose iterations are independent even if its pointers may alias. */
#if defined(__clang__)
/* Alone, clang unrolls a loop to 32 scalar stores before it vectorises. */
#define INDEPENDENT                                                                                \
    _Pragma("clang loop vectorize(assume_safety) unroll(disable) interleave_count(8)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* A predicate vector (0 or ~0 per lane) to a lane mask. */
static inline uint32_t lanes_bits(const uint32_t *predicate) {
#if defined(__AVX512F__)
    const __m512i low = _mm512_loadu_si512(predicate);
    const __m512i high = _mm512_loadu_si512(predicate + 16);
    return (uint32_t)_mm512_test_epi32_mask(low, low) | (uint32_t)_mm512_test_epi32_mask(high, high)
                                                            << 16;
#elif defined(__x86_64__)
    const __m128i *p = (const __m128i *)predicate;
    uint32_t bits = 0;
    for (int half = 0; half < 2; half++, p += 4) {
        const __m128i low = _mm_packs_epi32(_mm_loadu_si128(p), _mm_loadu_si128(p + 1));
        const __m128i high = _mm_packs_epi32(_mm_loadu_si128(p + 2), _mm_loadu_si128(p + 3));
        bits |= (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high)) << 16 * half;
    }
    return bits;
#elif defined(__wasm_simd128__)
    uint32_t bits = 0;
    for (int l = 0; l < LANES; l += 16, predicate += 16) {
        const v128_t low =
            wasm_i16x8_narrow_i32x4(wasm_v128_load(predicate), wasm_v128_load(predicate + 4));
        const v128_t high =
            wasm_i16x8_narrow_i32x4(wasm_v128_load(predicate + 8), wasm_v128_load(predicate + 12));
        bits |= wasm_i8x16_bitmask(wasm_i8x16_narrow_i16x8(low, high)) << l;
    }
    return bits;
#else
    uint32_t bits = 0;
    for (int l = 0; l < LANES; l++)
        bits |= (predicate[l] & 1u) << l;
    return bits;
#endif
}

/* A lane mask to a predicate vector (0 or ~0 per lane). */
static inline void lanes_spread(uint32_t bits, uint32_t *out) {
    for (int l = 0; l < LANES; l++)
        out[l] = 0u - (bits >> l & 1u);
}

/* Whether a[l] == a[0] + l * step for all lanes; step 0: all equal. */
static inline bool lanes_evenly_u32(const uint32_t *a, uint32_t step) {
#if defined(__AVX512F__)
    const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i low = _mm512_add_epi32(_mm512_set1_epi32((int)a[0]),
                                         _mm512_mullo_epi32(iota, _mm512_set1_epi32((int)step)));
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32((int)(16 * step)));
    return !(_mm512_cmpneq_epi32_mask(_mm512_loadu_si512(a), low) |
             _mm512_cmpneq_epi32_mask(_mm512_loadu_si512(a + 16), high));
#else
    uint32_t mismatch = 0;
    for (uint32_t l = 1; l < LANES; l++)
        mismatch |= (a[l] - a[l - 1]) ^ step;
    return !mismatch;
#endif
}

static inline bool lanes_evenly_u64(const uint64_t *a, uint64_t step) {
#if defined(__AVX512F__)
    __m512i expected = _mm512_add_epi64(_mm512_set1_epi64((long long)a[0]),
                                        _mm512_mul_epu32(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
                                                         _mm512_set1_epi64((long long)step)));
    const __m512i eight = _mm512_set1_epi64((long long)(8 * step));
    uint32_t mismatch = 0;
    for (int l = 0; l < LANES; l += 8) {
        mismatch |= _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(a + l), expected);
        expected = _mm512_add_epi64(expected, eight);
    }
    return !mismatch;
#else
    uint64_t mismatch = 0;
    for (uint32_t l = 1; l < LANES; l++)
        mismatch |= (a[l] - a[l - 1]) ^ step;
    return !mismatch;
#endif
}

static inline uint32_t count_lanes(uint32_t bits) {
    return bits == FULL ? LANES : (uint32_t)__builtin_popcount(bits);
}

static inline int first_lane(uint32_t bits) {
    return __builtin_ctz(bits);
}

#endif
