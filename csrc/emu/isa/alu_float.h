/* Floating point that several files share: bits, canonical NaNs, flushing, the host's rounding
 * mode, the rule of min and max.
 */
#ifndef EMU_ALU_FLOAT_H
#define EMU_ALU_FLOAT_H

#include <fenv.h>
#include <math.h>

#include "alu.h"

static inline uint32_t bits_of_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float f32_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t bits_of_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double f64_of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum { NAN_F32 = 0x7fffffff, NAN_HALF = 0x7fff /* f16 and bf16 */ };

/* A NaN result of f32 arithmetic is always this one. */
static inline uint32_t canonical_f32(float x) {
    return x != x ? NAN_F32 : bits_of_f32(x);
}

/* .ftz: subnormals become zeros of their sign. */
static inline uint32_t flushed_f32(uint32_t bits) {
    return bits & 0x7f800000 ? bits : bits & 0x80000000;
}

/* The same, unless all bits are to be kept. */
static inline uint32_t flushed_unless(uint32_t bits, uint32_t kept) {
    return bits & 0x7f800000 ? bits : bits & (0x80000000 | kept);
}

/* flags of an insn whose handler serves several roundings and modifiers */
enum {
    ROUND_NEAREST = 0,
    ROUND_ZERO = 1,
    ROUND_DOWN = 2,
    ROUND_UP = 3,
    ROUND_MASK = 3,
    FLAG_FTZ = 4,
    FLAG_SAT = 8,
    FLAG_RELU = 16,
};

/* Takes .rn .rz .rm .rp, or gives otherwise. */
static inline int take_rounding(decoder *dc, int otherwise) {
    static const char *const modes[4] = {"rn", "rz", "rm", "rp"};
    for (int mode = 0; mode < 4; mode++)
        if (decode_take(dc, modes[mode])) return mode;
    return otherwise;
}

static inline void set_rounding(uint32_t mode) {
    static const int modes[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    if (mode != ROUND_NEAREST) fesetround(modes[mode]);
}

static inline void reset_rounding(uint32_t mode) {
    if (mode != ROUND_NEAREST) fesetround(FE_TONEAREST);
}

/* ---- min max: a NaN loses to a number unless .NaN is given; -0 is less than +0 ---- */

enum { MINMAX_NAN = 32, MINMAX_XORSIGN_ABS = 64 };

/* Equal values have equal bits, but for zeros, where or-ing gives the smaller and and-ing the
 * larger. Every comparison is made, whatever the others say: then this is vector code. */
#define MINMAX(name, T, X, value_of, order, zeros, nan)                                            \
    static inline T name(T a, T b) {                                                               \
        const X x = value_of(a), y = value_of(b);                                                  \
        const bool before = x order y, equal = x == y, x_nan = x != x, y_nan = y != y;             \
        const T number = (before | y_nan) ? a : b;                                                 \
        const T known = equal ? a zeros b : number;                                                \
        return (x_nan & y_nan) ? nan : known;                                                      \
    }

/* .ftz .NaN .xorsign.abs as flags, for f32 and the half types; -1: half of .xorsign.abs */
static inline int take_minmax_flags(decoder *dc) {
    const int ftz = decode_take(dc, "ftz") ? FLAG_FTZ : 0;
    const int nan = decode_take(dc, "NaN") ? MINMAX_NAN : 0;
    if (!decode_take(dc, "xorsign")) return ftz | nan;
    return decode_take(dc, "abs") ? ftz | nan | MINMAX_XORSIGN_ABS : -1;
}

#endif
