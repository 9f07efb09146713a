/* Floating-point functions that several files share: bit casts, canonical NaNs, flushing,
 * rounding modifiers, min and max. The host always rounds to nearest.
 */
#ifndef EMU_ALU_FLOAT_H
#define EMU_ALU_FLOAT_H

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

/* f32 arithmetic returns every NaN as this one. */
static inline uint32_t canonical_f32(float x) {
    return x != x ? NAN_F32 : bits_of_f32(x);
}

/* `.ftz`: a subnormal becomes a zero of the same sign. */
static inline uint32_t flush_f32(uint32_t bits) {
    return bits & 0x7f800000 ? bits : bits & 0x80000000;
}

/* keep_mask 0: as flush_f32; ~0: bits are unchanged. */
static inline uint32_t flush_f32_unless(uint32_t bits, uint32_t keep_mask) {
    return bits & 0x7f800000 ? bits : bits & (0x80000000 | keep_mask);
}

/* insn.flags of handlers that serve several roundings and modifiers. */
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

/* Takes .rn, .rz, .rm or .rp; returns `otherwise` if there is none. */
static inline int take_rounding(decoder *dc, int otherwise) {
    static const char *const modes[4] = {"rn", "rz", "rm", "rp"};
    for (int mode = 0; mode < 4; mode++)
        if (decode_take(dc, modes[mode])) return mode;
    return otherwise;
}

/* ---- min, max: -0 < +0; of a NaN and a number the number is the result, unless with .NaN ---- */

enum { MINMAX_NAN = 32, MINMAX_XORSIGN_ABS = 64 };

/* Equal values have equal bits, except zeros: | of their bits gives the smaller one, & the larger.
 * All comparisons are evaluated unconditionally so that the code vectorises. */
#define MINMAX(name, T, X, value_of, precedes, zero_op, nan)                                       \
    static inline T name(T a, T b) {                                                               \
        const X x = value_of(a), y = value_of(b);                                                  \
        const bool before = x precedes y, equal = x == y, x_nan = x != x, y_nan = y != y;          \
        const T non_nan = (before | y_nan) ? a : b;                                                \
        const T result = equal ? a zero_op b : non_nan;                                            \
        return (x_nan & y_nan) ? nan : result;                                                     \
    }

/* Takes .ftz, .NaN and .xorsign.abs of f32 and half types. Returns flags; -1 if .xorsign lacks
 * .abs. */
static inline int take_minmax_flags(decoder *dc) {
    const int ftz = decode_take(dc, "ftz") ? FLAG_FTZ : 0;
    const int nan = decode_take(dc, "NaN") ? MINMAX_NAN : 0;
    if (!decode_take(dc, "xorsign")) return ftz | nan;
    return decode_take(dc, "abs") ? ftz | nan | MINMAX_XORSIGN_ABS : -1;
}

#endif
