/* Floating-point formats narrower than f64, and the one function that rounds to them.
 *
 * A value is first a double, exact or rounded to odd. round_to_format then rounds it once, with
 * integer arithmetic, in any rounding mode and regardless of the host's mode.
 *
 * Rounding to odd: if the value lies between two doubles, take the one whose last bit is 1. A later
 * rounding to a format at least two bits narrower then gives the same as rounding the exact value.
 */
#ifndef EMU_ALU_FORMAT_H
#define EMU_ALU_FORMAT_H

#include "../base/fused.h"
#include "alu_float.h"

typedef struct float_format {
    uint32_t mantissa; /* stored bits */
    uint32_t exponent; /* bits */
    uint32_t largest;  /* bits of the largest finite value */
    uint32_t infinity; /* what a larger value becomes: infinity, or NaN if the format has none */
    uint32_t nan;      /* the canonical NaN */
    uint32_t sign;     /* the sign bit */
} float_format;

static const float_format format_f32 = {23, 8, 0x7f7fffff, 0x7f800000, 0x7fffffff, 0x80000000};
static const float_format format_tf32 = {10, 8, 0x3fbff, 0x3fc00, 0x3ffff, 0x40000};
static const float_format format_f16 = {10, 5, 0x7bff, 0x7c00, 0x7fff, 0x8000};
static const float_format format_bf16 = {7, 8, 0x7f7f, 0x7f80, 0x7fff, 0x8000};
static const float_format format_e5m2 = {2, 5, 0x7b, 0x7c, 0x7f, 0x80};
static const float_format format_e4m3 = {3, 4, 0x7e, 0x7f, 0x7f, 0x80}; /* no infinities */

enum { ROUND_NEAREST_AWAY = 4 }; /* .rna; the other four are in alu_float.h */

/* x rounded to the format. finite: overflow gives the largest finite value. Always inlined, because
 * format and rounding are constants in hot code. */
static inline __attribute__((always_inline)) uint32_t round_to_format(double x, float_format format,
                                                                      uint32_t rounding,
                                                                      bool finite) {
    const uint64_t bits = bits_of_f64(x), magnitude = bits & 0x7fffffffffffffff;
    const bool negative = bits >> 63;
    const uint32_t sign = negative ? format.sign : 0;
    const int64_t exponent = (int64_t)(magnitude >> 52);
    /* the biased exponent, as a double, of the format's smallest normal number */
    const int64_t min_exponent = 1023 + 2 - (1 << (format.exponent - 1));

    /* The significand is 1.fraction; its lowest `dropped` bits do not fit. From 54 dropped bits on,
     * the value is below half of the smallest subnormal number. Subnormal doubles are also treated
     * as 1.fraction, because they are far below it, too. */
    const uint64_t significand = (magnitude & 0xfffffffffffff) | (uint64_t)1 << 52;
    const int64_t subnormal_shift = exponent < min_exponent ? min_exponent - exponent : 0;
    const uint64_t shift = 52 - format.mantissa + (uint64_t)subnormal_shift;
    const uint64_t dropped = shift > 54 ? 54 : shift;
    const uint64_t kept = significand >> dropped;
    const uint64_t remainder = significand & (((uint64_t)1 << dropped) - 1);
    const uint64_t half = (uint64_t)1 << (dropped - 1);

    const bool up = rounding == ROUND_NEAREST        ? remainder + (kept & 1) > half
                    : rounding == ROUND_NEAREST_AWAY ? remainder >= half
                    : rounding == ROUND_DOWN         ? negative && remainder
                    : rounding == ROUND_UP           ? !negative && remainder
                                                     : false;
    /* By addition, a carry out of the mantissa increments the exponent, up to infinity. */
    const uint64_t exponent_offset =
        exponent < min_exponent ? 0 : (uint64_t)(exponent - min_exponent);
    const uint64_t magnitude_bits = (exponent_offset << format.mantissa) + kept + up;

    /* On overflow, a rounding that points away from infinity gives the largest finite value. */
    const bool saturates = finite || rounding == ROUND_ZERO ||
                           (rounding == ROUND_DOWN && !negative) ||
                           (rounding == ROUND_UP && negative);
    uint32_t result = magnitude_bits <= format.largest ? (uint32_t)magnitude_bits
                      : saturates                      ? format.largest
                                                       : format.infinity;
    if (magnitude == 0) result = 0;
    if (magnitude == 0x7ff0000000000000) result = finite ? format.largest : format.infinity;
    return magnitude > 0x7ff0000000000000 ? format.nan : result | sign;
}

/* Values of the narrow source formats. */
static inline float value_f16(uint16_t h) {
    const uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
    /* Changes the exponent's bias from 15 to 127; this also handles subnormals. */
    const uint32_t scaled = bits_of_f32(f32_of_bits(magnitude) * 0x1p112f);
    const uint32_t special = (h & 0x7c00) == 0x7c00 ? magnitude | 0x7f800000 : scaled;
    return f32_of_bits(special | (uint32_t)(h & 0x8000) << 16);
}

static inline float value_bf16(uint16_t h) {
    return f32_of_bits((uint32_t)h << 16);
}

/* e5m2 is an f16 with fewer mantissa bits. e4m3 also has another bias, a single NaN and no
 * infinity. */
static inline float value_e5m2(uint8_t x) {
    return value_f16((uint16_t)(x << 8));
}

static inline float value_e4m3(uint8_t x) {
    if ((x & 0x7f) == 0x7f) return f32_of_bits(NAN_F32);
    return value_f16((uint16_t)((x & 0x80) << 8 | (x & 0x7f) << 7)) * 0x1p8f;
}

/* f32 to f64: a NaN keeps its sign and payload, and becomes quiet. */
static inline uint64_t f64_of_f32(float a) {
    const uint64_t bits = bits_of_f32(a);
    const uint64_t nan = (bits & 0x80000000) << 32 | 0x7ff8000000000000 | (bits & 0x3fffff) << 29;
    return a != a ? nan : bits_of_f64(a);
}

/* f64 to a narrower format: a NaN keeps its sign and as much of its payload as fits, and becomes
 * quiet. */
static inline uint32_t nan_of_f64(double a, float_format format) {
    const uint64_t bits = bits_of_f64(a);
    const uint32_t payload = (uint32_t)((bits & 0xfffffffffffff) >> (52 - format.mantissa));
    const uint32_t quiet = 1u << (format.mantissa - 1);
    return (bits >> 63 ? format.sign : 0) | format.infinity | quiet | payload;
}

/* Whether .ftz flushes x, which is exact or rounded to odd. Tininess is detected after rounding, as
 * on an H200: x is rounded to the format's precision with an unbounded exponent, and the result is
 * below the smallest normal number. */
static inline bool is_tiny(double x, float_format format, uint32_t rounding) {
    const double magnitude = fabs(x), min_normal = ldexp(1, 2 - (1 << (format.exponent - 1)));
    /* the spacing of numbers just below min_normal */
    const double ulp = ldexp(min_normal, -(int)format.mantissa - 1);
    if (magnitude == 0 || magnitude != magnitude) return false;
    if (rounding == ROUND_NEAREST) return magnitude < min_normal - ulp / 2;
    const bool away = rounding == (x < 0 ? ROUND_DOWN : ROUND_UP);
    return away ? magnitude <= min_normal - ulp : magnitude < min_normal;
}

/* s is x + y rounded to nearest by the host. Returns the exact sum rounded to odd. */
static inline double round_sum_to_odd(double x, double y, double s) {
    const double y_part = s - x;
    const double error = (x - (s - y_part)) + (y - y_part);
    const uint64_t bits = bits_of_f64(s);
    /* If the sum is inexact and s is even, the result is the next double towards the error. */
    const bool inexact = error < 0 || error > 0; /* false if error is NaN: s is infinite or NaN */
    const uint64_t step = (error > 0) == (s > 0) ? 1 : ~(uint64_t)0;
    return f64_of_bits(inexact && !(bits & 1) ? bits + step : bits);
}

static inline double add_to_odd(double x, double y) {
    return round_sum_to_odd(x, y, x + y);
}

/* a * b + c, rounded once to f32. The product is exact in double. Where the host has no fused
 * multiply-add that is also much faster than the C library's. */
static inline float fused_f32(float a, float b, float c) {
#if HAS_FUSED_F32
    return __builtin_fmaf(a, b, c);
#else
    return (float)add_to_odd((double)a * b, c);
#endif
}

#endif
