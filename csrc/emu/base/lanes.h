/* Questions about 32 lanes at once: which predicates hold, are addresses equal or evenly spaced.
 *
 * The portable loops are what these functions mean. x86 has instructions that turn a vector compare
 * into bits; compilers do not find them from the loops, and branches and memory ask all the time.
 */
#ifndef EMU_LANES_H
#define EMU_LANES_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LANES = 32, FULL = 0xffffffff };

/* 32 lanes of a register. */
typedef uint16_t lanes_u16[LANES] __attribute__((aligned(64)));
typedef uint32_t lanes_u32[LANES] __attribute__((aligned(64)));
typedef uint64_t lanes_u64[LANES] __attribute__((aligned(64)));

/* Before a loop over lanes whose turns do not depend on each other, whatever the pointers look like. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* A predicate vector (0 or ~0 a lane) as bits. */
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
#else
    uint32_t bits = 0;
    for (int l = 0; l < LANES; l++)
        bits |= (predicate[l] & 1u) << l;
    return bits;
#endif
}

/* Bits as a vector of 0 or ~0. */
static inline void lanes_spread(uint32_t bits, uint32_t *out) {
    for (int l = 0; l < LANES; l++)
        out[l] = 0u - (bits >> l & 1u);
}

/* a[l] == a[0] + l * step for all lanes; step 0: all equal. */
static inline bool lanes_evenly_u32(const uint32_t *a, uint32_t step) {
#if defined(__AVX512F__)
    const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i low = _mm512_add_epi32(_mm512_set1_epi32((int)a[0]),
                                         _mm512_mullo_epi32(iota, _mm512_set1_epi32((int)step)));
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32((int)(16 * step)));
    return !(_mm512_cmpneq_epi32_mask(_mm512_loadu_si512(a), low) |
             _mm512_cmpneq_epi32_mask(_mm512_loadu_si512(a + 16), high));
#else
    uint32_t odd = 0;
    for (uint32_t l = 0; l < LANES; l++)
        odd |= a[l] ^ (a[0] + l * step);
    return !odd;
#endif
}

static inline bool lanes_evenly_u64(const uint64_t *a, uint64_t step) {
#if defined(__AVX512F__)
    __m512i want = _mm512_add_epi64(_mm512_set1_epi64((long long)a[0]),
                                    _mm512_mul_epu32(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
                                                     _mm512_set1_epi64((long long)step)));
    const __m512i eight = _mm512_set1_epi64((long long)(8 * step));
    uint32_t odd = 0;
    for (int l = 0; l < LANES; l += 8) {
        odd |= _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(a + l), want);
        want = _mm512_add_epi64(want, eight);
    }
    return !odd;
#else
    uint64_t odd = 0;
    for (uint64_t l = 0; l < LANES; l++)
        odd |= a[l] ^ (a[0] + l * step);
    return !odd;
#endif
}

static inline uint32_t count_lanes(uint32_t bits) {
    return bits == FULL ? LANES : (uint32_t)__builtin_popcount(bits);
}

static inline int first_lane(uint32_t bits) {
    return __builtin_ctz(bits);
}

#endif
