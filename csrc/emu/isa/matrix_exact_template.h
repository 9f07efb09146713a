/* Products whose result is fully specified: integers, bits, and f64.
 *
 * An f64 element is a chain of fused multiply-adds over ascending k, starting from c, each rounded
 * as .rn, .rz, .rm or .rp says; GPU tests find the same on an H200. Integers wrap at 32 bits, or
 * saturate to s32 with .satfinite. Bits: the number of ones in the xor or and of a row of A and a
 * column of B.
 */
#include "alu_directed.h"
#include "matrix.h"

/* n equals f->n; it is a constant where the caller knows it. */
ALWAYS_INLINE void multiply_integer_rows(const matrix_form *f, uint32_t n, const int32_t *a,
                                         const int32_t *b, const int32_t *c, uint32_t *d) {
    for (uint32_t row = 0; row < f->m; row++) {
        /* |sum| <= 64 x 255 x 255, which also fits s32. */
        uint32_t sum[MAX_N] = {0};
        for (uint32_t k = 0; k < f->k; k++) {
            const uint32_t factor = (uint32_t)a[row * f->k + k];
            for (uint32_t column = 0; column < n; column++)
                sum[column] += factor * (uint32_t)b[k * n + column];
        }
        for (uint32_t column = 0; column < n; column++) {
            const uint32_t at = row * n + column;
            const int64_t exact = (int64_t)c[at] + (int32_t)sum[column];
            const int64_t low = exact < INT32_MIN ? INT32_MIN : exact;
            const int64_t nearest = low > INT32_MAX ? INT32_MAX : low;
            d[at] = (uint32_t)(f->saturate ? nearest : exact);
        }
    }
}

static void multiply_integers(const matrix_form *f, const int32_t *a, const int32_t *b,
                              const int32_t *c, uint32_t *d) {
    if (f->n == 8)
        multiply_integer_rows(f, 8, a, b, c, d);
    else
        multiply_integer_rows(f, f->n, a, b, c, d);
}

static void multiply_bits(const matrix_form *f, const int32_t *a, const int32_t *b,
                          const int32_t *c, uint32_t *d) {
    for (uint32_t at = 0; at < f->m * f->n; at++) {
        uint32_t sum = (uint32_t)c[at];
        for (uint32_t k = 0; k < f->k; k++) {
            const uint32_t x = (uint32_t)a[at / f->n * f->k + k],
                           y = (uint32_t)b[k * f->n + at % f->n];
            sum += (uint32_t)__builtin_popcount(f->bits == BITS_AND ? x & y : x ^ y);
        }
        d[at] = sum;
    }
}

/* A source NaN is returned, made quiet: b's first, then c's, then a's. */
static double nan_of(double a, double b, double c) {
    const double from = b != b ? b : c != c ? c : a;
    return f64_of_bits(from == from ? 0xfff8000000000000 : bits_of_f64(from) | 0x8000000000000);
}

static void multiply_f64(const matrix_form *f, const double *a, const double *b, const double *c,
                         double *d) {
    for (uint32_t at = 0; at < f->m * f->n; at++) {
        double sum = c[at];
        for (uint32_t k = 0; k < f->k; k++) {
            const double x = a[at / f->n * f->k + k], y = b[k * f->n + at % f->n];
            const double next = f->rounding == ROUND_NEAREST ? fused_f64(x, y, sum)
                                                             : directed_fma(x, y, sum, f->rounding);
            sum = next == next ? next : nan_of(x, y, sum);
        }
        d[at] = sum;
    }
}
