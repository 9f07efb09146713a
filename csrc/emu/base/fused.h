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

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

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

/* The bits of a * b + c; of a NaN FUSED_NAN. False: some lane may be rounded twice. */
static inline bool lanes_multiply_add(const lane_float *a, const lane_float *b, const lane_float *c,
                                      uint32_t *out) {
    bool again = false;
#if defined(__wasm_simd128__)
    /* Compilers do not vectorise conversions from f64x2 to f32x4. */
    const v128_t cut = wasm_i64x2_const_splat(0x1fffffff),
                 half = wasm_i64x2_const_splat(0x10000000);
    const v128_t min_normal = wasm_f32x4_const_splat(0x1p-126f);
    const v128_t nan = wasm_i32x4_const_splat(FUSED_NAN);
    v128_t halfway = wasm_i64x2_const_splat(0), tiny = halfway;
    for (int l = 0; l < LANES; l += 4) {
        const v128_t x = wasm_v128_load(a + l), y = wasm_v128_load(b + l),
                     z = wasm_v128_load(c + l);
#define UPPER(v) wasm_i64x2_shuffle(v, v, 1, 1)
#define SUM(x, y, z)                                                                               \
    wasm_f64x2_add(                                                                                \
        wasm_f64x2_mul(wasm_f64x2_promote_low_f32x4(x), wasm_f64x2_promote_low_f32x4(y)),          \
        wasm_f64x2_promote_low_f32x4(z))
        const v128_t low = SUM(x, y, z), high = SUM(UPPER(x), UPPER(y), UPPER(z));
        const v128_t sums = wasm_i64x2_shuffle(wasm_f32x4_demote_f64x2_zero(low),
                                               wasm_f32x4_demote_f64x2_zero(high), 0, 2);
        const v128_t low_half = wasm_i64x2_eq(wasm_v128_and(low, cut), half);
        const v128_t high_half = wasm_i64x2_eq(wasm_v128_and(high, cut), half);
#undef SUM
#undef UPPER
        halfway = wasm_v128_or(halfway, wasm_v128_or(low_half, high_half));
        tiny = wasm_v128_or(tiny, wasm_f32x4_le(wasm_f32x4_abs(sums), min_normal));
        wasm_v128_store(out + l, wasm_v128_bitselect(nan, sums, wasm_f32x4_ne(sums, sums)));
    }
    again = wasm_v128_any_true(halfway);
    for (int l = 0; wasm_v128_any_true(tiny) && l < LANES; l++) /* most are zeros */
        again |= may_round_twice((double)a[l] * b[l] + c[l]);
#else
    for (int l = 0; l < LANES; l++) {
        const double sum = (double)a[l] * b[l] + c[l];
        const float rounded = (float)sum;
        again |= may_round_twice(sum);
        memcpy(&out[l], &rounded, sizeof rounded);
        if (rounded != rounded) out[l] = FUSED_NAN;
    }
#endif
    return !again;
}

#endif
