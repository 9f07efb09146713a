/* Floating-point tiles: the sum that an H200's tensor cores compute.
 *
 * Products are exact. The products of one step of k and c are lined up at the largest exponent among them,
 * cut off `fraction` bits below it (towards zero, each on its own), and added exactly. A product's exponent
 * is the sum of its factors' (it may be one too small, the significand then lies in [2, 4)); zeros count as
 * 2^-126. The one sum is then rounded: to f32 towards zero, to f16 to the nearest, ties to even. A step is
 * 32 bytes of a row, the whole k of nearly every instruction; fraction is 25. Others, all seen on an H200:
 *
 *     wgmma of 8-bit floats     fraction 13, and an f32 result keeps 13 bits
 *     mma.sync of 8-bit floats  becomes f16 (subnormals are normalised), in two steps that start at zero:
 *                               k % 4 < 2, then the others; c is added to that as f32 or f16
 *     wmma of tf32              two steps of k 4
 *
 * No vendor documents this. The model is that of Xie et al. (MMA-Sim, arXiv:2511.10909); Khattak and
 * Mikaitis (arXiv:2512.07004) measured alike. Older chips keep fewer bits and take shorter steps. The tests
 * compare bit by bit with an H200's results.
 *
 * NaN and infinities do what IEEE arithmetic does; a NaN result is the canonical one; a sum beyond the
 * format is an infinity.
 */
#include "matrix.h"

/* Eight columns at a time. */
typedef float eight_f32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t eight_s32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double eight_f64 __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t eight_s64 __attribute__((vector_size(64), aligned(8), may_alias));

enum { COLUMNS = 8, LEAST_EXPONENT = -126, MAX_ADDED = 16 /* products whose sum fits 32 bits */ };

INLINE_PART eight_s32 larger_eight(eight_s32 a, eight_s32 b) {
#if defined(__AVX2__)
    return (eight_s32)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
    const eight_s32 first = a > b;
    return (a & first) | (b & ~first);
#endif
}

INLINE_PART bool any_of_eight(eight_s32 truth) {
#if defined(__AVX2__)
    return _mm256_movemask_ps((__m256)truth) != 0;
#else
    int32_t any = 0;
    for (int column = 0; column < COLUMNS; column++)
        any |= truth[column];
    return any != 0;
#endif
}

/* 2^(biased - 127) as a float, or 0 where that is below every float that could matter. */
INLINE_PART eight_f32 power_of_two(eight_s32 biased) {
    return (eight_f32)(larger_eight(biased, (eight_s32){0}) << 23);
}

INLINE_PART split_numbers split_from(split_numbers x, uint32_t at) {
    return (split_numbers){x.significand + at, x.exponent + at};
}

/* The sums of one row and eight columns. A double holds them: they have at most 34 bits. */
INLINE_PART eight_f64 sum_eight(split_numbers a, split_numbers b, uint32_t n, uint32_t k,
                                split_numbers c, int32_t fraction, bool *may_be_subnormal) {
    const eight_s32 of_c = *(const eight_s32 *)c.exponent;
    eight_s32 largest = larger_eight(of_c, (eight_s32){0} + LEAST_EXPONENT);
    for (uint32_t step = 0; step < k; step++)
        largest =
            larger_eight(largest, *(const eight_s32 *)(b.exponent + step * n) + a.exponent[step]);
    const eight_s32 to_unit = 127 + fraction - largest;
    const eight_s32 added = __builtin_convertvector(
        *(const eight_f32 *)c.significand * power_of_two(of_c + to_unit), eight_s32);
    *may_be_subnormal = any_of_eight(largest < LEAST_EXPONENT + fraction);
    eight_f64 sum = __builtin_convertvector(added, eight_f64);
    for (uint32_t first = 0; first < k; first += MAX_ADDED) {
        const uint32_t end = k < first + MAX_ADDED ? k : first + MAX_ADDED;
        eight_s32 products = {0};
        for (uint32_t step = first; step < end; step++) {
            const eight_s32 shift =
                *(const eight_s32 *)(b.exponent + step * n) + (to_unit + a.exponent[step]);
            const eight_f32 product =
                *(const eight_f32 *)(b.significand + step * n) * a.significand[step];
            products += __builtin_convertvector(product * power_of_two(shift), eight_s32);
        }
        sum += __builtin_convertvector(products, eight_f64);
    }
    const eight_s64 unit = __builtin_convertvector(1023 + 127 - to_unit, eight_s64) << 52;
    return sum * (eight_f64)unit;
}

/* Towards zero, with that many bits behind the leading one, as floats. Beyond f32: infinity. */
INLINE_PART eight_f32 truncated_eight(eight_f64 x, uint32_t bits, bool may_be_subnormal) {
    const eight_s64 kept = (eight_s64){0} - ((int64_t)1 << (52 - bits));
    eight_f32 result = __builtin_convertvector((eight_f64)((eight_s64)x & kept), eight_f32);
    for (int column = 0; column < COLUMNS && may_be_subnormal; column++)
        if (fabs(x[column]) < 0x1p-126) {
            const double unit = 0x1p-126 / (double)(1u << bits);            /* of subnormals */
            result[column] = (float)(trunc(x[column] / unit) * unit + 0.0); /* never -0 */
        }
    return result;
}

/* To the nearest f16, ties to even: first to odd as a float, which has bits enough for that. */
INLINE_PART eight_s32 rounded_f16(eight_f64 x) {
    const eight_f32 cut = truncated_eight(x, format_f32.mantissa, false);
    const eight_s64 inexact = __builtin_convertvector(cut, eight_f64) != x;
    const eight_s32 odd = (eight_s32)cut | (__builtin_convertvector(inexact, eight_s32) & 1);
    eight_s32 result;
#if defined(__F16C__)
    const __m128i halves = _mm256_cvtps_ph((__m256)odd, _MM_FROUND_TO_NEAREST_INT);
    result = (eight_s32)_mm256_cvtepu16_epi32(halves);
#else
    for (int column = 0; column < COLUMNS; column++)
        result[column] =
            (int32_t)rounded(f32_of_bits((uint32_t)odd[column]), format_f16, ROUND_NEAREST, false);
#endif
    return result;
}

/* n, the columns, and step are the form's. */
INLINE_PART void multiply_rows(const matrix_form *f, uint32_t n, uint32_t step, split_numbers a,
                               split_numbers b, split_numbers c, uint32_t *d) {
    for (uint32_t row = 0; row < f->m; row++)
        for (uint32_t column = 0; column < n; column += COLUMNS) {
            const uint32_t at = row * n + column;
            bool may_be_subnormal;
            const eight_f64 sum =
                sum_eight(split_from(a, row * f->k), split_from(b, column), n, step,
                          split_from(c, at), (int32_t)f->fraction, &may_be_subnormal);
            *(eight_s32 *)(d + at) =
                f->d == ELEMENT_F16
                    ? rounded_f16(sum)
                    : (eight_s32)truncated_eight(sum, f->result_bits, may_be_subnormal);
        }
}

/* d = c + a b over one step of k: f->step of them, from where a and b point. The sizes that matter are
 * constants. */
static void multiply_finite(const matrix_form *f, split_numbers a, split_numbers b, split_numbers c,
                            uint32_t *d) {
    if (f->n == 8 && f->step == 16)
        multiply_rows(f, 8, 16, a, b, c, d);
    else if (f->n == 8 && f->step == 8)
        multiply_rows(f, 8, 8, a, b, c, d);
    else if (f->n == MAX_N && f->step == 16)
        multiply_rows(f, MAX_N, 16, a, b, c, d);
    else
        multiply_rows(f, f->n, f->step, a, b, c, d);
}

/* ---- NaN and infinity ---- */

static bool has_special(split_numbers x, uint32_t count) {
    uint32_t special = 0;
    for (uint32_t k = 0; k < count; k++)
        special |= (bits_of_f32(x.significand[k]) & 0x7f800000) == 0x7f800000;
    return special;
}

static void copy_finite(split_numbers x, uint32_t count, split_numbers out) {
    for (uint32_t k = 0; k < count; k++) {
        const bool finite = fabsf(x.significand[k]) < 2;
        out.significand[k] = finite ? x.significand[k] : 0;
        out.exponent[k] = finite ? x.exponent[k] : ZERO_EXPONENT;
    }
}

/* What NaNs and infinities make of an element: a NaN, an infinity, or something finite where there are
 * none. Significands do for that: no sum of them overflows. */
static float special_sum(const matrix_form *f, split_numbers a, split_numbers b, split_numbers c,
                         uint32_t row, uint32_t column) {
    float sum = c.significand[row * f->n + column];
    for (uint32_t k = 0; k < f->step; k++)
        sum += a.significand[row * f->k + k] * b.significand[k * f->n + column];
    return sum;
}

static uint32_t special_bits(const matrix_form *f, float x) {
    const float_format format = f->d == ELEMENT_F16 ? format_f16 : format_f32;
    return x != x ? format.nan : format.infinity | (x < 0 ? format.sign : 0);
}

/* The sums that are not finite; an element of `sums` that is finite says nothing. */
static void find_special(const matrix_form *f, split_numbers a, split_numbers b, split_numbers c,
                         float *sums) {
    for (uint32_t at = 0; at < f->m * f->n; at++)
        sums[at] = special_sum(f, a, b, c, at / f->n, at % f->n);
}

static void put_special(const matrix_form *f, const float *sums, uint32_t *d) {
    for (uint32_t at = 0; at < f->m * f->n; at++)
        if (!(fabsf(sums[at]) <= FLT_MAX)) d[at] = special_bits(f, sums[at]);
}

/* ---- all of k ---- */

/* The products' sum plus c, rounded to nearest. */
static uint32_t add_last(const matrix_form *f, uint32_t products, float c) {
    if (f->d == ELEMENT_F16)
        return rounded((double)value_f16((uint16_t)products) + c, format_f16, ROUND_NEAREST, false);
    return canonical_f32(f32_of_bits(products) + c);
}

/* As an f16 has them: nothing is lost, and no 8-bit float is a subnormal f16 unless it is an e5m2. */
static void normalise(split_numbers x, uint32_t count) {
    for (uint32_t k = 0; k < count; k++)
        while (x.significand[k] != 0 && fabsf(x.significand[k]) < 1 && x.exponent[k] > -14) {
            x.significand[k] *= 2;
            x.exponent[k]--;
        }
}

/* A step with NaNs or infinities somewhere: without them, and then they where they reach. */
static void multiply_special(const matrix_form *f, split_numbers a, split_numbers b,
                             split_numbers c, uint32_t *d) {
    float sums[MAX_C], a_copy[MAX_A], b_copy[MAX_B], c_copy[MAX_C];
    int32_t a_exponent[MAX_A], b_exponent[MAX_B], c_exponent[MAX_C];
    const uint32_t in_a = (f->m - 1) * f->k + f->step, in_b = f->step * f->n, in_c = f->m * f->n;
    const split_numbers finite_a = {a_copy, a_exponent}, finite_b = {b_copy, b_exponent},
                        finite_c = {c_copy, c_exponent};
    find_special(f, a, b, c, sums);
    copy_finite(a, in_a, finite_a), copy_finite(b, in_b, finite_b), copy_finite(c, in_c, finite_c);
    multiply_finite(f, finite_a, finite_b, finite_c, d);
    put_special(f, sums, d);
}

static void multiply_float(const matrix_form *f, matrix_tile *t) {
    const split_numbers a = {t->a.significand, t->a_exponent},
                        b = {t->b.significand, t->b_exponent},
                        c = {t->c.significand, t->c_exponent};
    const uint32_t in_a = f->m * f->k, in_b = f->k * f->n, in_c = f->m * f->n;
    float last[MAX_C];
    if (f->adds_last) {
        normalise(a, in_a), normalise(b, in_b);
        for (uint32_t at = 0; at < in_c; at++) {
            last[at] = c.significand[at] == 0 ? c.significand[at]
                                              : ldexpf(c.significand[at], c.exponent[at]);
            c.significand[at] = 0;
            c.exponent[at] = ZERO_EXPONENT;
        }
    }
    for (uint32_t first = 0; first < f->k; first += f->step) {
        const split_numbers rows = split_from(a, first), columns = split_from(b, first * f->n);
        if (first) split_elements(f->d, t->d.bits, in_c, c.significand, c.exponent);
        const bool special = has_special(rows, in_a - first) ||
                             has_special(columns, in_b - first * f->n) || has_special(c, in_c);
        (special ? multiply_special : multiply_finite)(f, rows, columns, c, t->d.bits);
    }
    for (uint32_t at = 0; at < in_c && f->adds_last; at++)
        t->d.bits[at] = add_last(f, t->d.bits[at], last[at]);
}
