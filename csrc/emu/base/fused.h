/* Fused multiply-add of a warp's lanes, on hosts that have no such instruction.
 *
 * f32: in double the product is exact. The sum is rounded to double and then to f32: twice. That is
 * the same as once unless the double is half-way between two f32, or the result is subnormal. Few
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
typedef double lane_double __attribute__((may_alias));

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

/* ---- f64 ---- */

#define LANES_FUSE_F64 1

typedef double double_x2 __attribute__((vector_size(16), aligned(8), may_alias));
typedef int64_t int_x2 __attribute__((vector_size(16), aligned(8), may_alias));

static inline double_x2 select_x2(int_x2 where, double_x2 x, double_x2 y) {
    return (double_x2)(((int_x2)x & where) | ((int_x2)y & ~where));
}

static inline int_x2 is_between(double_x2 x, double low, double high) {
    const double_x2 size = wasm_f64x2_abs(x);
    return (size >= low) & (size <= high);
}

/* x + y = sum + *error, exactly (Knuth). */
static inline double_x2 exact_sum(double_x2 x, double_x2 y, double_x2 *error) {
    const double_x2 sum = x + y, of_y = sum - x;
    *error = (x - (sum - of_y)) + (y - of_y);
    return sum;
}

/* x * y = product + *error, exactly (Dekker), unless the error underflows. */
static inline double_x2 exact_product(double_x2 x, double_x2 y, double_x2 *error) {
    const double_x2 product = x * y, x_part = x * 0x8000001p0, y_part = y * 0x8000001p0;
    const double_x2 x_high = x_part - (x_part - x), x_low = x - x_high;
    const double_x2 y_high = y_part - (y_part - y), y_low = y - y_high;
    *error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
    return product;
}

/* If the sum is inexact and even, the next double towards the error. */
static inline double_x2 sum_to_odd_x2(double_x2 x, double_x2 y) {
    double_x2 error;
    const double_x2 sum = exact_sum(x, y, &error);
    const int_x2 moves = (error != 0) & (((int_x2)sum & 1) == 0);
    const int_x2 step = ((error > 0) ^ (sum > 0)) | 1;
    return (double_x2)((int_x2)sum + (moves & step));
}

/* x * y + z where *fits stays set; elsewhere the numbers are so large or small that a step may
 * overflow or underflow. Source: S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded
 * sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57 (2008). */
static inline double_x2 multiply_add_f64_x2(double_x2 x, double_x2 y, double_x2 z, int_x2 *fits) {
    double_x2 low, sum_low, rest;
    const double_x2 product = exact_product(x, y, &low);
    const double_x2 sum = exact_sum(z, low, &sum_low);
    const double_x2 high = exact_sum(product, sum, &rest);
    const double_x2 exact = high + sum_to_odd_x2(sum_low, rest);
    const int_x2 zero = (x == 0) | (y == 0); /* the result has the sign of the sum of two zeros */
    *fits &= zero | (is_between(x, 0x1p-440, 0x1p440) & is_between(y, 0x1p-440, 0x1p440));
    *fits &= is_between(x, 0, 0x1p440) & is_between(y, 0, 0x1p440) & is_between(z, 0, 0x1p900);
    return select_x2(zero, product + z, exact);
}

/* The bits of a * b + c. False: some lane's numbers do not fit. */
static inline bool lanes_multiply_add_f64(const lane_double *a, const lane_double *b,
                                          const lane_double *c, uint64_t *out) {
    int_x2 fits = {-1, -1};
    for (int l = 0; l < LANES; l += 2) {
        const double_x2 x = *(const double_x2 *)(a + l), y = *(const double_x2 *)(b + l);
        const double_x2 z = *(const double_x2 *)(c + l);
        *(double_x2 *)(out + l) = multiply_add_f64_x2(x, y, z, &fits);
    }
    return wasm_i64x2_all_true(fits);
}

/* The C library's fma loses the sign of a product that rounds to -0 if c is 0. */
static inline double fused_f64(double a, double b, double c) {
    int_x2 fits = {-1, -1};
    const double_x2 sum =
        multiply_add_f64_x2((double_x2){a, a}, (double_x2){b, b}, (double_x2){c, c}, &fits);
    if (fits[0]) return sum[0];
    return c == 0 && a != 0 && b != 0 ? a * b : fma(a, b, c);
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

static inline double fused_f64(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}
#endif

#endif
