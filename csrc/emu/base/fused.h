/* Fused multiply-add of a warp's lanes in f32, on hosts that have no such instruction.
 *
 * In double the product is exact. The sum is rounded to double and then to f32: twice. That is the
 * same as once unless the double is half-way between two f32, or the result is subnormal. Few
 * are, so lanes are checked together, and computed again by the caller if one of them may be.
 */
#ifndef EMU_FUSED_H
#define EMU_FUSED_H

#include <math.h>
#include <string.h>

#include "lanes.h"

/* gcc does not define __FP_FAST_FMAF where a pragma chooses the target. */
#if defined(__FMA__) || defined(__FP_FAST_FMAF)
#define HAS_FUSED_F32 1
#else
#define HAS_FUSED_F32 0
#endif

/* Whether x, a sum rounded to double, may round to another f32 than the exact sum. */
static inline bool may_round_twice(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x1fffffff) == 0x10000000 || (fabs(x) < 0x1p-126 && x != 0);
}

typedef float lane_float __attribute__((may_alias));

enum { FUSED_NAN = 0x7fffffff };

#if defined(__wasm_simd128__)
/* Compilers do not vectorise conversions between f64x2 and f32x4. Two lanes: a * b + c in
 * double. */
static inline v128_t multiply_add_x2(const lane_float *a, const lane_float *b,
                                     const lane_float *c) {
#define DOUBLES(p) wasm_f64x2_promote_low_f32x4(wasm_v128_load64_zero(p))
    return wasm_f64x2_add(wasm_f64x2_mul(DOUBLES(a), DOUBLES(b)), DOUBLES(c));
#undef DOUBLES
}

/* Sums of which some are a NaN, zero or subnormal: makes NaNs FUSED_NAN. False: some lane may be
 * rounded twice. */
static inline bool lanes_mend_sums(const lane_float *a, const lane_float *b, const lane_float *c,
                                   uint32_t *out) {
    const v128_t nan = wasm_i32x4_const_splat(FUSED_NAN), zero = wasm_f64x2_const_splat(0);
    const v128_t min_normal = wasm_f64x2_const_splat(0x1p-126);
    v128_t tiny = zero;
    for (int l = 0; l < LANES; l += 2) {
        const v128_t sum = multiply_add_x2(a + l, b + l, c + l);
        const v128_t below = wasm_f64x2_lt(wasm_f64x2_abs(sum), min_normal);
        tiny = wasm_v128_or(tiny, wasm_v128_and(below, wasm_f64x2_ne(sum, zero)));
    }
    for (int l = 0; l < LANES; l += 4) {
        const v128_t sums = wasm_v128_load(out + l);
        wasm_v128_store(out + l, wasm_v128_bitselect(nan, sums, wasm_f32x4_ne(sums, sums)));
    }
    return !wasm_v128_any_true(tiny);
}

/* The bits of a * b + c; of a NaN FUSED_NAN. False: some lane may be rounded twice. */
static inline bool lanes_multiply_add(const lane_float *a, const lane_float *b, const lane_float *c,
                                      uint32_t *out) {
    const v128_t cut = wasm_i32x4_const_splat(0x1fffffff),
                 half = wasm_i32x4_const_splat(0x10000000);
    const v128_t min_normal = wasm_f32x4_const_splat(0x1p-126f);
    v128_t halfway = wasm_i32x4_const_splat(0), normal = wasm_i32x4_const_splat(-1);
    for (int l = 0; l < LANES; l += 4) {
        const v128_t low = multiply_add_x2(a + l, b + l, c + l);
        const v128_t high = multiply_add_x2(a + l + 2, b + l + 2, c + l + 2);
        const v128_t sums = wasm_i64x2_shuffle(wasm_f32x4_demote_f64x2_zero(low),
                                               wasm_f32x4_demote_f64x2_zero(high), 0, 2);
        const v128_t low_words = wasm_i32x4_shuffle(low, high, 0, 2, 4, 6);
        halfway = wasm_v128_or(halfway, wasm_i32x4_eq(wasm_v128_and(low_words, cut), half));
        normal = wasm_v128_and(normal, wasm_f32x4_gt(wasm_f32x4_abs(sums), min_normal));
        wasm_v128_store(out + l, sums);
    }
    if (wasm_v128_any_true(halfway)) return false;
    return wasm_i32x4_all_true(normal) || lanes_mend_sums(a, b, c, out);
}
#else
/* The bits of a * b + c; of a NaN FUSED_NAN. False: some lane may be rounded twice. */
static inline bool lanes_multiply_add(const lane_float *a, const lane_float *b, const lane_float *c,
                                      uint32_t *out) {
    bool again = false;
    for (int l = 0; l < LANES; l++) {
        const double sum = (double)a[l] * b[l] + c[l];
        const float rounded = (float)sum;
        again |= may_round_twice(sum);
        memcpy(&out[l], &rounded, sizeof rounded);
        if (rounded != rounded) out[l] = FUSED_NAN;
    }
    return !again;
}
#endif

#endif
