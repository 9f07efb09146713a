/* Floating-point tiles: the sum that an H200's tensor cores compute.
 *
 * Products are exact. The products of one step of k (32 bytes of a row) and c are lined up at the largest
 * exponent among them, cut off `fraction` bits below it (towards zero, each on its own), and added
 * exactly. A product's exponent is the sum of its factors' (it may be one too small, the significand then
 * lies in [2, 4)); zeros count as 2^-126. The one sum is then rounded: to f32 towards zero, to f16 to the
 * nearest, ties to even. fraction is 25; in wgmma of 8-bit floats it is 13, and the f32 result keeps 13
 * bits. No vendor documents this. It is what Xie et al. (MMA-Sim, arXiv:2511.10909) and Khattak and
 * Mikaitis (arXiv:2512.07004) measured on Hopper; older chips keep fewer bits and take shorter steps. The
 * GPU tests compare bit by bit.
 *
 * NaN and infinities do what IEEE arithmetic does; a NaN result is the canonical one; a sum beyond the
 * format is an infinity.
 */
#include "matrix.h"

/* Eight columns at a time. */
typedef float eight_f32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t eight_s32 __attribute__((vector_size(32), aligned(4), may_alias));

enum { COLUMNS = 8, LEAST_EXPONENT = -126, MAX_ADDED = 16 /* products whose sum fits 32 bits */ };

INLINE_PART eight_s32 larger_eight(eight_s32 a, eight_s32 b) {
#if defined(__AVX2__)
    return (eight_s32)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
    const eight_s32 first = a > b;
    return (a & first) | (b & ~first);
#endif
}

/* 2^shift as a float, or 0 where that is below every float that could matter. */
INLINE_PART eight_f32 power_of_two(eight_s32 shift) {
    const eight_s32 biased = shift + 127;
    return (eight_f32)((biased & (biased > 0)) << 23);
}

/* The sums of one row and eight columns: in units of 2^(exponent - fraction). */
INLINE_PART void sum_eight(const split_numbers *a, const split_numbers *b, uint32_t n, uint32_t k,
                           const float *c, const int32_t *c_exponent, int32_t fraction,
                           int64_t *sum, int32_t *exponent) {
    const eight_s32 of_c = *(const eight_s32 *)c_exponent;
    eight_s32 largest = larger_eight(of_c, (eight_s32){0} + LEAST_EXPONENT);
    for (uint32_t step = 0; step < k; step++)
        largest = larger_eight(largest,
                               *(const eight_s32 *)(b->exponent + step * n) + a->exponent[step]);
    const eight_s32 to_unit = fraction - largest;
    const eight_s32 added = __builtin_convertvector(
        *(const eight_f32 *)c * power_of_two(of_c + to_unit), eight_s32);
    for (int column = 0; column < COLUMNS; column++) {
        sum[column] = added[column];
        exponent[column] = largest[column];
    }
    for (uint32_t first = 0; first < k; first += MAX_ADDED) {
        const uint32_t end = k < first + MAX_ADDED ? k : first + MAX_ADDED;
        eight_s32 products = {0};
        for (uint32_t step = first; step < end; step++) {
            const eight_s32 shift =
                *(const eight_s32 *)(b->exponent + step * n) + (to_unit + a->exponent[step]);
            const eight_f32 product =
                *(const eight_f32 *)(b->significand + step * n) * a->significand[step];
            products += __builtin_convertvector(product * power_of_two(shift), eight_s32);
        }
        for (int column = 0; column < COLUMNS; column++)
            sum[column] += products[column];
    }
}

/* sum x 2^scale towards zero, with that many bits behind the leading one. Beyond f32: infinity. */
INLINE_PART uint32_t truncated_f32(int64_t sum, int32_t scale, uint32_t bits) {
    const uint64_t power = (uint64_t)(scale + 1023) << 52;
    const double x = (double)sum * f64_of_bits(power); /* exact: the sum has at most 34 bits */
    const double cut = f64_of_bits(bits_of_f64(x) & ~(((uint64_t)1 << (52 - bits)) - 1));
    if (__builtin_expect(fabs(x) < 0x1p-126, 0)) {
        const double unit = ldexp(1, -126 - (int)bits);
        return bits_of_f32((float)(trunc(x / unit) * unit));
    }
    return bits_of_f32((float)cut);
}

INLINE_PART uint32_t rounded_sum(const matrix_form *f, int64_t sum, int32_t exponent) {
    const int32_t scale = exponent - (int32_t)f->fraction;
    if (f->d == ELEMENT_F16)
        return rounded((double)sum * f64_of_bits((uint64_t)(scale + 1023) << 52), format_f16,
                       ROUND_NEAREST, false);
    return truncated_f32(sum, scale, f->result_bits);
}

static void multiply_finite(const matrix_form *f, const split_numbers *a, const split_numbers *b,
                            const split_numbers *c, uint32_t *d) {
    for (uint32_t row = 0; row < f->m; row++) {
        const split_numbers factors = {a->significand + row * f->k, a->exponent + row * f->k};
        for (uint32_t column = 0; column < f->n; column += COLUMNS) {
            const uint32_t at = row * f->n + column;
            const split_numbers columns = {b->significand + column, b->exponent + column};
            int64_t sum[COLUMNS];
            int32_t exponent[COLUMNS];
            sum_eight(&factors, &columns, f->n, f->k, c->significand + at, c->exponent + at,
                      (int32_t)f->fraction, sum, exponent);
            for (uint32_t k = 0; k < COLUMNS; k++)
                d[at + k] = rounded_sum(f, sum[k], exponent[k]);
        }
    }
}

/* ---- NaN and infinity ---- */

static void clear_special(split_numbers *x, uint32_t count) {
    for (uint32_t k = 0; k < count; k++)
        if (!(fabsf(x->significand[k]) < 2)) {
            x->significand[k] = 0;
            x->exponent[k] = ZERO_EXPONENT;
        }
}

static bool has_special(const split_numbers *x, uint32_t count) {
    uint32_t special = 0;
    for (uint32_t k = 0; k < count; k++)
        special |= (bits_of_f32(x->significand[k]) & 0x7f800000) == 0x7f800000;
    return special;
}

/* What NaNs and infinities make of an element: a NaN, an infinity, or something finite where there are
 * none. Significands do for that: no sum of them overflows. */
static float special_sum(const matrix_form *f, const split_numbers *a, const split_numbers *b,
                         const split_numbers *c, uint32_t row, uint32_t column) {
    float sum = c->significand[row * f->n + column];
    for (uint32_t k = 0; k < f->k; k++)
        sum += a->significand[row * f->k + k] * b->significand[k * f->n + column];
    return sum;
}

static uint32_t special_bits(const matrix_form *f, float x) {
    const bool half = f->d == ELEMENT_F16;
    if (x != x) return half ? NAN_HALF : NAN_F32;
    return (half ? format_f16.infinity : format_f32.infinity) |
           (x < 0 ? half ? format_f16.sign : format_f32.sign : 0);
}

static void multiply_float(const matrix_form *f, split_numbers *a, split_numbers *b,
                           split_numbers *c, uint32_t *d) {
    const uint32_t in_a = f->m * f->k, in_b = f->k * f->n, in_c = f->m * f->n;
    if (!has_special(a, in_a) && !has_special(b, in_b) && !has_special(c, in_c)) {
        multiply_finite(f, a, b, c, d);
        return;
    }
    float sums[MAX_C];
    for (uint32_t at = 0; at < in_c; at++)
        sums[at] = special_sum(f, a, b, c, at / f->n, at % f->n);
    clear_special(a, in_a), clear_special(b, in_b), clear_special(c, in_c);
    multiply_finite(f, a, b, c, d);
    for (uint32_t at = 0; at < in_c; at++)
        if (!(fabsf(sums[at]) <= FLT_MAX)) d[at] = special_bits(f, sums[at]);
}
