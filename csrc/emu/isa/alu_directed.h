/* f64 operations rounded to zero, down or up, with integers: the host's rounding mode stays at
 * nearest. WebAssembly has no other, and changing it takes longer than an operation.
 *
 * A finite operand is significand * 2^exponent. The exact result of an operation is such a number
 * of 128 bits, and a bit that says whether it is a little more (`sticky`). round_f64 rounds it
 * once. Zeros, infinities and NaNs are exact in every mode; they are left to the host, except the
 * sign of a sum that is zero.
 */
#ifndef EMU_ALU_DIRECTED_H
#define EMU_ALU_DIRECTED_H

#include "alu_float.h"

typedef unsigned __int128 wide;

typedef struct wide_number {
    bool negative, sticky;
    wide significand; /* 0: the number is zero */
    int exponent;
} wide_number;

static inline bool is_ordinary_f64(double x) {
    return x != 0 && fabs(x) < INFINITY;
}

static inline wide_number wide_of_f64(double x) {
    const uint64_t bits = bits_of_f64(x), fraction = bits & 0xfffffffffffff;
    const int biased = (int)(bits >> 52 & 0x7ff);
    const uint64_t significand = biased ? fraction | (uint64_t)1 << 52 : fraction;
    return (wide_number){bits >> 63, false, significand, (biased ? biased : 1) - 1075};
}

static inline int top_bit(wide x) {
    const uint64_t high = (uint64_t)(x >> 64);
    return high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll((uint64_t)x);
}

/* x * 2^-n; what is cut becomes part of sticky. */
static inline wide_number shifted_right(wide_number x, int n) {
    if (n <= 0) return x;
    const wide kept = n < 128 ? x.significand >> n : 0;
    const wide cut = n < 128 ? x.significand & (((wide)1 << n) - 1) : x.significand;
    return (wide_number){x.negative, x.sticky || cut, kept, x.exponent + n};
}

/* With its highest bit at bit 125, so that a sum of two has no carry. Not zero. */
static inline wide_number normalised(wide_number x) {
    const int shift = 125 - top_bit(x.significand);
    x.significand <<= shift; /* not negative: products have at most 106 bits */
    x.exponent -= shift;
    return x;
}

/* x, which is not zero, in a rounding other than to nearest. */
static inline double round_f64(wide_number x, uint32_t rounding) {
    enum { MIN_EXPONENT = -1074, INFINITE = 0x7ff };
    int exponent = x.exponent + top_bit(x.significand) - 52;
    if (exponent < MIN_EXPONENT) exponent = MIN_EXPONENT;
    const bool away = rounding == (x.negative ? ROUND_DOWN : ROUND_UP);
    uint64_t bits;
    if (exponent <= x.exponent) {
        bits = (uint64_t)(x.significand << (x.exponent - exponent)) + (away && x.sticky);
    } else {
        const wide_number cut = shifted_right(x, exponent - x.exponent);
        bits = (uint64_t)cut.significand + (away && cut.sticky);
    }
    /* The significand's highest bit adds 1 to the exponent. */
    const uint64_t field = (uint64_t)(exponent - MIN_EXPONENT) + (bits >> 52);
    bits = field >= INFINITE ? ((uint64_t)INFINITE << 52) - !away
                             : ((uint64_t)(exponent - MIN_EXPONENT) << 52) + bits;
    return f64_of_bits(bits | (uint64_t)x.negative << 63);
}

static inline wide_number wide_sum(wide_number x, wide_number y) {
    if (!x.significand) return y;
    if (!y.significand) return x;
    x = normalised(x), y = normalised(y);
    const bool y_larger =
        x.exponent != y.exponent ? x.exponent < y.exponent : x.significand < y.significand;
    const wide_number larger = y_larger ? y : x;
    const wide_number other = y_larger ? x : y;
    const wide_number smaller = shifted_right(other, larger.exponent - other.exponent);
    wide_number sum = larger;
    sum.sticky = smaller.sticky;
    if (larger.negative == smaller.negative)
        sum.significand += smaller.significand;
    else /* a little more is subtracted, which is one less and a little more */
        sum.significand -= smaller.significand + smaller.sticky;
    return sum;
}

/* a * b + c */
static inline double directed_fma(double a, double b, double c, uint32_t rounding) {
    const double product = a * b;
    if (!(fabs(a) < INFINITY && fabs(b) < INFINITY && fabs(c) < INFINITY)) {
        return fabs(a) < INFINITY && fabs(b) < INFINITY ? c : product + c;
    }
    const wide_number x = wide_of_f64(a), y = wide_of_f64(b);
    const wide_number exact = {x.negative != y.negative, false, x.significand * y.significand,
                               x.exponent + y.exponent};
    const wide_number sum = wide_sum(exact, wide_of_f64(c));
    if (sum.significand) return round_f64(sum, rounding);
    const bool both = exact.negative == (bits_of_f64(c) >> 63) && !exact.significand;
    return (both ? exact.negative : rounding == ROUND_DOWN) ? -0.0 : 0.0;
}

static inline double directed_add(double a, double b, uint32_t rounding) {
    return directed_fma(a, 1, b, rounding);
}

static inline double directed_mul(double a, double b, uint32_t rounding) {
    if (!is_ordinary_f64(a) || !is_ordinary_f64(b)) return a * b;
    const wide_number x = wide_of_f64(a), y = wide_of_f64(b);
    return round_f64((wide_number){x.negative != y.negative, false, x.significand * y.significand,
                                   x.exponent + y.exponent},
                     rounding);
}

static inline double directed_div(double a, double b, uint32_t rounding) {
    if (!is_ordinary_f64(a) || !is_ordinary_f64(b)) return a / b;
    const wide_number x = normalised(wide_of_f64(a)), y = wide_of_f64(b);
    return round_f64((wide_number){x.negative != y.negative, x.significand % y.significand != 0,
                                   x.significand / y.significand, x.exponent - y.exponent},
                     rounding);
}

/* The integer root of a number of 125 or 126 bits, bit by bit. */
static inline double directed_sqrt(double a, uint32_t rounding) {
    if (!is_ordinary_f64(a) || a < 0) return sqrt(a);
    const wide_number x = normalised(wide_of_f64(a));
    const int odd = x.exponent & 1;
    const wide square = x.significand >> odd;
    uint64_t root = 0;
    for (int bit = 62; bit >= 0; bit--) {
        const uint64_t larger = root | (uint64_t)1 << bit;
        if ((wide)larger * larger <= square) root = larger;
    }
    return round_f64(
        (wide_number){false, (wide)root * root != square, root, (x.exponent + odd) / 2}, rounding);
}

static inline double directed_integer(uint64_t magnitude, bool negative, uint32_t rounding) {
    if (!magnitude) return 0;
    return round_f64((wide_number){negative, false, magnitude, 0}, rounding);
}

#endif
