/* exp2, log2, sin, cos and tanh of an f32 (or narrower) value, in f64.
 *
 * The C libraries of two hosts differ in the last bits of such functions, and then, rarely, in an
 * f32 result. These have the same bits on every host: sums, products and quotients that IEEE 754
 * defines, and integers. Relative errors are below 2^-50, so the f32 that they round to is the
 * nearest one, or in 1 of some 10^8 cases its neighbour. Polynomials are Taylor series.
 */
#ifndef EMU_ALU_FUNCTIONS_H
#define EMU_ALU_FUNCTIONS_H

#include "alu_float.h"

/* c[0] + c[1] x + ... */
static inline __attribute__((always_inline)) double polynomial(double x, const double *c, int n) {
    double sum = c[n - 1];
    for (int k = n - 2; k >= 0; k--)
        sum = sum * x + c[k];
    return sum;
}

/* 2^n of a normal number. */
static inline double scale_of(int64_t n) {
    return f64_of_bits((uint64_t)(n + 1023) << 52);
}

/* (e^x - 1) / x for |x| <= 0.35: 1 / (k + 1)! */
static const double exponential_terms[] = {
    1.0,
    1.0 / 2,
    1.0 / 6,
    1.0 / 24,
    1.0 / 120,
    1.0 / 720,
    1.0 / 5040,
    1.0 / 40320,
    1.0 / 362880,
    1.0 / 3628800,
    1.0 / 39916800,
    1.0 / 479001600,
    1.0 / 6227020800,
};
#define LN2          0x1.62e42fefa39efp-1
#define TERMS(table) (int)(sizeof(table) / sizeof *(table))

static inline double function_exp2(double x) {
    if (x != x) return x;
    const double near = x > 1000 ? 1000 : x < -1000 ? -1000 : x;
    const double whole = rint(near), rest = (near - whole) * LN2;
    const double part = 1 + rest * polynomial(rest, exponential_terms, TERMS(exponential_terms));
    return part * scale_of((int64_t)whole);
}

/* x is NaN, an infinity, or has f32's range. */
static inline double function_log2(double x) {
    static const double terms[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                   1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
    const double two_over_ln2 = 0x1.71547652b82fep+1;
    if (!(x > 0)) return x == 0 ? -INFINITY : x == x ? (double)NAN : x;
    if (x == INFINITY) return x;
    /* x = m * 2^n with m from sqrt(1/2) to sqrt(2) */
    const uint64_t bits = bits_of_f64(x), offset = 0x3fe6a09e667f3bcd;
    const int64_t n = (int64_t)(bits - offset) >> 52;
    const double m = f64_of_bits(bits - ((uint64_t)n << 52));
    /* ln m = 2 artanh((m - 1) / (m + 1)) */
    const double ratio = (m - 1) / (m + 1), square = ratio * ratio;
    return (double)n + two_over_ln2 * (ratio * polynomial(square, terms, TERMS(terms)));
}

static inline double function_tanh(double x) {
    const double ln2_low = 0x1.abc9e3b39803fp-56;
    if (x != x) return x;
    const double magnitude = fabs(x), near = magnitude > 30 ? 30 : magnitude;
    /* e^(2|x|) - 1 = 2^n (e^r - 1) + 2^n - 1; for small x this is the series alone */
    const double whole = rint(2 * near / LN2);
    const double rest = (2 * near - whole * LN2) - whole * ln2_low;
    const double series = rest * polynomial(rest, exponential_terms, TERMS(exponential_terms));
    const double scale = scale_of((int64_t)whole);
    const double minus_one = scale * series + (scale - 1);
    return copysign(minus_one / (minus_one + 2), x);
}

/* ---- sin and cos ---- */

typedef struct angle {
    double rest; /* from -pi/4 to pi/4, of its quadrant */
    uint32_t quadrant;
} angle;

/* The quadrant of |x|, an f32 value of at least 2^-2, by the bits of 2/pi that matter: the product
 * of its 24-bit significand and 2/pi, modulo 4. */
static inline angle reduced_angle(double x) {
    /* 2/pi in words of 32 bits, after 64 zeros. */
    static const uint32_t two_over_pi[] = {0,          0,          0xa2f9836e, 0x4e441529,
                                           0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
                                           0xfe5163ab, 0xdebbc561};
    const double half_pi = 0x1.921fb54442d18p+0;
    const uint64_t bits = bits_of_f64(x);
    const uint64_t significand = (bits & 0xfffffffffffff) >> 29 | 1u << 23;
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023 - 23; /* x = significand * 2^exponent */
    /* Bits of the product from 2^1 down to 2^-126: 2/pi from its bit 2^(1 - exponent) on; bits
     * above are multiples of 4 and are cut, but those of the significand's carry are not needed. */
    const int first = exponent + 62; /* bits of the table before it; at least 37 */
    const int word = first / 32, shift = first % 32;
    unsigned __int128 window = 0;
    for (int k = 0; k < 4; k++) {
        const uint64_t pair = (uint64_t)two_over_pi[word + k] << 32 | two_over_pi[word + k + 1];
        window = window << 32 | (uint32_t)(pair >> (32 - shift));
    }
    const unsigned __int128 turns = window * significand;
    /* Rounds to the nearest quadrant; what remains is signed, in units of 2^-126 quadrants. */
    const uint32_t quadrant = (uint32_t)(turns >> 125) + 1;
    const unsigned __int128 fraction = turns << 2;
    const int64_t high = (int64_t)(uint64_t)(fraction >> 64);
    const double rest = (double)high + (double)(uint64_t)fraction * 0x1p-64;
    return (angle){rest * 0x1p-64 * half_pi, quadrant >> 1 & 3};
}

static inline double sine_series(double x) {
    static const double terms[] = {1.0,
                                   -1.0 / 6,
                                   1.0 / 120,
                                   -1.0 / 5040,
                                   1.0 / 362880,
                                   -1.0 / 39916800,
                                   1.0 / 6227020800,
                                   -1.0 / 1307674368000,
                                   1.0 / 355687428096000};
    return x * polynomial(x * x, terms, TERMS(terms));
}

static inline double cosine_series(double x) {
    static const double terms[] = {1.0,
                                   -1.0 / 2,
                                   1.0 / 24,
                                   -1.0 / 720,
                                   1.0 / 40320,
                                   -1.0 / 3628800,
                                   1.0 / 479001600,
                                   -1.0 / 87178291200,
                                   1.0 / 20922789888000,
                                   -1.0 / 6402373705728000};
    return polynomial(x * x, terms, TERMS(terms));
}

static inline double function_sin(double x) {
    if (fabs(x) < 0.5) return sine_series(x);
    if (!(fabs(x) < INFINITY)) return NAN;
    const angle a = reduced_angle(fabs(x));
    const double value = a.quadrant & 1 ? cosine_series(a.rest) : sine_series(a.rest);
    return (a.quadrant & 2 ? -value : value) * (x < 0 ? -1 : 1);
}

static inline double function_cos(double x) {
    if (fabs(x) < 0.5) return cosine_series(x);
    if (!(fabs(x) < INFINITY)) return NAN;
    const angle a = reduced_angle(fabs(x));
    const double value = a.quadrant & 1 ? sine_series(a.rest) : cosine_series(a.rest);
    return a.quadrant == 1 || a.quadrant == 2 ? -value : value;
}

#endif
