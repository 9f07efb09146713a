/* Floating-point products, summed as an H200's tensor cores sum them.
 *
 * Products are exact. One step adds its products and c:
 *
 *   1. Align them at the largest exponent among them.
 *   2. Truncate each one towards zero, fraction_bits below that exponent.
 *   3. Add them exactly.
 *   4. Round the sum once: to f32 towards zero, to f16 to nearest, ties to even.
 *
 * A product's exponent is the sum of its factors' exponents. It may be one too small; the
 * significand then lies in [2, 4). Zeros count as 2^-126. A step is 32 bytes of a row, which is the
 * whole k of nearly every instruction, and fraction_bits is 25. The exceptions, all measured on an
 * H200:
 *
 *   wgmma of 8-bit floats     fraction_bits is 13, and an f32 result keeps 13 mantissa bits
 *   mma.sync of 8-bit floats  converts to f16 (subnormals are normalised); two steps that start at
 *                             zero: k % 4 < 2, then the others; then adds c, as f32 or f16
 *   wmma of tf32              two steps of k 4
 *
 * A sparse product is the dense one of the columns that are stored: k counts these, in every rule
 * above.
 *
 * No vendor documents this. The model is from Xie et al. (MMA-Sim, arXiv:2511.10909); Khattak and
 * Mikaitis (arXiv:2512.07004) measured the same. Older GPUs keep fewer bits and take shorter steps.
 * The tests compare bit by bit with an H200's results.
 *
 * NaN and infinity follow IEEE arithmetic. A NaN result is the canonical NaN; overflow gives
 * infinity.
 */
#include "matrix.h"

/* Vectors of eight columns. */
typedef float eight_f32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t eight_s32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double eight_f64 __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t eight_s64 __attribute__((vector_size(64), aligned(8), may_alias));

/* MAX_ADDED: products whose sum fits 32 bits. */
enum { COLUMNS = 8, MIN_EXPONENT = -126, MAX_ADDED = 16 };

ALWAYS_INLINE eight_s32 max_eight(eight_s32 a, eight_s32 b) {
#if defined(__AVX2__)
    return (eight_s32)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
    const eight_s32 first = a > b;
    return (a & first) | (b & ~first);
#endif
}

ALWAYS_INLINE bool any_of_eight(eight_s32 truth) {
#if defined(__AVX2__)
    return _mm256_movemask_ps((__m256)truth) != 0;
#else
    int32_t any = 0;
    for (int column = 0; column < COLUMNS; column++)
        any |= truth[column];
    return any != 0;
#endif
}

/* 2^(biased - 127) as a float; 0 if it is below every float that could matter. */
ALWAYS_INLINE eight_f32 power_of_two(eight_s32 biased) {
    return (eight_f32)(max_eight(biased, (eight_s32){0}) << 23);
}

ALWAYS_INLINE split_floats split_from(split_floats x, uint32_t at) {
    return (split_floats){x.significand + at, x.exponent + at};
}

/* The sums of one row and eight columns. They have at most 34 bits, so double is exact. */
ALWAYS_INLINE eight_f64 sum_eight(split_floats a, split_floats b, uint32_t n, uint32_t k,
                                  split_floats c, int32_t fraction, bool *may_be_subnormal) {
    const eight_s32 c_exponent = *(const eight_s32 *)c.exponent;
    eight_s32 largest = max_eight(c_exponent, (eight_s32){0} + MIN_EXPONENT);
    for (uint32_t step = 0; step < k; step++)
        largest =
            max_eight(largest, *(const eight_s32 *)(b.exponent + step * n) + a.exponent[step]);
    const eight_s32 to_unit = 127 + fraction - largest;
    const eight_s32 added = __builtin_convertvector(
        *(const eight_f32 *)c.significand * power_of_two(c_exponent + to_unit), eight_s32);
    *may_be_subnormal = any_of_eight(largest < MIN_EXPONENT + fraction);
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

/* x truncated towards zero to `bits` bits after the leading one, as f32; infinity beyond f32's
 * range. */
ALWAYS_INLINE eight_f32 truncate_eight(eight_f64 x, uint32_t bits, bool may_be_subnormal) {
    const eight_s64 kept = (eight_s64){0} - ((int64_t)1 << (52 - bits));
    eight_f32 result = __builtin_convertvector((eight_f64)((eight_s64)x & kept), eight_f32);
    for (int column = 0; column < COLUMNS && may_be_subnormal; column++)
        if (fabs(x[column]) < 0x1p-126) {
            const double unit = 0x1p-126 / (double)(1u << bits); /* spacing of subnormals */
            result[column] = (float)(trunc(x[column] / unit) * unit + 0.0); /* + 0.0: never -0 */
        }
    return result;
}

/* x rounded to the nearest f16, ties to even; never -0, as on an H200. It is first rounded to odd
 * in f32, which has enough bits for that. */
ALWAYS_INLINE eight_s32 round_f16(eight_f64 x) {
    const eight_f32 cut = truncate_eight(x, format_f32.mantissa, false);
    const eight_s64 inexact = __builtin_convertvector(cut, eight_f64) != x;
    const eight_s32 odd = (eight_s32)cut | (__builtin_convertvector(inexact, eight_s32) & 1);
    eight_s32 result;
#if defined(__F16C__)
    const __m128i halves = _mm256_cvtps_ph((__m256)odd, _MM_FROUND_TO_NEAREST_INT);
    result = (eight_s32)_mm256_cvtepu16_epi32(halves);
#else
    for (int column = 0; column < COLUMNS; column++)
        result[column] = (int32_t)round_to_format(f32_of_bits((uint32_t)odd[column]), format_f16,
                                                  ROUND_NEAREST, false);
#endif
    return result & ~(result == 0x8000);
}

/* n equals f->n and step equals f->k_step; they are constants in hot cases. */
ALWAYS_INLINE void multiply_rows(const matrix_form *f, uint32_t n, uint32_t step, split_floats a,
                                 split_floats b, split_floats c, uint32_t *d) {
    for (uint32_t row = 0; row < f->m; row++)
        for (uint32_t column = 0; column < n; column += COLUMNS) {
            const uint32_t at = row * n + column;
            bool may_be_subnormal;
            const eight_f64 sum =
                sum_eight(split_from(a, row * f->k), split_from(b, column), n, step,
                          split_from(c, at), (int32_t)f->fraction_bits, &may_be_subnormal);
            *(eight_s32 *)(d + at) =
                f->d == ELEMENT_F16
                    ? round_f16(sum)
                    : (eight_s32)truncate_eight(sum, f->result_bits, may_be_subnormal);
        }
}

/* d = c + a b over one step: f->k_step elements of k, from a and b on. Frequent sizes are
 * constants. */
static void multiply_finite(const matrix_form *f, split_floats a, split_floats b, split_floats c,
                            uint32_t *d) {
    if (f->n == 8 && f->k_step == 16)
        multiply_rows(f, 8, 16, a, b, c, d);
    else if (f->n == 8 && f->k_step == 8)
        multiply_rows(f, 8, 8, a, b, c, d);
    else if (f->n == MAX_N && f->k_step == 16)
        multiply_rows(f, MAX_N, 16, a, b, c, d);
    else
        multiply_rows(f, f->n, f->k_step, a, b, c, d);
}

/* ---- NaN and infinity ---- */

static bool has_special(split_floats x, uint32_t count) {
    uint32_t special = 0;
    for (uint32_t k = 0; k < count; k++)
        special |= (bits_of_f32(x.significand[k]) & 0x7f800000) == 0x7f800000;
    return special;
}

static void copy_finite(split_floats x, uint32_t count, split_floats out) {
    for (uint32_t k = 0; k < count; k++) {
        const bool finite = fabsf(x.significand[k]) < 2;
        out.significand[k] = finite ? x.significand[k] : 0;
        out.exponent[k] = finite ? x.exponent[k] : ZERO_EXPONENT;
    }
}

/* What NaNs and infinities make of an element: NaN, infinity, or a meaningless finite value if
 * there are none. Significands are enough to tell: their sums do not overflow. */
static float special_sum(const matrix_form *f, split_floats a, split_floats b, split_floats c,
                         uint32_t row, uint32_t column) {
    float sum = c.significand[row * f->n + column];
    for (uint32_t k = 0; k < f->k_step; k++)
        sum += a.significand[row * f->k + k] * b.significand[k * f->n + column];
    return sum;
}

static uint32_t special_bits(const matrix_form *f, float x) {
    const float_format format = f->d == ELEMENT_F16 ? format_f16 : format_f32;
    return x != x ? format.nan : format.infinity | (x < 0 ? format.sign : 0);
}

/* special_sum of every element. Only those that are not finite mean anything. */
static void find_special(const matrix_form *f, split_floats a, split_floats b, split_floats c,
                         float *sums) {
    for (uint32_t at = 0; at < f->m * f->n; at++)
        sums[at] = special_sum(f, a, b, c, at / f->n, at % f->n);
}

static void store_special(const matrix_form *f, const float *sums, uint32_t *d) {
    for (uint32_t at = 0; at < f->m * f->n; at++)
        if (!(fabsf(sums[at]) <= FLT_MAX)) d[at] = special_bits(f, sums[at]);
}

/* ---- all steps of k ---- */

/* c plus the sum of products, rounded to nearest. */
static uint32_t add_last(const matrix_form *f, uint32_t products, float c) {
    if (f->d == ELEMENT_F16)
        return round_to_format((double)value_f16((uint16_t)products) + c, format_f16, ROUND_NEAREST,
                               false);
    return canonical_f32(f32_of_bits(products) + c);
}

/* Normalises subnormals, as the conversion to f16 does. It is exact; only an e5m2 can remain a
 * subnormal f16. */
static void normalise(split_floats x, uint32_t count) {
    for (uint32_t k = 0; k < count; k++)
        while (x.significand[k] != 0 && fabsf(x.significand[k]) < 1 && x.exponent[k] > -14) {
            x.significand[k] *= 2;
            x.exponent[k]--;
        }
}

/* A step with NaNs or infinities among its operands: multiplies with zeros in their place, then
 * stores the elements that they make NaN or infinite. */
static void multiply_special(const matrix_form *f, split_floats a, split_floats b, split_floats c,
                             uint32_t *d) {
    float sums[MAX_C], a_copy[MAX_A], b_copy[MAX_B], c_copy[MAX_C];
    int32_t a_exponent[MAX_A], b_exponent[MAX_B], c_exponent[MAX_C];
    const uint32_t in_a = (f->m - 1) * f->k + f->k_step, in_b = f->k_step * f->n,
                   in_c = f->m * f->n;
    const split_floats finite_a = {a_copy, a_exponent}, finite_b = {b_copy, b_exponent},
                       finite_c = {c_copy, c_exponent};
    find_special(f, a, b, c, sums);
    copy_finite(a, in_a, finite_a), copy_finite(b, in_b, finite_b), copy_finite(c, in_c, finite_c);
    multiply_finite(f, finite_a, finite_b, finite_c, d);
    store_special(f, sums, d);
}

static void multiply_float(const matrix_form *f, matrix_tile *t) {
    const split_floats a = {t->a.significand, t->a_exponent}, b = {t->b.significand, t->b_exponent},
                       c = {t->c.significand, t->c_exponent};
    const uint32_t in_a = f->m * f->k, in_b = f->k * f->n, in_c = f->m * f->n;
    float last[MAX_C];
    if (f->adds_c_last) {
        normalise(a, in_a), normalise(b, in_b);
        for (uint32_t at = 0; at < in_c; at++) {
            last[at] = c.significand[at] == 0 ? c.significand[at]
                                              : ldexpf(c.significand[at], c.exponent[at]);
            c.significand[at] = 0;
            c.exponent[at] = ZERO_EXPONENT;
        }
    }
    for (uint32_t first = 0; first < f->k; first += f->k_step) {
        const split_floats rows = split_from(a, first), columns = split_from(b, first * f->n);
        if (first) split_elements(f->d, t->d.bits, in_c, c.significand, c.exponent);
        const bool special = has_special(rows, in_a - first) ||
                             has_special(columns, in_b - first * f->n) || has_special(c, in_c);
        (special ? multiply_special : multiply_finite)(f, rows, columns, c, t->d.bits);
    }
    for (uint32_t at = 0; at < in_c && f->adds_c_last; at++)
        t->d.bits[at] = add_last(f, t->d.bits[at], last[at]);
}
