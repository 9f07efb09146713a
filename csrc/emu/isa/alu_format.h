/* Binary floating-point formats narrower than f64, and the one rounding that makes them: a value is
 * brought to a double, exactly or rounded to odd, and from there rounded once, in integer
 * arithmetic, under any rounding and without a look at the host's mode.
 *
 * Rounded to odd means: where the value lies between two doubles, the one whose last bit is 1. A
 * later rounding to a format at least two bits narrower then gives what rounding the exact value
 * would.
 */
#ifndef EMU_ALU_FORMAT_H
#define EMU_ALU_FORMAT_H

#include "alu_float.h"

typedef struct float_format {
    uint32_t mantissa; /* bits stored */
    uint32_t exponent; /* bits */
    uint32_t largest;  /* the largest finite value's bits */
    uint32_t infinity; /* what lies beyond it */
    uint32_t nan;      /* the canonical one */
    uint32_t sign;     /* the sign bit */
} float_format;

static const float_format format_f32 = {23, 8, 0x7f7fffff, 0x7f800000, 0x7fffffff, 0x80000000};
static const float_format format_tf32 = {10, 8, 0x3fbff, 0x3fc00, 0x3ffff, 0x40000};
static const float_format format_f16 = {10, 5, 0x7bff, 0x7c00, 0x7fff, 0x8000};
static const float_format format_bf16 = {7, 8, 0x7f7f, 0x7f80, 0x7fff, 0x8000};
static const float_format format_e5m2 = {2, 5, 0x7b, 0x7c, 0x7f, 0x80};
static const float_format format_e4m3 = {3, 4, 0x7e, 0x7f, 0x7f, 0x80}; /* no infinities */

enum { ROUND_NEAREST_AWAY = 4 }; /* .rna, beside the four of alu.h */

/* The double x in the format. Always inlined: format and rounding are constants where speed counts.
 */
static inline __attribute__((always_inline)) uint32_t rounded(double x, float_format format,
                                                              uint32_t rounding, bool finite) {
    const uint64_t bits = bits_of_f64(x), magnitude = bits & 0x7fffffffffffffff;
    const bool negative = bits >> 63;
    const uint32_t sign = negative ? format.sign : 0;
    const int64_t exponent = (int64_t)(magnitude >> 52);
    /* biased exponent, as a double, of the format's least normal number */
    const int64_t least = 1023 + 2 - (1 << (format.exponent - 1));

    /* 1.fraction, of which the lowest `dropped` bits do not fit. All of it is below half of the
     * least subnormal number from 54 on. A subnormal double counts as 1.fraction too: just as far
     * below. */
    const uint64_t significand = (magnitude & 0xfffffffffffff) | (uint64_t)1 << 52;
    const int64_t below = exponent < least ? least - exponent : 0;
    const uint64_t wide = 52 - format.mantissa + (uint64_t)below;
    const uint64_t dropped = wide > 54 ? 54 : wide;
    const uint64_t kept = significand >> dropped;
    const uint64_t rest = significand & (((uint64_t)1 << dropped) - 1);
    const uint64_t half = (uint64_t)1 << (dropped - 1);

    const bool up = rounding == ROUND_NEAREST        ? rest + (kept & 1) > half
                    : rounding == ROUND_NEAREST_AWAY ? rest >= half
                    : rounding == ROUND_DOWN         ? negative && rest
                    : rounding == ROUND_UP           ? !negative && rest
                                                     : false;
    /* Adding makes a carry into the exponent come out right, up to infinity. */
    const uint64_t above = exponent < least ? 0 : (uint64_t)(exponent - least);
    const uint64_t whole = (above << format.mantissa) + kept + up;

    /* Beyond the largest, roundings that point away from infinity stay there. */
    const bool stays = finite || rounding == ROUND_ZERO || (rounding == ROUND_DOWN && !negative) ||
                       (rounding == ROUND_UP && negative);
    uint32_t result = whole <= format.largest ? (uint32_t)whole
                      : stays                 ? format.largest
                                              : format.infinity;
    if (magnitude == 0) result = 0;
    if (magnitude == 0x7ff0000000000000) result = finite ? format.largest : format.infinity;
    return magnitude > 0x7ff0000000000000 ? format.nan : result | sign;
}

/* The value of a number in the formats that are sources. */
static inline float value_f16(uint16_t h) {
    const uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
    /* The exponent's bias moves from 15 to 127; that makes subnormals right too. */
    const uint32_t scaled = bits_of_f32(f32_of_bits(magnitude) * 0x1p112f);
    const uint32_t special = (h & 0x7c00) == 0x7c00 ? magnitude | 0x7f800000 : scaled;
    return f32_of_bits(special | (uint32_t)(h & 0x8000) << 16);
}

static inline float value_bf16(uint16_t h) {
    return f32_of_bits((uint32_t)h << 16);
}

/* An 8-bit float is an f16 with fewer mantissa bits, e4m3 with another bias and one NaN. */
static inline float value_e5m2(uint8_t x) {
    return value_f16((uint16_t)(x << 8));
}

static inline float value_e4m3(uint8_t x) {
    if ((x & 0x7f) == 0x7f) return f32_of_bits(NAN_F32);
    return value_f16((uint16_t)((x & 0x80) << 8 | (x & 0x7f) << 7)) * 0x1p8f;
}

/* From f32 to f64 a NaN keeps its sign and payload, and is made quiet. */
static inline uint64_t f64_of_f32(float a) {
    const uint64_t bits = bits_of_f32(a);
    const uint64_t nan = (bits & 0x80000000) << 32 | 0x7ff8000000000000 | (bits & 0x3fffff) << 29;
    return a != a ? nan : bits_of_f64(a);
}

/* And from f64 to a narrower format, as much of it as fits. */
static inline uint32_t nan_of_f64(double a, float_format format) {
    const uint64_t bits = bits_of_f64(a);
    const uint32_t payload = (uint32_t)((bits & 0xfffffffffffff) >> (52 - format.mantissa));
    const uint32_t quiet = 1u << (format.mantissa - 1);
    return (bits >> 63 ? format.sign : 0) | format.infinity | quiet | payload;
}

/* Whether .ftz makes a zero of x (exact, or rounded to odd): it does if x lies below the least
 * normal number after a rounding to the format's precision that knows no least exponent. So does an
 * H200. */
static inline bool is_tiny(double x, float_format format, uint32_t rounding) {
    const double magnitude = fabs(x), least = ldexp(1, 2 - (1 << (format.exponent - 1)));
    const double ulp = ldexp(least, -(int)format.mantissa - 1); /* of the numbers just below */
    if (magnitude == 0 || magnitude != magnitude) return false;
    if (rounding == ROUND_NEAREST) return magnitude < least - ulp / 2;
    const bool away = rounding == (x < 0 ? ROUND_DOWN : ROUND_UP);
    return away ? magnitude <= least - ulp : magnitude < least;
}

/* s = x + y as the host rounded it to nearest; the exact sum to odd. */
static inline double to_odd(double x, double y, double s) {
    const double y_part = s - x;
    const double error = (x - (s - y_part)) + (y - y_part);
    const uint64_t bits = bits_of_f64(s);
    /* Of the two neighbours of the exact sum s is the even one: the other lies towards the error.
     */
    const bool inexact = error < 0 || error > 0; /* not if it is NaN, s being infinite or NaN */
    const uint64_t step = (error > 0) == (s > 0) ? 1 : ~(uint64_t)0;
    return f64_of_bits(inexact && !(bits & 1) ? bits + step : bits);
}

static inline double odd_sum(double x, double y) {
    return to_odd(x, y, x + y);
}

#endif
